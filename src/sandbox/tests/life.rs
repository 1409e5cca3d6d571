//! Starting, ending, and who is told what.

use crate::harness::Sandbox;
use agentrun_protocol::executor::ProcessEnd;

#[test]
fn an_exit_code_is_reported() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("echo out; echo err >&2; exit 7");
    let outcome = sandbox.run(exec, b"");
    assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 7 });
    assert_eq!(outcome.stdout, b"out\n");
    assert_eq!(outcome.stderr, b"err\n");
    assert!(outcome.ended.tree_empty);
}
