//! The tool `bash` for callers inside the sandbox: starts the shell as a child, and ends all that it leaves.

use crate::options::Areas;
use crate::tools::bash::{self, GRACE, Recorder, Shell, Whereabouts, recorded_command};
use crate::tools::refusal;
use crate::tree::{self, Reaped};
use crate::{millis, scratch, timespec};
use agentrun_protocol::executor::OUTPUT_VARIABLE;
use agentrun_protocol::tool::{BashRecord, PROGRAM, Session, ToolOutput};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, getpid, pidfd_open, set_child_subreaper};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The most bytes of the file that says where the shell was.
const MAX_WHEREABOUTS: u64 = 16 * 1024;
const CHUNK: usize = 64 * 1024;

/// Runs the shell. Gives the answer, and where the next one starts.
pub(crate) fn run(arguments: &[u8], session: &Session, areas: &Areas) -> (ToolOutput, Option<String>) {
    let shell = match Shell::parse(arguments) {
        Ok(shell) => shell,
        Err(error) => return (refusal(error.code(), error.to_string()), None),
    };
    let ran = scratch::create(&std::env::temp_dir()).and_then(|folder| {
        let ran = run_in(&shell, arguments, session, areas, &folder);
        scratch::remove(&folder).and(ran)
    });
    match ran {
        Ok((record, whereabouts)) => {
            let moved = whereabouts.end.filter(|end| *end != record.cwd);
            let gone = session.cwd.as_deref().filter(|wanted| *wanted != record.cwd);
            let answer = bash::answer(record.clone(), moved.as_deref(), gone);
            (answer, moved.or(Some(record.cwd)))
        }
        Err(error) => (
            refusal("system", format!("no shell could be started: {error}")),
            None,
        ),
    }
}

fn run_in(
    shell: &Shell,
    arguments: &[u8],
    session: &Session,
    areas: &Areas,
    folder: &Path,
) -> io::Result<(BashRecord, Whereabouts)> {
    let file = folder.join("whereabouts");
    let begin = Instant::now();
    let (child, output) = start(arguments, session, areas, &file)?;
    let mut running = Running {
        child,
        output: Some(output),
        recorder: Recorder::default(),
        end: None,
    };
    let timed_out = running.watch(begin + shell.time)?;
    let mut whereabouts = Vec::new();
    if let Ok(file) = fs::File::open(&file) {
        file.take(MAX_WHEREABOUTS).read_to_end(&mut whereabouts)?;
    }
    let whereabouts = Whereabouts::parse(&whereabouts, &areas.roots());
    let mut record = BashRecord {
        command: recorded_command(&shell.command),
        cwd: whereabouts.start.clone().unwrap_or_default(),
        exit_code: running.end.and_then(WaitStatus::exit_status),
        signal: running.end.and_then(WaitStatus::terminating_signal),
        timed_out,
        duration_ms: millis(begin.elapsed()),
        ..BashRecord::default()
    };
    running.recorder.finish(&mut record);
    Ok((record, whereabouts))
}

fn start(arguments: &[u8], session: &Session, areas: &Areas, file: &Path) -> io::Result<(Pid, OwnedFd)> {
    set_child_subreaper(Some(getpid()))?;
    let (output, theirs) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&output, true)?;
    let complaints = theirs.try_clone()?;
    let mut child = Command::new(PROGRAM)
        .arg("shell")
        .args(areas.arguments())
        .env(OUTPUT_VARIABLE, file)
        .stdin(Stdio::piped())
        .stdout(theirs)
        .stderr(complaints)
        .process_group(0)
        .spawn()?;
    let mut line = serde_json::to_vec(session)?;
    line.push(b'\n');
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(&line)?;
        stdin.write_all(arguments)?;
    }
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or(io::ErrorKind::NotFound)?, output))
}

struct Running {
    child: Pid,
    output: Option<OwnedFd>,
    recorder: Recorder,
    end: Option<WaitStatus>,
}

impl Running {
    /// Until nothing of the shell is left. Returns whether it was ended at its limit.
    fn watch(&mut self, deadline: Instant) -> io::Result<bool> {
        let handle = pidfd_open(self.child, PidfdFlags::empty())?;
        self.until(&handle, deadline)?;
        let timed_out = self.end.is_none();
        if timed_out {
            tree::signal_all(Signal::TERM);
            tree::signal_all(Signal::CONT);
            self.until(&handle, Instant::now() + GRACE)?;
        }
        let child = self.child;
        let mut end = self.end;
        tree::fell(false, |pid, status| {
            if pid == child {
                end = Some(status);
            }
        });
        self.end = end;
        while self.read() {}
        Ok(timed_out)
    }

    fn until(&mut self, handle: &OwnedFd, deadline: Instant) -> io::Result<()> {
        while self.end.is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return Ok(());
            }
            let mut fds = vec![PollFd::new(handle, PollFlags::IN)];
            fds.extend(
                self.output
                    .as_ref()
                    .map(|output| PollFd::new(output, PollFlags::IN)),
            );
            match poll(&mut fds, Some(&timespec(left))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.read();
            while let Reaped::One(pid, status) = tree::reap() {
                if pid == self.child {
                    self.end = Some(status);
                }
            }
        }
        Ok(())
    }

    /// Returns whether there may be more at once.
    fn read(&mut self) -> bool {
        let Some(output) = &self.output else {
            return false;
        };
        let mut buffer = vec![0; CHUNK];
        match rustix::io::read(output, &mut buffer) {
            Ok(count) if count > 0 => {
                self.recorder.push(&buffer[..count]);
                true
            }
            Err(Errno::AGAIN | Errno::INTR) => false,
            Ok(_) | Err(_) => {
                self.output = None;
                false
            }
        }
    }
}
