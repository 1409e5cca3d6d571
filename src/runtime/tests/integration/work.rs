//! What ends mean, with an executor that does what the test says.

use crate::gateway::Peer;
use crate::world::{World, command, function, id};
use agentrun_protocol::Blob;
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::executor::{Ended, ProcessEnd, Stream, StreamEnd, ToRuntime as FromExecutor};
use agentrun_protocol::probe::{Isolation, ProbeTargets};
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{Assignment, Input};
use agentrun_runtime::store::sha256_of;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

async fn function_that_writes(stdout: &[u8]) -> (World, AttemptResult) {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    executor.answer(stdout).await;
    let result = peer.result().await;
    (world, result)
}

async fn command_that_leaves(output_file: Option<&[u8]>) -> AttemptResult {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&command(&["true"])).await;
    let (exec, _) = executor.exec().await;
    assert!(exec.io_files);
    executor.output(exec.id, Stream::Stdout, b"done\n").await;
    if let Some(bytes) = output_file {
        executor.output_file(exec.id, bytes).await;
    }
    executor.end(exec.id, ProcessEnd::Exited { code: 0 }).await;
    peer.result().await
}

#[track_caller]
fn assert_ended(result: &AttemptResult, ending: Ending, reason: &str) {
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (ending, reason),
        "{}",
        result.message
    );
}

// F059
#[tokio::test]
async fn an_output_of_20_kib_becomes_a_file_with_its_exact_bytes() {
    let text = format!("{{\"text\":  \"{}\"}}", "x".repeat(20 * 1024));
    let (world, result) = function_that_writes(text.as_bytes()).await;
    assert_ended(&result, Ending::Success, "Completed");
    assert_eq!(result.output, None);
    let stored = result.output_ref.unwrap();
    assert_eq!(stored.path, "state/runs/run-uid/tasks/sub-task-uid/1/output.json");
    assert_eq!(
        (stored.bytes, stored.sha256),
        (text.len() as u64, sha256_of(text.as_bytes()))
    );
    assert_eq!(
        std::fs::read(world.evidence("output.json")).unwrap(),
        text.as_bytes()
    );
}

#[tokio::test]
async fn an_output_that_the_api_server_would_change_becomes_a_file() {
    let (world, result) = function_that_writes(b"{\"price\":1.0}\n").await;
    assert_ended(&result, Ending::Success, "Completed");
    assert_eq!(result.output, None);
    assert!(result.output_ref.is_some());
    assert_eq!(
        std::fs::read(world.evidence("output.json")).unwrap(),
        b"{\"price\":1.0}"
    );
}

// F061, F065, F066
#[tokio::test]
async fn stdout_that_is_not_one_document_is_a_parse_error() {
    for (stdout, reason) in [
        (&b"{}\n{}"[..], "TrailingOutput"),
        (b"", "NoOutput"),
        (b"{\"a\": [1, 2", "InvalidOutput"),
    ] {
        let (_, result) = function_that_writes(stdout).await;
        assert_ended(&result, Ending::ParseError, reason);
        assert_eq!((result.output, result.output_ref), (None, None));
    }
}

#[tokio::test]
async fn a_command_hands_over_its_output_in_a_file() {
    let result = command_that_leaves(Some(b"{\"rows\": 3}")).await;
    assert_eq!(result.output, Some(json!({"rows": 3})));
    let result = command_that_leaves(None).await;
    assert_eq!(result.output, Some(json!({"stdout_tail": "done\n"})));
    assert_eq!(result.exit_code, Some(0));
}

// F122
#[tokio::test]
async fn a_command_whose_output_file_is_no_json_is_a_parse_error() {
    let result = command_that_leaves(Some(b"{\"rows\": ")).await;
    assert_ended(&result, Ending::ParseError, "InvalidOutput");
    assert!(result.message.contains("AGENTRUN_OUTPUT"), "{}", result.message);
}

