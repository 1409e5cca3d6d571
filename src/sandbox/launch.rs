//! From `fork` to `exec`: the forked copy of the supervisor becomes the program.

use crate::confine;
use crate::explain::{self, NotStarted};
use crate::job::Job;
use crate::program::{self, Heap};
use crate::{environment, sys};
use agentrun_protocol::executor::{Exec, StartError};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, set_dumpable_behavior, setpriority_process, setrlimit, setsid,
};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Priority of programs: our own processes keep 0, which weighs nine times as much.
const NICE: i32 = 10;

/// Our ends of the pipes of a started program.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) report: Report,
}

/// A pipe that `exec` closes: what is in it, went wrong before.
#[derive(Debug)]
pub(crate) struct Report(OwnedFd);

impl Report {
    /// Why the program was not started. Only the end of the process makes the answer final.
    pub(crate) fn start_error(self) -> Option<NotStarted> {
        let mut text = Vec::new();
        // It does not block; all that will ever be written was written.
        let _ = File::from(self.0).read_to_end(&mut text);
        serde_json::from_slice(&text).ok()
    }
}

/// Forks, and lets the copy become the program of the job.
pub(crate) fn start(job: &Job) -> io::Result<Started> {
    let pipe = || pipe_with(PipeFlags::CLOEXEC);
    let (child_stdin, stdin) = pipe()?;
    let (stdout, child_stdout) = pipe()?;
    let (stderr, child_stderr) = pipe()?;
    let (report, child_report) = pipe()?;
    for end in [&stdin, &stdout, &stderr, &report] {
        rustix::io::ioctl_fionbio(end, true)?;
    }
    let streams = [child_stdin, child_stdout, child_stderr];
    let pid = sys::fork(|| {
        let failure = become_program(job, &streams);
        let text = serde_json::to_vec(&failure).unwrap_or_default();
        let _ = File::from(child_report).write_all(&text);
    })?;
    Ok(Started {
        pid,
        stdin,
        stdout,
        stderr,
        report: Report(report),
    })
}

/// Returns only what went wrong.
fn become_program(job: &Job, streams: &[OwnedFd; 3]) -> NotStarted {
    match prepare(job, streams) {
        Ok(image) => image.replace_process(),
        Err(failure) => failure,
    }
}

/// All that `execve` needs.
struct Image {
    program: CString,
    argv: Vec<CString>,
    environment: Vec<CString>,
}

impl Image {
    fn replace_process(&self) -> NotStarted {
        let argv: Vec<&CStr> = self.argv.iter().map(CString::as_c_str).collect();
        let environment: Vec<&CStr> = self.environment.iter().map(CString::as_c_str).collect();
        let error = sys::execve(&self.program, &argv, &environment);
        let program = self.program.to_string_lossy();
        explain::exec_failed(Path::new(program.as_ref()), &error)
    }
}

/// In an order in which each step is still allowed: the confinement comes last.
fn prepare(job: &Job, streams: &[OwnedFd; 3]) -> Result<Image, NotStarted> {
    let Job {
        exec,
        settings,
        scratch,
        landlock_required,
        ..
    } = job;
    setsid().map_err(|error| NotStarted::unconfined("an own session", error))?;
    for (stream, number) in streams.iter().zip(0..) {
        sys::become_stdio(stream, number).map_err(|error| NotStarted::unconfined("stdio", error))?;
    }
    sys::close_others_on_exec().map_err(|error| NotStarted::unconfined("closing of descriptors", error))?;
    sys::reset_signals().map_err(|error| NotStarted::unconfined("signal defaults", error))?;
    rustix::process::chdir(exec.cwd.as_str()).map_err(|error| explain::no_working_dir(&exec.cwd, error))?;
    let (image, heap) = image(exec, job.environment.clone())?;
    be_killed_first();
    // Inside of the container only: a crowd of programs must not keep its supervisor from counting and ending it.
    let _ = setpriority_process(None, NICE);
    limit(exec, heap).map_err(|error| NotStarted::unconfined("a resource limit", error))?;
    confine::confine(exec, settings, scratch, *landlock_required)?;
    Ok(image)
}

fn image(exec: &Exec, mut variables: BTreeMap<String, String>) -> Result<(Image, Heap), NotStarted> {
    let Some(name) = exec.argv.first().filter(|name| !name.is_empty()) else {
        return Err(NotStarted::new(
            StartError::NotFound,
            "the call names no program: argv is empty",
        ));
    };
    let path = variables.get("PATH").map_or("", String::as_str);
    let file =
        program::find(name, path, Path::new(&exec.cwd)).ok_or_else(|| explain::not_in_path(name, path))?;
    let heap = program::heap(&file);
    if let Some(bytes) = exec.limits.memory_bytes {
        environment::limit_heap(&mut variables, heap, bytes);
    }
    let c_string = |text: String| {
        CString::new(text).map_err(|error| {
            let message = format!("an argument or variable holds a zero byte: {error}");
            NotStarted::new(StartError::NotExecutable, message)
        })
    };
    let image = Image {
        program: c_string(file.display().to_string())?,
        argv: exec
            .argv
            .iter()
            .cloned()
            .map(c_string)
            .collect::<Result<_, _>>()?,
        environment: variables
            .into_iter()
            .map(|(name, value)| c_string(format!("{name}={value}")))
            .collect::<Result<_, _>>()?,
    };
    Ok((image, heap))
}

/// When memory is used up, the kernel shall take a program, and not the executor, its supervisors or the runtime. It is
/// a wish: where it cannot be made, the kernel chooses by size, which is nearly always the same.
fn be_killed_first() {
    // Only who may be looked into owns its files in /proc. The program may be, too, from its `exec` on.
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

fn limit(exec: &Exec, heap: Heap) -> rustix::io::Result<()> {
    let limits = &exec.limits;
    let set = |resource, soft: u64, hard: u64| {
        // A container that has less already keeps it.
        let most = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        setrlimit(
            resource,
            Rlimit {
                current: Some(soft.min(most)),
                maximum: Some(hard.min(most)),
            },
        )
    };
    set(Resource::Core, 0, 0)?;
    set(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    set(Resource::Nofile, limits.open_files, limits.open_files)?;
    if let Some(seconds) = limits.cpu_seconds {
        // SIGXCPU at the limit, SIGKILL for who ignores it a second later.
        set(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    }
    match limits.memory_bytes {
        Some(bytes) if heap == Heap::AddressSpace => set(Resource::As, bytes, bytes),
        _ => Ok(()),
    }
}
