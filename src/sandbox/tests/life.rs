//! Starting, ending, and who is told what.

use crate::harness::{DEADLINE, Sandbox, eventually, is_root, processes_with};
use agentrun_protocol::executor::{ProcessEnd, StartError, ToExecutor, ToRuntime};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[test]
fn an_exit_code_is_reported() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("echo out; echo err >&2; exit 7");
    let outcome = sandbox.run(exec, b"");
    assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 7 });
    assert_eq!(outcome.stdout, b"out\n");
    assert_eq!(outcome.stderr, b"err\n");
    assert!(outcome.ended.tree_empty);
    assert!(outcome.ended.peak_memory_bytes > 0);
}

// F051
#[test]
fn a_signal_is_reported_as_that_signal() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("kill -9 $$");
    assert_eq!(
        sandbox.run(exec, b"").ended.end,
        ProcessEnd::Signalled { signal: 9 }
    );
}

// F046, F058
#[test]
fn a_killed_call_gets_its_grace_and_keeps_its_output() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    sandbox.kill(id, DEADLINE);
    let outcome = sandbox.outcome(id);
    assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 3 });
    assert_eq!(outcome.text(), "bye");
}

#[test]
fn who_ignores_the_first_signal_is_killed_after_the_grace() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    let asked = Instant::now();
    sandbox.kill(id, Duration::from_millis(300));
    assert_eq!(sandbox.outcome(id).ended.end, ProcessEnd::Signalled { signal: 9 });
    assert!(asked.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_stopped_process_is_killed_too() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("echo ready; kill -STOP $$");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    sandbox.kill(id, Duration::ZERO);
    assert_eq!(sandbox.outcome(id).ended.end, ProcessEnd::Signalled { signal: 9 });
}

#[test]
fn what_cannot_be_started_says_why_and_what_to_do() {
    let mut sandbox = Sandbox::start();
    let script = |sandbox: &Sandbox, name: &str, text: &str, mode| {
        let path = sandbox.path("data/workspace").join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let no_interpreter = script(&sandbox, "a", "#!/no/such/interpreter\n", 0o755);
    let windows = script(&sandbox, "b", "#!/bin/sh\r\necho\r\n", 0o755);
    let not_executable = script(&sandbox, "c", "#!/bin/sh\n", 0o644);
    let no_program = script(&sandbox, "d", "just text\n", 0o755);
    let cases = [
        ("no-such-program", StartError::NotFound, "PATH"),
        ("/no/such/program", StartError::NotFound, "does not exist"),
        (&no_interpreter, StartError::NotFound, "/no/such/interpreter"),
        (&windows, StartError::NotFound, "carriage return"),
        (&not_executable, StartError::PermissionDenied, "chmod +x"),
        (&no_program, StartError::NotExecutable, "#!/bin/sh"),
    ];
    for (program, expected, hint) in cases {
        let exec = sandbox.exec(&[program]);
        match sandbox.run(exec, b"").ended.end {
            ProcessEnd::NotStarted { error, message } => {
                assert_eq!(error, expected, "{program}: {message}");
                assert!(message.contains(hint), "{program}: {message}");
            }
            other => panic!("{program}: {other:?}"),
        }
    }
    let mut exec = sandbox.exec(&["true"]);
    exec.cwd = "/no/such/folder".into();
    let end = sandbox.run(exec, b"").ended.end;
    assert!(
        matches!(
            end,
            ProcessEnd::NotStarted {
                error: StartError::NoWorkingDir,
                ..
            }
        ),
        "{end:?}"
    );
}

// F047
#[test]
fn calls_run_side_by_side_in_folders_of_their_own() {
    let mut sandbox = Sandbox::start();
    let execs: Vec<_> = (0..3)
        .map(|_| sandbox.shell("echo $TMPDIR; touch $TMPDIR/a; read x; ls $TMPDIR"))
        .collect();
    let ids: Vec<_> = execs.iter().map(|exec| exec.id).collect();
    let mut folders = std::collections::BTreeSet::new();
    for exec in execs {
        let id = exec.id;
        sandbox.send(&ToExecutor::Exec(Box::new(exec)));
        let ToRuntime::Output { data, .. } = sandbox.receive() else {
            panic!("call {id} said nothing");
        };
        folders.insert(data.0);
    }
    assert_eq!(folders.len(), 3);
    for id in ids {
        sandbox.close_stdin(id, b"go\n");
        assert_eq!(sandbox.outcome(id).succeeded().text(), "a");
    }
}

#[test]
fn the_private_folder_is_removed_whatever_is_in_it() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell(
        "stat -c %a $HOME; mkdir -p $TMPDIR/a/b; touch $TMPDIR/a/b/c; chmod 0 $TMPDIR/a/b; chmod 500 $TMPDIR/a $TMPDIR",
    );
    assert_eq!(sandbox.run(exec, b"").succeeded().text(), "700");
    assert_eq!(fs::read_dir(sandbox.path("tmp")).unwrap().count(), 0);
}

