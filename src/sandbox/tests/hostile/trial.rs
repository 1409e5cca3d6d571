//! One hostile program, and whether everything around it is as it was.

use crate::harness::{DEADLINE, Outcome, Sandbox, eventually};
use crate::place::Place;
use agentrun_hostile::{Form, Program};
use agentrun_protocol::executor::{CallId, ProcessEnd, ToExecutor};
use agentrun_protocol::work::FileAccess;
use libtest_mimic::Failed;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of everything that a program leaves where it must not.
const MARKER: &str = "agentrun-hostile-marker";
/// Folders of the machine that are looked into for it.
const OUTSIDE: [&str; 11] = [
    "/",
    "/etc",
    "/usr",
    "/usr/local/bin",
    "/run",
    "/var",
    "/var/tmp",
    "/tmp",
    "/dev",
    "/home",
    "/opt",
];
const CANARY: &str = "the neighbour's";
/// The most that the executor and its supervisors may use, whatever is done to them.
const EXECUTOR_MEMORY: u64 = 12 << 20;

pub(crate) fn run(program: &Program, number: u32) -> Result<(), Failed> {
    let result = catch_unwind(AssertUnwindSafe(|| check(program, number)));
    result.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_default())
    })?;
    Ok(())
}

fn check(program: &Program, number: u32) -> Result<(), String> {
    let place = Place::new(number);
    let mut sandbox = Sandbox::start_as(|folder, socket| place.executor(folder, socket));
    let before = Surroundings::make(&sandbox, &place);
    let neighbour = start_neighbour(&mut sandbox);

    let (outcome, killed) = execute(&mut sandbox, program);
    let end = end_of(&outcome, killed);
    let output = format!("{}\n{}", text(&outcome.stdout), text(&outcome.stderr));
    program.judge(Form::Local, &end, &output)?;
    if !outcome.ended.tree_empty {
        return Err(format!("{} left processes", program.name));
    }

    sandbox.close_stdin(neighbour, b"alive\n");
    expect(
        "the neighbour said",
        &*sandbox.outcome(neighbour).succeeded().text(),
        "alive",
    )?;
    run_another(&mut sandbox)?;
    let peak = sandbox.peak_memory();
    if peak > EXECUTOR_MEMORY {
        return Err(format!("the executor used {peak} bytes"));
    }
    let verdict = before.compare(&sandbox, &place);
    // Waited for, so that its control group can go.
    sandbox.disconnect();
    verdict
}

fn execute(sandbox: &mut Sandbox, program: &Program) -> (Outcome, bool) {
    let mut exec = sandbox.exec(&[program.interpreter, "-c", &program.text]);
    exec.io_files = true;
    exec.output_bytes = 64 << 10;
    for (variable, folder) in [("HOSTILE_DATA", "data"), ("HOSTILE_TEMP", "tmp")] {
        exec.env
            .insert(variable.into(), sandbox.path(folder).display().to_string());
    }
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.close_stdin(id, b"");
    assert!(
        program.timeout + Duration::from_secs(20) < DEADLINE,
        "the test would not wait so long"
    );
    sandbox.outcome_within(id, program.timeout)
}