#[tokio::test]
async fn a_cancel_reaches_the_executor_with_its_grace() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&command(&["sleep"])).await;
    let (exec, _) = executor.exec().await;
    peer.say(ToRuntime::Cancel {
        id: id(),
        grace_ms: 5000,
    })
    .await;
    assert_eq!(executor.kill().await, 5000);
    // Our own record counts before the exit code.
    executor.end(exec.id, ProcessEnd::Exited { code: 0 }).await;
    assert_ended(&peer.result().await, Ending::Cancelled, "Cancelled");
}

// F018
#[tokio::test]
async fn a_stop_of_the_pod_that_met_the_executor_first_is_no_failure_of_the_work() {
    let ends = [
        (ProcessEnd::Signalled { signal: 15 }, Ending::Cancelled),
        (ProcessEnd::Exited { code: 3 }, Ending::Cancelled),
        (ProcessEnd::Exited { code: 0 }, Ending::Success),
    ];
    for (end, expected) in ends {
        let mut world = World::new().await;
        let (_runtime, mut executor, mut peer) = world.up().await;
        peer.assign(&command(&["work"])).await;
        let (exec, _) = executor.exec().await;
        executor.end_because(exec.id, end, true).await;
        assert_eq!(peer.result().await.ending, expected);
    }
}

#[tokio::test]
async fn a_cancel_of_another_attempt_ends_nothing() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let mut other = id();
    other.attempt = 9;
    peer.say(ToRuntime::Cancel {
        id: other,
        grace_ms: 0,
    })
    .await;
    executor.answer(b"1").await;
    assert_ended(&peer.result().await, Ending::Success, "Completed");
}

// F058
#[tokio::test]
async fn a_timeout_keeps_what_was_written_so_far() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let mut assignment = command(&["slow"]);
    assignment.remaining_ms = 1500;
    peer.assign(&assignment).await;
    let (exec, _) = executor.exec().await;
    executor.output(exec.id, Stream::Stdout, b"step 1 of 3\n").await;
    executor.output(exec.id, Stream::Stderr, b"warming up\n").await;
    assert_eq!(executor.kill().await, 2000);
    executor.end(exec.id, ProcessEnd::Signalled { signal: 15 }).await;
    let result = peer.result().await;
    assert_ended(&result, Ending::Timeout, "DeadlineExceeded");
    assert_eq!(
        (result.stdout_tail.as_str(), result.stderr_tail.as_str()),
        ("step 1 of 3\n", "warming up\n")
    );
    assert_eq!(std::fs::read(world.evidence("stdout")).unwrap(), b"step 1 of 3\n");
    assert!(result.timing.run_ms >= 500, "{:?}", result.timing);
}

// F053
#[tokio::test]
async fn a_function_that_does_not_exit_after_its_document_is_ended_and_succeeds() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let (exec, _) = executor.exec().await;
    executor.output(exec.id, Stream::Stdout, b"{\"a\":").await;
    executor.output(exec.id, Stream::Stdout, b"1}\n").await;
    executor.kill().await;
    executor.end(exec.id, ProcessEnd::Signalled { signal: 15 }).await;
    let result = peer.result().await;
    assert_ended(&result, Ending::Success, "Completed");
    assert_eq!(result.output, Some(json!({"a": 1})));
}

#[tokio::test]
async fn a_function_that_is_silent_within_its_document_is_waited_for() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let mut assignment = function("f");
    assignment.remaining_ms = 2000;
    peer.assign(&assignment).await;
    let (exec, _) = executor.exec().await;
    executor.output(exec.id, Stream::Stdout, b"{\"a\":").await;
    executor.kill().await;
    executor.end(exec.id, ProcessEnd::Signalled { signal: 9 }).await;
    assert_ended(&peer.result().await, Ending::Timeout, "DeadlineExceeded");
}

