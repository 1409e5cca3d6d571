//! What holds whatever happens to the connection.

use crate::world::{World, function};
use agentrun_protocol::Blob;
use agentrun_protocol::channel::{Refusal, ToGateway, ToRuntime};
use agentrun_protocol::executor::ToExecutor;
use agentrun_protocol::exit;
use agentrun_protocol::probe::Isolation;
use agentrun_protocol::result::Ending;
use agentrun_protocol::work::{FileRef, SkillFile, SkillFiles};
use agentrun_runtime::store::sha256_of;

fn file(path: &str, content: &[u8]) -> FileRef {
    FileRef {
        path: path.to_owned(),
        bytes: content.len() as u64,
        sha256: sha256_of(content),
    }
}

fn chunk(of: &FileRef, data: &[u8]) -> ToRuntime {
    ToRuntime::Chunk {
        sha256: of.sha256.clone(),
        offset: 0,
        last: true,
        data: Blob(data.to_vec()),
    }
}

#[tokio::test]
async fn a_result_is_said_again_after_the_gateway_died_before_acknowledging_it() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    assert_eq!(executor.answer(b"{\"a\":1}\n").await, b"null");
    let first = peer.result().await;
    assert_eq!(first.ending, Ending::Success);
    assert_eq!(first.output, Some(serde_json::json!({"a": 1})));
    assert_eq!(first.isolation, Some(Isolation::Verified));
    assert!(first.process_tree_empty);
    peer.kill();
    let mut peer = world.gateway.peer().await;
    assert_eq!(peer.result().await, first);
    peer.ack().await;
    peer.kill();
    // What is acknowledged is not said again; work that comes now is.
    let mut peer = world.gateway.peer().await;
    peer.say(ToRuntime::Assign(Box::new(function("f")))).await;
    assert_eq!(
        peer.result().await,
        first,
        "the stored result, without a second run"
    );
}

// F084
#[tokio::test]
async fn an_assignment_that_is_repeated_while_it_runs_runs_once() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let (exec, _) = executor.exec().await;
    peer.kill();
    let mut peer = world.gateway.peer().await;
    peer.assign(&function("f")).await;
    executor
        .output(exec.id, agentrun_protocol::executor::Stream::Stdout, b"1")
        .await;
    executor
        .end(
            exec.id,
            agentrun_protocol::executor::ProcessEnd::Exited { code: 0 },
        )
        .await;
    assert_eq!(peer.result().await.output, Some(serde_json::json!(1)));
    peer.ack().await;
    // The next program that the executor is asked for is the next attempt's.
    let mut next = function("f");
    next.id.attempt = 2;
    peer.assign(&next).await;
    let (second, _) = executor.exec().await;
    assert_ne!(second.id, exec.id);
}

#[tokio::test]
async fn a_result_of_an_earlier_process_is_found_below_state() {
    let mut world = World::new().await;
    let (mut runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    executor.answer(b"7").await;
    let first = peer.result().await;
    peer.ack().await;
    runtime.shut_down();
    assert_eq!(runtime.exit_code().await, exit::DONE);
    let (_runtime, _executor, mut peer) = world.up().await;
    peer.say(ToRuntime::Assign(Box::new(function("f")))).await;
    assert_eq!(peer.result().await, first);
}

#[tokio::test]
async fn files_and_skills_are_fetched_once() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let (data, code) = (file("in/a.csv", b"a,b\n"), file("functions/f.sh", b"#!/bin/sh\n"));
    let skill = SkillFiles {
        name: "skill".to_owned(),
        digest: "d1".to_owned(),
        files: vec![SkillFile {
            file: code.clone(),
            executable: true,
        }],
        mounted: false,
    };
    let mut assignment = function("functions/f.sh");
    assignment.files = vec![data.clone()];
    assignment.skills = vec![skill];
    peer.assign(&assignment).await;
    for (file, content) in [(&data, &b"a,b\n"[..]), (&code, b"#!/bin/sh\n")] {
        assert_eq!(
            peer.next().await,
            ToGateway::Get {
                sha256: file.sha256.clone()
            }
        );
        peer.say(chunk(file, content)).await;
    }
    let (exec, _) = executor.exec().await;
    let program = world.path("skills/skill/functions/f.sh");
    assert_eq!(
        exec.argv,
        ["/bin/sh".to_owned(), program.to_string_lossy().into_owned()]
    );
    assert_eq!(
        std::fs::read(world.path("data/uploads/in/a.csv")).unwrap(),
        b"a,b\n"
    );
    executor
        .output(exec.id, agentrun_protocol::executor::Stream::Stdout, b"1")
        .await;
    executor
        .end(
            exec.id,
            agentrun_protocol::executor::ProcessEnd::Exited { code: 0 },
        )
        .await;
    peer.result().await;
    peer.ack().await;
    assignment.id.attempt = 2;
    peer.assign(&assignment).await;
    // Everything is there: the work starts without another question.
    executor.exec().await;
}