/// In the words of a sub-task's status.
fn end_of(outcome: &Outcome, killed: bool) -> String {
    let ended = &outcome.ended;
    let end = match &ended.end {
        _ if killed => "Timeout/DeadlineExceeded",
        _ if ended.too_many_processes => "Error/TooManyProcesses",
        ProcessEnd::Exited { code: 0 } => "Success/Completed",
        ProcessEnd::Signalled {
            signal: libc::SIGKILL,
        } => "Error/Signal9",
        ProcessEnd::Exited { .. } | ProcessEnd::Signalled { .. } => "Error/ExitCode",
        ProcessEnd::NotStarted { error, message } => return format!("Error/{error:?}: {message}"),
        ProcessEnd::SandboxReset => "Error/SandboxReset",
    };
    end.to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A call of somebody else that waits for a line.
fn start_neighbour(sandbox: &mut Sandbox) -> CallId {
    let mut exec = sandbox.shell("echo ready; read line; echo $line");
    exec.env
        .insert("HOSTILE_SECRET".into(), "the neighbour's secret".into());
    let id = exec.id;
    sandbox.send(&ToExecutor::Exec(Box::new(exec)));
    sandbox.wait_for_output(id, "ready");
    id
}

/// A function without files: it must find nothing of what was planted.
fn run_another(sandbox: &mut Sandbox) -> Result<(), String> {
    let script = "import json, os; print(json.dumps(sorted(os.listdir(os.environ['HOME']))))";
    let mut exec = sandbox.exec(&["python3", "-c", script]);
    exec.access = FileAccess::None;
    exec.cwd = "/".into();
    expect(
        "the next call said",
        &*sandbox.run(exec, b"").succeeded().text(),
        "[]",
    )
}

/// What must be the same afterwards.
struct Surroundings {
    uploads: BTreeSet<(PathBuf, String)>,
    executor: rustix::process::Pid,
    standing: String,
}

impl Surroundings {
    fn make(sandbox: &Sandbox, place: &Place) -> Surroundings {
        fs::write(sandbox.path("data/uploads/canary"), CANARY).unwrap();
        fs::write(sandbox.path("canary"), CANARY).unwrap();
        // As in a Pod: the executor's user cannot write it, and its folder is a mount that is read-only.
        std::os::unix::fs::chown(
            sandbox.path("data/uploads/canary"),
            Some(place.user),
            Some(place.user),
        )
        .unwrap();
        Surroundings::of(sandbox)
    }

    fn of(sandbox: &Sandbox) -> Surroundings {
        let executor = sandbox.executor_pid();
        Surroundings {
            uploads: contents(&sandbox.path("data/uploads")),
            executor,
            standing: standing(executor),
        }
    }

    fn compare(&self, sandbox: &Sandbox, place: &Place) -> Result<(), String> {
        let now = Surroundings::of(sandbox);
        expect("uploads hold", &now.uploads, &self.uploads)?;
        expect("the executor is process", &now.executor, &self.executor)?;
        expect("the executor has", &now.standing, &self.standing)?;
        let canary = text(&fs::read(sandbox.path("canary")).unwrap());
        expect("the file beside the data holds", &*canary, CANARY)?;
        let temp = fs::read_dir(sandbox.path("tmp")).unwrap().flatten();
        let private = temp.filter(|entry| entry.file_name().to_string_lossy().starts_with("call-"));
        expect("private folders left", &private.count(), &0)?;
        for folder in OUTSIDE {
            if Path::new(folder).join(MARKER).symlink_metadata().is_ok() {
                return Err(format!("{folder}/{MARKER} was made"));
            }
        }
        eventually("only the executor is left of the user's processes", || {
            let left = place.processes();
            left.len() == 1 && left[0].ends_with("agentrun-sandbo")
        });
        Ok(())
    }
}

/// Names and contents of a folder's files.
fn contents(folder: &Path) -> BTreeSet<(PathBuf, String)> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| (entry.path(), fs::read_to_string(entry.path()).unwrap_or_default()))
        .collect()
}

/// What a process of the same user could have done to the executor: priority, scheduling, processors, limits.
fn standing(executor: rustix::process::Pid) -> String {
    let file = |name: &str| {
        fs::read_to_string(format!("/proc/{}/{name}", executor.as_raw_nonzero())).unwrap_or_default()
    };
    let stat = file("stat");
    // From the end of the name on: priority and niceness, then scheduling class.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_ascii_whitespace()
        .collect();
    let status = file("status");
    let processors = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list"))
        .unwrap_or_default();
    format!(
        "{} {} {} {processors} {} {}",
        fields[15],
        fields[16],
        fields[38],
        file("oom_score_adj"),
        file("limits")
    )
}

fn expect<T: PartialEq + std::fmt::Debug + ?Sized>(
    what: &str,
    found: &T,
    expected: &T,
) -> Result<(), String> {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{what} {found:?}, not {expected:?}"))
    }
}
