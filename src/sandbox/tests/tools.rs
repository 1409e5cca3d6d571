//! Tools as calls of their own: under a supervisor as the runtime starts them, and as a command starts them.

use crate::harness::{Outcome, Sandbox, is_root, processes_with};
use agentrun_protocol::executor::{Exec, OUTPUT_VARIABLE, ProcessEnd};
use agentrun_protocol::tool::{Facts, PROGRAM, Session, ToolOutput};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A tool's call as the runtime makes it.
fn exec(sandbox: &mut Sandbox, words: &[&str]) -> Exec {
    let data = sandbox.path("data").display().to_string();
    let skills = sandbox.path("skills").display().to_string();
    let argv = [&[PROGRAM], words, &["--user-data", &data, "--skills", &skills]].concat();
    sandbox.exec(&argv)
}

fn stdin(session: &Session, arguments: &Value) -> Vec<u8> {
    let session = serde_json::to_string(session).unwrap();
    format!("{session}\n{arguments}").into_bytes()
}

fn call(sandbox: &mut Sandbox, tool: &str, arguments: &Value) -> ToolOutput {
    let exec = exec(sandbox, &["tool", tool, "--session-on-stdin"]);
    let outcome = sandbox.run(exec, &stdin(&Session::guarded(), arguments));
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    serde_json::from_slice(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome:?} {stderr}"))
}

fn shell(sandbox: &mut Sandbox, cwd: Option<&str>, command: &str) -> Outcome {
    let mut exec = exec(sandbox, &["shell"]);
    exec.io_files = true;
    let session = Session {
        cwd: cwd.map(str::to_owned),
        ..Session::default()
    };
    sandbox.run(exec, &stdin(&session, &json!({"command": command})))
}

#[test]
fn a_tool_is_a_call_with_one_document_as_its_answer() {
    let mut sandbox = Sandbox::start();
    let wrote = call(
        &mut sandbox,
        "write",
        &json!({"path": "a/b", "content": "needle\n"}),
    );
    assert!(wrote.ok, "{}", wrote.text);
    assert_eq!(wrote.seen.len(), 1);
    assert_eq!(fs::read(sandbox.path("data/workspace/a/b")).unwrap(), b"needle\n");
    let found = call(&mut sandbox, "grep", &json!({"pattern": "NEEDLE"}));
    assert_eq!(found.text, "/mnt/user-data/workspace/a/b:1:needle\n");
    let refused = call(
        &mut sandbox,
        "write_file",
        &json!({"path": "a/b", "content": "x"}),
    );
    assert_eq!(
        refused.facts,
        Facts::Refused {
            code: "unread".into()
        }
    );
    let listed = call(&mut sandbox, "ls", &json!({}));
    assert!(listed.text.contains("a/b  7 bytes"), "{}", listed.text);
}

#[test]
fn arguments_that_are_hostile_end_the_call_and_nothing_else() {
    let mut sandbox = Sandbox::start();
    let deep = format!("{}\n{}", r#"{"guard":true}"#, "[".repeat(10_000));
    for input in [
        &b""[..],
        b"\n{}",
        b"{}\n",
        deep.as_bytes(),
        b"{\"guard\":1}\n{}",
        b"\xff\xfe\n\0",
    ] {
        let exec = exec(&mut sandbox, &["tool", "read_file", "--session-on-stdin"]);
        let outcome = sandbox.run(exec, input);
        let output: ToolOutput = serde_json::from_slice(&outcome.stdout).unwrap();
        assert_eq!(
            output.facts,
            Facts::Refused {
                code: "arguments".into()
            },
            "{}",
            output.text
        );
        assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 1 });
    }
}

