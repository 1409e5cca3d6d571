//! How a runtime's life ends.

use crate::executor::Executor;
use crate::world::{World, command, function, id};
use agentrun_protocol::channel::ToGateway;
use agentrun_protocol::executor::{ProcessEnd, Stream, ToRuntime};
use agentrun_protocol::exit;
use agentrun_protocol::result::Ending;
use std::time::Duration;

#[tokio::test]
async fn an_executor_that_is_lost_while_work_runs_is_told_with_the_tails() {
    let mut world = World::new().await;
    let (mut runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&command(&["big"])).await;
    let (exec, _) = executor.exec().await;
    executor.output(exec.id, Stream::Stdout, b"half").await;
    executor.output(exec.id, Stream::Stderr, b"allocating").await;
    drop(executor);
    let ToGateway::ExecutorLost {
        id: found,
        stdout_tail,
        stderr_tail,
    } = peer.next().await
    else {
        panic!("expected the loss");
    };
    assert_eq!(
        (found, stdout_tail.as_str(), stderr_tail.as_str()),
        (id(), "half", "allocating")
    );
    peer.ack().await;
    assert_eq!(runtime.exit_code().await, exit::EXECUTOR_LOST);
    assert!(!world.evidence("result.json").exists(), "a loss is no outcome");
}

#[tokio::test]
async fn an_executor_that_is_lost_while_nothing_runs_ends_the_pod_too() {
    let mut world = World::new().await;
    let (mut runtime, executor, _peer) = world.up().await;
    drop(executor);
    assert_eq!(runtime.exit_code().await, exit::EXECUTOR_LOST);
}

#[tokio::test]
async fn an_executor_that_refuses_its_container_ends_the_runtime() {
    let world = World::new().await;
    let mut runtime = world.start();
    let mut executor = Executor::connect(world.socket()).await;
    let message = "mount /data is not expected".to_owned();
    executor.say(ToRuntime::Refused { message }).await;
    assert_eq!(runtime.exit_code().await, exit::EXECUTOR_REFUSED);
}

#[tokio::test]
async fn an_executor_that_never_comes_ends_the_runtime() {
    let mut world = World::new().await;
    world.settings.bounds.executor = Duration::from_millis(50);
    assert_eq!(world.start().exit_code().await, exit::EXECUTOR_REFUSED);
}

#[tokio::test]
async fn the_socket_is_for_our_user_and_gone_after_the_first_connection() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut world = World::new().await;
    let listener = agentrun_runtime::executor::bind(world.socket()).unwrap();
    let mode = std::fs::metadata(world.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(listener);
    let (_runtime, _executor, _peer) = world.up().await;
    assert!(!world.socket().exists());
}

#[tokio::test]
async fn the_end_of_the_pod_cancels_what_runs_and_posts_its_result() {
    let mut world = World::new().await;
    let (mut runtime, mut executor, mut peer) = world.up().await;
    peer.assign(&function("f")).await;
    let (exec, _) = executor.exec().await;
    runtime.shut_down();
    assert_eq!(executor.kill().await, 5000);
    executor.end(exec.id, ProcessEnd::Signalled { signal: 15 }).await;
    let result = peer.result().await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Cancelled, "Cancelled")
    );
    peer.ack().await;
    assert_eq!(runtime.exit_code().await, exit::DONE);
}