// F056, F057
#[tokio::test]
async fn output_beyond_the_log_is_counted_and_its_end_is_shown() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&command(&["noisy"])).await;
    let (exec, _) = executor.exec().await;
    executor.output(exec.id, Stream::Stderr, b"the start\n").await;
    let ended = Ended {
        id: exec.id,
        end: ProcessEnd::Exited { code: 3 },
        duration_ms: 1,
        peak_memory_bytes: 1,
        cpu_ms: 1,
        stdout: StreamEnd::default(),
        stderr: StreamEnd {
            total: 1_000_000,
            tail: Blob(format!("{}\nthe error", "x".repeat(4000)).into_bytes()),
        },
        killed_descendants: 0,
        tree_empty: true,
        too_many_processes: false,
        killed_for_memory: false,
        stopped: false,
        blocked_on_stdin: false,
    };
    executor.say(FromExecutor::Ended(Box::new(ended))).await;
    let result = peer.result().await;
    assert_eq!((result.ending, result.exit_code), (Ending::Error, Some(3)));
    let tail = result.stderr_tail;
    assert!(
        tail.starts_with("the start\n") && tail.ends_with("\nthe error"),
        "{tail}"
    );
    assert!(tail.contains("bytes left out") && tail.len() <= 2048, "{tail}");
}

// F063
#[tokio::test]
async fn bytes_that_are_no_text_hurt_nobody() {
    let (_, result) = function_that_writes(b"\xf0{}").await;
    assert_ended(&result, Ending::ParseError, "InvalidOutput");
}

// F105
#[tokio::test]
async fn a_pod_that_is_not_isolated_runs_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut world = World::new().await;
    world.settings.probe = ProbeTargets {
        required: true,
        closed: vec![listener.local_addr().unwrap()],
        closed_if_there: Vec::new(),
    };
    world.settings.bounds.isolation = Duration::from_millis(300);
    let started = Instant::now();
    let (_runtime, _executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let result = peer.result().await;
    assert_ended(&result, Ending::Error, "NetworkNotIsolated");
    assert_eq!(result.isolation, Some(Isolation::NotIsolated));
    assert!(started.elapsed() < Duration::from_secs(10));
    // The answer is kept for the Pod.
    let mut second = function("f");
    second.id.attempt = 2;
    peer.ack().await;
    peer.assign(&second).await;
    assert!(matches!(
        peer.next().await,
        agentrun_protocol::channel::ToGateway::Result { .. }
    ));
}

// F079
#[tokio::test]
async fn a_volume_that_cannot_be_written_is_named() {
    let mut world = World::new().await;
    // A file where the folder should be: no user can write below it, root neither.
    std::fs::remove_dir(world.path("state")).unwrap();
    std::fs::write(world.path("state"), "").unwrap();
    let (_runtime, _executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let result = peer.result().await;
    assert_ended(&result, Ending::Error, "VolumeNotWritable");
    assert!(
        result.message.contains("class fast, driver test"),
        "{}",
        result.message
    );
}

async fn stdin_of(input: Input) -> Vec<u8> {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let big = format!("[{}]", "1,".repeat(400_000) + "1");
    std::fs::write(world.path("data/workspace/big.json"), big).unwrap();
    assign_with(&mut peer, function("f"), input).await;
    executor.answer(b"1").await
}

async fn assign_with(peer: &mut Peer, mut assignment: Assignment, input: Input) {
    assignment.input = Some(input);
    peer.assign(&assignment).await;
}

// F054, F055
#[tokio::test]
async fn inputs_of_any_size_go_by_stdin_which_is_then_closed() {
    let value = json!({"text": "ü".repeat(70_000)});
    let stdin = stdin_of(Input::Inline { value: value.clone() }).await;
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&stdin).unwrap(),
        value
    );
    let path = "/mnt/user-data/workspace/big.json".to_owned();
    assert_eq!(stdin_of(Input::File { path }).await.len(), 800_003);
}