#[tokio::test]
async fn a_file_that_a_dead_gateway_did_not_bring_is_asked_for_after_the_next_assignment() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let wanted = file("a.csv", b"abc");
    let mut assignment = function("f");
    assignment.files = vec![wanted.clone()];
    peer.assign(&assignment).await;
    assert!(matches!(peer.next().await, ToGateway::Get { .. }));
    peer.kill();
    // The next gateway serves only what it has assigned itself, so nothing may be asked before.
    let mut peer = world.gateway.peer().await;
    peer.say(ToRuntime::Assign(Box::new(assignment))).await;
    let mut heard = [peer.next().await, peer.next().await];
    heard.sort_by_key(|message| matches!(message, ToGateway::Get { .. }));
    assert!(
        matches!(heard, [ToGateway::Taken(_), ToGateway::Get { .. }]),
        "{heard:?}"
    );
    peer.say(chunk(&wanted, b"abc")).await;
    executor.answer(b"1").await;
    assert_eq!(peer.result().await.ending, Ending::Success);
}

#[tokio::test]
async fn a_content_with_another_digest_is_input_changed_and_nothing_runs() {
    let mut world = World::new().await;
    let (_runtime, _executor, mut peer) = world.up().await;
    let wanted = file("a.csv", b"abc");
    let mut assignment = function("f");
    assignment.files = vec![wanted.clone()];
    peer.assign(&assignment).await;
    assert!(matches!(peer.next().await, ToGateway::Get { .. }));
    peer.say(chunk(&wanted, b"xyz")).await;
    let result = peer.result().await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "InputChanged")
    );
    assert!(result.message.contains("a.csv has digest"), "{}", result.message);
    assert!(!world.path("data/uploads/a.csv").exists());
}

#[tokio::test]
async fn a_content_that_is_gone_is_input_changed() {
    let mut world = World::new().await;
    let (_runtime, _executor, mut peer) = world.up().await;
    let wanted = file("a.csv", b"abc");
    let mut assignment = function("f");
    assignment.files = vec![wanted.clone()];
    peer.assign(&assignment).await;
    peer.next().await;
    let message = "ConfigMap data has other content".to_owned();
    peer.say(ToRuntime::Missing {
        sha256: wanted.sha256,
        message,
    })
    .await;
    let result = peer.result().await;
    assert_eq!(result.reason, "InputChanged");
    assert!(
        result.message.contains("ConfigMap data has other content"),
        "{}",
        result.message
    );
}

#[tokio::test]
async fn a_runtime_that_is_not_served_exits_with_version_skew() {
    let mut world = World::new().await;
    let mut runtime = world.start();
    let _executor = crate::executor::Executor::ready(world.socket()).await;
    let mut peer = world.gateway.stranger().await;
    assert!(matches!(peer.next().await, ToGateway::Hello { .. }));
    let message = "protocol 1.0 is not served".to_owned();
    peer.say(ToRuntime::Refused {
        code: Refusal::VersionSkew,
        message,
    })
    .await;
    assert_eq!(runtime.exit_code().await, exit::VERSION_SKEW);
}