// F067: the walk goes by names, but neither a name nor a line from outside is ever shown.
#[test]
fn folders_that_become_links_during_a_walk_lead_nowhere() {
    let mut sandbox = Sandbox::start();
    let outside = sandbox.path("outside");
    let workspace = sandbox.path("data/workspace");
    for name in ["x", "y"] {
        fs::create_dir_all(outside.join(name)).unwrap();
        fs::write(outside.join(name).join("needle"), "needle-outside").unwrap();
    }
    fs::create_dir_all(workspace.join("real/x")).unwrap();
    fs::write(workspace.join("real/x/needle"), "needle-inside").unwrap();
    symlink(&outside, workspace.join("link")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (one, two) = (workspace.join("real"), workspace.join("link"));
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(Ordering::Relaxed) {
                rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &two, flags).unwrap();
            }
        });
        for _ in 0..30 {
            let found = call(&mut sandbox, "grep", &json!({"pattern": "needle"})).text;
            assert!(!found.contains("outside"), "{found}");
            let found = call(&mut sandbox, "glob", &json!({"pattern": "needle"})).text;
            let allowed = [
                "/mnt/user-data/workspace/real/x/needle",
                "/mnt/user-data/workspace/link/x/needle",
            ];
            let all_inside = found
                .lines()
                .all(|line| line.starts_with('[') || allowed.contains(&line));
            // Without Landlock only the content is safe.
            assert!(all_inside || sandbox.landlock_abi == 0, "{found}");
            let read = call(&mut sandbox, "read_file", &json!({"path": "real/x/needle"})).text;
            assert!(!read.contains("outside"), "{read}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_shell_is_the_call_itself() {
    let mut sandbox = Sandbox::start();
    let workspace = sandbox.path("data/workspace").display().to_string();
    let outcome = shell(
        &mut sandbox,
        None,
        "echo out; echo err >&2; mkdir -p deep; cd deep; cat; exit 7",
    );
    assert_eq!(outcome.ended.end, ProcessEnd::Exited { code: 7 });
    assert_eq!(outcome.stdout, b"out\nerr\n");
    let whereabouts = outcome.output_file.unwrap();
    assert_eq!(
        whereabouts,
        format!("{workspace}\0{workspace}/deep\n").into_bytes()
    );
    // The working folder is kept, variables are not; $? of a signal is the signal.
    let outcome = shell(
        &mut sandbox,
        Some("/mnt/user-data/workspace/deep"),
        "pwd; kill -9 $$",
    );
    assert_eq!(outcome.text(), format!("{workspace}/deep"));
    assert_eq!(outcome.ended.end, ProcessEnd::Signalled { signal: 9 });
    assert_eq!(
        outcome.output_file.unwrap(),
        format!("{workspace}/deep\0").into_bytes()
    );
    for gone in [
        "/mnt/user-data/workspace/none",
        "/nowhere",
        "relative",
        "/mnt/user-data/workspace/../uploads",
    ] {
        let outcome = shell(&mut sandbox, Some(gone), "pwd");
        assert_eq!(outcome.text(), workspace, "{gone}");
    }
}

// F046, F047
#[test]
fn shells_share_nothing_and_what_they_leave_running_ends() {
    let mut sandbox = Sandbox::start();
    let outcome = shell(
        &mut sandbox,
        None,
        "sleep 98765 & setsid sleep 98765 & A=1; echo $TMPDIR; echo x; exit 0",
    );
    let folder = outcome.text();
    let outcome = outcome.succeeded();
    assert_eq!(outcome.ended.killed_descendants, 2);
    assert_eq!(processes_with("sleep\u{0}98765"), 0);
    let second = shell(&mut sandbox, None, "echo ${A:-unset} $TMPDIR").succeeded();
    assert!(second.text().starts_with("unset /"));
    assert_ne!(
        second.text().trim_start_matches("unset "),
        folder.lines().next().unwrap()
    );
}

#[test]
fn a_command_of_the_sandbox_calls_tools_itself_with_a_session_in_a_file() {
    let mut sandbox = Sandbox::start();
    let data = sandbox.path("data").display().to_string();
    let tool = format!("{} tool", env!("CARGO_BIN_EXE_agentrun-sandbox"));
    let flags = format!("--user-data '{data}' --skills /nowhere --session \"$TMPDIR/session\"");
    let script = format!(
        "set -e; echo one > a\n\
         echo '{{\"path\":\"a\",\"content\":\"x\"}}' | {tool} write_file {flags} && exit 3\n\
         echo '{{\"path\":\"a\"}}' | {tool} read_file {flags}\n\
         echo '{{\"path\":\"a\",\"old_str\":\"one\",\"new_str\":\"two\"}}' | {tool} str_replace {flags} >/dev/null\n\
         echo '{{\"command\":\"cd / ; echo shell; sleep 98766 & exit 5\"}}' | {tool} bash {flags} && exit 4\n\
         echo '{{\"command\":\"pwd\"}}' | {tool} bash {flags}\n"
    );
    let exec = sandbox.shell(&script);
    let outcome = sandbox.run(exec, b"").succeeded();
    let answers: Vec<ToolOutput> = outcome
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let [unread, read, shell, pwd] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(
        unread.facts,
        Facts::Refused {
            code: "unread".into()
        }
    );
    assert_eq!(read.text, "     1\tone\n");
    assert_eq!(fs::read(sandbox.path("data/workspace/a")).unwrap(), b"two\n");
    assert!(
        shell
            .text
            .starts_with("shell\n[exit code 5]\n[the next call starts in /]"),
        "{}",
        shell.text
    );
    assert_eq!(pwd.text, "/\n");
    assert_eq!(processes_with("sleep\u{0}98766"), 0);
}

// F046
#[test]
fn a_shell_of_a_command_ends_at_its_limit_with_its_output() {
    let mut sandbox = Sandbox::start();
    let data = sandbox.path("data").display().to_string();
    let tool = format!(
        "{} tool bash --user-data '{data}'",
        env!("CARGO_BIN_EXE_agentrun-sandbox")
    );
    let arguments =
        json!({"command": "trap '' TERM; echo begun; while :; do sleep 0.05; done", "timeout": 1});
    let exec = sandbox.shell(&format!("{tool} <<'END'\n{arguments}\nEND\n"));
    let outcome = sandbox.run(exec, b"");
    let output: ToolOutput = serde_json::from_slice(&outcome.stdout).unwrap();
    assert!(
        output.text.starts_with("begun\n[ended at its time limit after "),
        "{}",
        output.text
    );
    let Facts::Bash(record) = output.facts else {
        panic!("no record");
    };
    assert!(record.timed_out && record.signal == Some(9), "{record:?}");
    assert!(record.duration_ms < 20_000);
}

#[test]
fn the_definitions_are_printed_for_who_asks() {
    let output = Command::new(env!("CARGO_BIN_EXE_agentrun-sandbox"))
        .arg("tools")
        .output()
        .unwrap();
    let definitions: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(definitions.len(), 9);
    assert_eq!(definitions[0]["name"], "bash");
}

/// Runs a tool on a file system of its own, in a mount namespace of its own.
fn on_own_disk(options: &str, prepare: &str, arguments: &Value) -> ToolOutput {
    let folder = tempfile::tempdir().unwrap();
    for name in ["uploads", "workspace", "outputs"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let data = folder.path().display();
    let binary = env!("CARGO_BIN_EXE_agentrun-sandbox");
    let script = format!(
        "mount -t tmpfs -o {options} tmpfs '{data}/workspace' && cd '{data}/workspace' && {{ {prepare} ; }} && \
         cat <<'END' | '{binary}' tool write_file --user-data '{data}'\n{arguments}\nEND\n"
    );
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .env_remove(OUTPUT_VARIABLE)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

// F082
#[test]
fn a_disk_that_is_full_has_no_file_left_or_is_read_only_is_named_and_the_old_file_stays() {
    if !is_root() {
        return;
    }
    let write = |path: &str| json!({"path": path, "content": "x".repeat(100_000)});
    let full = on_own_disk("size=64k", "true", &write("a"));
    assert_eq!(
        full.facts,
        Facts::Refused {
            code: "no_space".into()
        },
        "{}",
        full.text
    );
    assert!(full.text.contains("the disk is full"), "{}", full.text);
    let no_inode = on_own_disk("size=1m,nr_inodes=3", "touch b c", &write("a"));
    assert_eq!(
        no_inode.facts,
        Facts::Refused {
            code: "no_space".into()
        },
        "{}",
        no_inode.text
    );
    let read_only = on_own_disk("size=1m", "mount -o remount,ro .", &write("a"));
    assert_eq!(
        read_only.facts,
        Facts::Refused {
            code: "read_only".into()
        },
        "{}",
        read_only.text
    );
    let kept = on_own_disk("size=64k", "echo old > a", &write("a"));
    assert!(!kept.ok);
    let after = on_own_disk("size=1m", "true", &write("a"));
    assert!(after.ok, "{}", after.text);
}
