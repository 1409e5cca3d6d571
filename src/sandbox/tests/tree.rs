//! Nothing of a call outlives it.

use crate::harness::{Sandbox, is_root, processes_with};
use agentrun_protocol::executor::{ProcessEnd, ToExecutor};
use std::time::{Duration, Instant};

/// A sleep that nobody else on the machine does.
fn marker(number: u32) -> String {
    format!("98765{number}.{}", std::process::id())
}

// F041, F053
#[test]
fn a_grandchild_that_keeps_stdout_open_does_not_hang_the_call() {
    let mut sandbox = Sandbox::start();
    let marker = marker(1);
    let exec = sandbox.shell(&format!("setsid sleep {marker} & echo '{{}}'"));
    let begin = Instant::now();
    let outcome = sandbox.run(exec, b"").succeeded();
    assert_eq!(outcome.text(), "{}");
    assert_eq!(outcome.ended.killed_descendants, 1);
    assert_eq!(processes_with(&marker), 0);
    assert!(begin.elapsed() < Duration::from_secs(30));
}

// F043
#[test]
fn a_double_fork_into_a_new_session_is_found() {
    let mut sandbox = Sandbox::start();
    let marker = marker(2);
    let exec = sandbox.shell(&format!(
        "(setsid sh -c 'sleep {marker} & sleep {marker} &' &) ; sleep 0.2"
    ));
    sandbox.run(exec, b"").succeeded();
    assert_eq!(processes_with(&marker), 0);
}

/// A process whose every list is out of date: it forks and ends, and its child does the same.
const RELAY: &str = "import os, sys, time
os.setsid() if os.fork() == 0 else None
print('ready', flush=True)
end = time.time() + 20
while time.time() < end:
    if os.fork() > 0: os._exit(0)";

// F042, F043
#[test]
fn a_process_that_forks_while_it_is_killed_does_not_get_away() {
    let mut sandbox = Sandbox::start();
    let marker = marker(5);
    for kill in [true, false] {
        let exec = sandbox.exec(&["python3", "-c", RELAY, &marker]);
        let id = exec.id;
        sandbox.send(&ToExecutor::Exec(Box::new(exec)));
        if kill {
            sandbox.wait_for_output(id, "ready");
            sandbox.kill(id, Duration::ZERO);
        }
        assert!(sandbox.outcome(id).ended.tree_empty);
        assert_eq!(processes_with(&marker), 0);
    }
}

// F043
#[test]
fn a_stopped_grandchild_in_a_session_of_its_own_is_killed_too() {
    let mut sandbox = Sandbox::start();
    let marker = marker(6);
    let exec = sandbox.shell(&format!(
        "setsid sh -c 'trap \"\" TERM HUP; kill -STOP $$' {marker} & sleep 0.1; echo done"
    ));
    let outcome = sandbox.run(exec, b"").succeeded();
    assert_eq!(
        (outcome.text().as_str(), outcome.ended.killed_descendants),
        ("done", 1)
    );
    assert_eq!(processes_with(&marker), 0);
}

// F109
#[test]
fn more_processes_than_allowed_end_the_call() {
    let mut sandbox = Sandbox::start();
    let marker = marker(3);
    let mut exec = sandbox.shell(&format!("while :; do sleep {marker} & done"));
    exec.limits.processes = 20;
    let outcome = sandbox.run(exec, b"");
    assert!(outcome.ended.too_many_processes);
    assert!(outcome.ended.tree_empty);
    assert_eq!(processes_with(&marker), 0);
    let exec = sandbox.exec(&["true"]);
    sandbox.run(exec, b"").succeeded();
}

// F109
#[test]
fn a_fork_bomb_ends_with_its_call() {
    if !is_root() {
        return; // Needs a pid namespace around it, in case it is not ended.
    }
    let mut sandbox = Sandbox::start();
    // Doubles nine times and stops there: a bomb without an end would take the machine's processes from other tests
    // before it is counted. In a Pod the kubelet's limit is the bound.
    let exec = sandbox.shell(
        "bomb() { if [ $1 -eq 0 ]; then sleep 1000; else bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; fi; }; bomb 9",
    );
    let outcome = sandbox.run(exec, b"");
    assert!(outcome.ended.too_many_processes, "{:?}", outcome.ended);
    assert!(outcome.ended.tree_empty);
    let exec = sandbox.exec(&["true"]);
    sandbox.run(exec, b"").succeeded();
}

// F044
#[test]
fn zombies_that_nobody_waits_for_do_no_harm() {
    let mut sandbox = Sandbox::start();
    let script = "import os, sys\nfor _ in range(1000):\n    if os.fork() == 0: os._exit(0)\nprint('done')";
    let exec = sandbox.exec(&["python3", "-c", script]);
    let outcome = sandbox.run(exec, b"").succeeded();
    assert_eq!(outcome.text(), "done");
    assert!(!outcome.ended.too_many_processes);
}

// F045
#[test]
fn a_program_that_kills_everyone_kills_only_itself() {
    if !is_root() {
        return; // Outside a pid namespace this would reach the machine if the confinement failed.
    }
    let mut sandbox = Sandbox::start();
    if sandbox.landlock_abi < 6 {
        return; // Signals cannot be scoped; see the next test.
    }
    let neighbour = sandbox.shell("echo ready; read x; echo $x");
    let id = neighbour.id;
    sandbox.send(&ToExecutor::Exec(Box::new(neighbour)));
    sandbox.wait_for_output(id, "ready");
    let exec = sandbox.shell("sleep 1000 & kill -9 -1; kill -9 1; kill -9 $PPID; echo survived");
    assert_eq!(sandbox.run(exec, b"").succeeded().text(), "survived");
    sandbox.close_stdin(id, b"alive\n");
    assert_eq!(sandbox.outcome(id).succeeded().text(), "alive");
}

#[test]
fn a_dead_supervisor_resets_the_sandbox_and_the_next_call_works() {
    let mut sandbox = Sandbox::start();
    let marker = marker(4);
    let execs: Vec<_> = (0..2)
        .map(|_| sandbox.shell(&format!("setsid sleep {marker} & echo ready; sleep {marker}")))
        .collect();
    let ids: Vec<_> = execs.iter().map(|exec| exec.id).collect();
    for exec in execs {
        let id = exec.id;
        sandbox.send(&ToExecutor::Exec(Box::new(exec)));
        sandbox.wait_for_output(id, "ready");
    }
    let supervisor = sandbox.children_of_executor()[0];
    rustix::process::kill_process(supervisor, rustix::process::Signal::KILL).unwrap();
    for id in ids {
        let outcome = sandbox.outcome(id);
        assert_eq!(outcome.ended.end, ProcessEnd::SandboxReset);
    }
    assert_eq!(processes_with(&marker), 0);
    assert_eq!(std::fs::read_dir(sandbox.path("tmp")).unwrap().count(), 0);
    let exec = sandbox.exec(&["true"]);
    sandbox.run(exec, b"").succeeded();
}