#[tokio::test]
async fn a_runtime_whose_pod_is_over_exits_as_refused() {
    let mut world = World::new().await;
    let (mut runtime, _executor, peer) = world.up().await;
    let message = "the Pod is gone".to_owned();
    peer.say(ToRuntime::Refused {
        code: Refusal::Unauthenticated,
        message,
    })
    .await;
    assert_eq!(runtime.exit_code().await, exit::REFUSED);
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let mut world = World::new().await;
    let mut home = World::new().await;
    // Both gateways' certificates are trusted, as they are where one authority signs both.
    world.settings.gateway.authorities += &home.gateway.authority;
    let (_runtime, _executor, mut peer) = world.up().await;
    let address = home.gateway.address.to_string();
    peer.say(ToRuntime::Redirect { address }).await;
    assert!(peer.closes().await);
    home.gateway.peer().await;
}

#[tokio::test]
async fn the_token_is_read_again_on_every_connect() {
    let mut world = World::new().await;
    std::fs::write(world.path("token"), "expired").unwrap();
    let _runtime = world.start();
    let _executor = crate::executor::Executor::ready(world.socket()).await;
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(300), world.gateway.stranger());
    assert!(waiting.await.is_err(), "no connection with an expired token");
    std::fs::write(world.path("token"), crate::gateway::TOKEN).unwrap();
    world.gateway.peer().await;
}

#[tokio::test]
async fn nobody_is_greeted_before_the_executor_is_ready() {
    let mut world = World::new().await;
    let _runtime = world.start();
    let mut executor = crate::executor::Executor::connect(world.socket()).await;
    let mut peer = world.gateway.stranger().await;
    executor
        .say(agentrun_protocol::executor::ToRuntime::Ready {
            landlock_abi: 1,
            secrets: Vec::new(),
        })
        .await;
    assert!(matches!(peer.next().await, ToGateway::Hello { .. }));
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_not_trusted() {
    let mut world = World::new().await;
    world.settings.gateway.authorities = World::new().await.gateway.authority;
    let _runtime = world.start();
    let _executor = crate::executor::Executor::ready(world.socket()).await;
    let waiting = tokio::time::timeout(std::time::Duration::from_millis(300), world.gateway.stranger());
    assert!(waiting.await.is_err());
}

#[tokio::test]
async fn an_authority_that_is_no_certificate_is_a_fault_of_the_installation() {
    let mut world = World::new().await;
    world.settings.gateway.authorities = "none".to_owned();
    let mut runtime = world.start();
    assert_eq!(runtime.exit_code().await, exit::MISCONFIGURED);
}

#[tokio::test]
async fn a_call_that_no_message_to_the_executor_holds_is_refused_and_the_executor_is_not_lost() {
    let mut world = World::new().await;
    let (_runtime, mut executor, mut peer) = world.up().await;
    let mut long = function("f");
    // A quote takes two bytes in the assignment, and four in the variable that holds the notes.
    long.notes = vec!["\"".repeat(280 << 10)];
    peer.assign(&long).await;
    let result = peer.result().await;
    assert_eq!(
        (result.ending, result.reason.as_str(), result.process_tree_empty),
        (Ending::Error, "InvalidInput", true)
    );
    assert!(
        result.message.contains("at most 1048576 are allowed"),
        "{}",
        result.message
    );
    peer.ack().await;
    let mut next = function("f");
    next.id.attempt = 2;
    peer.assign(&next).await;
    // What was meant for the stdin of the first may still come.
    loop {
        if let Some(ToExecutor::Exec(exec)) = executor.next().await {
            assert!(exec.argv[0].ends_with("/skill/f"), "{:?}", exec.argv);
            break;
        }
    }
}