// F107
#[test]
fn nothing_of_the_executors_environment_and_descriptors_reaches_a_program() {
    let mut sandbox = Sandbox::start_with(&[
        ("KUBERNETES_SERVICE_HOST", "x"),
        ("AGENTRUN_GATEWAY", "x"),
        ("PASSWORD", "x"),
        ("API_KEY", "named"),
    ]);
    let mut exec = sandbox.exec(&["/usr/bin/env"]);
    exec.inherit_env = vec!["API_KEY".into(), "AGENTRUN_GATEWAY".into()];
    exec.env.insert("MINE".into(), "1".into());
    let text = sandbox.run(exec, b"").succeeded().text();
    let names: std::collections::BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name)
        .collect();
    for name in [
        "PATH",
        "TMPDIR",
        "TMP",
        "TEMP",
        "HOME",
        "MINE",
        "API_KEY",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
    ] {
        assert!(names.contains(name), "{name} is missing: {names:?}");
    }
    for name in ["KUBERNETES_SERVICE_HOST", "AGENTRUN_GATEWAY", "PASSWORD", "CARGO"] {
        assert!(!names.contains(name), "{name} leaked");
    }
    let exec = sandbox.exec(&["/bin/ls", "/proc/self/fd"]);
    // 3 is the folder that `ls` reads.
    assert_eq!(sandbox.run(exec, b"").succeeded().text(), "0\n1\n2\n3");
}

// F042, F043
#[test]
fn the_end_of_the_connection_ends_everything() {
    let mut sandbox = Sandbox::start();
    let marker = format!("987654.{}", std::process::id());
    let exec = sandbox.shell(&format!(
        "setsid sleep {marker} & (sleep {marker} &); echo ready; sleep {marker}"
    ));
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    assert!(processes_with(&marker) > 0);
    let temp = sandbox.path("tmp");
    let keep = std::mem::replace(&mut sandbox.folder, tempfile::tempdir().unwrap());
    assert!(sandbox.disconnect().success());
    assert_eq!(processes_with(&marker), 0);
    assert_eq!(fs::read_dir(temp).unwrap().count(), 0);
    drop(keep);
}

#[test]
fn sigterm_ends_the_calls_and_says_so_before_the_executor_goes() {
    let mut sandbox = Sandbox::start();
    let exec = sandbox.shell("echo ready; sleep 1000");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    let executor = sandbox.executor_pid();
    rustix::process::kill_process(executor, rustix::process::Signal::TERM).unwrap();
    let ended = sandbox.outcome(id).ended;
    assert_eq!(ended.end, ProcessEnd::Signalled { signal: 15 });
    assert!(
        ended.stopped,
        "the runtime must not take it for the work's own end"
    );
    assert!(sandbox.try_receive().is_none());
}

#[test]
fn a_message_at_the_wrong_time_ends_the_executor() {
    let mut sandbox = Sandbox::start();
    sandbox.send(&ToExecutor::Expect {
        mounts: Vec::new(),
        landlock_required: false,
        secrets: agentrun_protocol::executor::SecretPlaces::default(),
    });
    assert!(sandbox.try_receive().is_none());
    eventually("the end of the executor", || {
        sandbox.process.try_wait().unwrap().is_some()
    });
}

#[test]
fn a_surprising_mount_is_refused() {
    if !is_root() {
        return; // Only PID 1 of a namespace checks its mounts.
    }
    let (message, mut sandbox) = Sandbox::refused();
    assert!(message.contains("/dev/nowhere"), "{message}");
    eventually("the end of the executor", || {
        sandbox.process.try_wait().unwrap().is_some()
    });
}

/// Whether the shared folders were emptied.
fn clear(sandbox: &mut Sandbox) -> bool {
    sandbox.send(&ToExecutor::Clear);
    match sandbox.receive() {
        ToRuntime::Cleared { clean } => clean,
        other => panic!("expected Cleared, got {other:?}"),
    }
}

#[test]
fn what_an_attempt_leaves_where_all_calls_can_write_is_removed_when_nothing_runs_any_more() {
    let mut sandbox = Sandbox::start();
    let temp = sandbox.path("tmp");
    let shm = sandbox.path("shm");
    let left = |folder: &std::path::Path| fs::read_dir(folder).unwrap().count();
    fs::write(shm.join("segment"), "x").unwrap();
    let script = format!(
        "cd {} && mkdir -p a/b && echo x > a/b/file && ln -s /etc/passwd link && chmod 0 a/b",
        temp.display()
    );
    let exec = sandbox.shell(&script);
    sandbox.run(exec, b"").succeeded();
    assert_eq!((left(&temp), left(&shm)), (2, 1));
    let exec = sandbox.shell("echo ready; cat");
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    assert!(!clear(&mut sandbox), "a call runs");
    assert_eq!((left(&temp), left(&shm)), (3, 1));
    sandbox.close_stdin(id, b"");
    sandbox.outcome(id).succeeded();
    assert!(clear(&mut sandbox));
    assert_eq!((left(&temp), left(&shm)), (0, 0));
    assert!(fs::exists("/etc/passwd").unwrap());
}
