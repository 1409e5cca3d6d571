//! The supervisor of one call: starts the program, moves its input and output, counts its processes,
//! ends it when told to, and goes when nothing of it is left.

use crate::calls::without_work;
use crate::environment::{INPUT_FILE, OUTPUT_FILE};
use crate::explain::NotStarted;
use crate::job::Job;
use crate::launch;
use crate::peer::{BUSY, Peer};
use crate::spool::{Spool, SpoolError};
use crate::tree::{self, Felled, Reaped};
use crate::work::Work;
use crate::{complain, confine, memory, millis, output_file, scratch, sys, timespec, usage};
use agentrun_protocol::executor::{Ended, ProcessEnd, StartError, ToExecutor, ToRuntime};
use agentrun_protocol::frame::FrameError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal, getpid, set_child_subreaper, set_dumpable_behavior};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Reads that empty a full pipe.
const PIPE_READS: u32 = 4;

/// Why a call cannot be supervised. PID 1 sees a supervisor that died, and resets the sandbox.
#[derive(Debug, thiserror::Error)]
enum SuperviseError {
    #[error("the connection to the executor ended")]
    ExecutorGone,
    #[error("cannot understand the executor")]
    Frame(#[from] FrameError),
    #[error("a system call failed: {0}")]
    System(#[from] io::Error),
}

impl From<Errno> for SuperviseError {
    fn from(error: Errno) -> Self {
        SuperviseError::System(error.into())
    }
}

/// Runs one call; the connection to PID 1 is stdin.
pub(crate) fn supervise() -> ExitCode {
    let result = Supervisor::prepare().and_then(|mut supervisor| {
        let result = supervisor.run();
        if result.is_err() {
            tree::fell(supervisor.alone, |_, _| {});
        }
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(SuperviseError::ExecutorGone) => ExitCode::FAILURE,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

struct Supervisor {
    executor: Peer,
    signals: OwnedFd,
    job: Job,
    spool: Spool,
    /// Nobody but our descendants gets our signals, even those to everyone.
    alone: bool,
    kill: Option<Kill>,
    refused_stdin: Option<SpoolError>,
    blocked_on_stdin: bool,
    /// The program has answered a request, and its caller waits for us to clean up.
    resting: bool,
    /// Its processes were stopped.
    frozen: bool,
}

/// An end that was asked for.
#[derive(Clone, Copy)]
struct Kill {
    /// When patience ends.
    deadline: Instant,
    /// Whether the processes were told.
    told: bool,
}

impl Supervisor {
    fn prepare() -> Result<Supervisor, SuperviseError> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_child_subreaper(Some(getpid()))?;
        let control = io::stdin().as_fd().try_clone_to_owned()?;
        let mut executor = Peer::new(UnixStream::from(control))?;
        let signals = sys::signal_fd(&[Signal::CHILD])?;
        let job = loop {
            if let Some(job) = executor.next::<Job>()? {
                break job;
            }
            if !executor.is_open() {
                return Err(SuperviseError::ExecutorGone);
            }
            poll(&mut [executor.interest(true)], None)?;
            executor.receive();
        };
        let spool = Spool::create(&job.scratch, job.exec.io_files.then_some(INPUT_FILE))?;
        let alone = confine::confine_own_signals() && job.contained;
        Ok(Supervisor {
            executor,
            signals,
            job,
            spool,
            alone,
            kill: None,
            refused_stdin: None,
            blocked_on_stdin: false,
            resting: false,
            frozen: false,
        })
    }

    fn run(&mut self) -> Result<(), SuperviseError> {
        let begin = Instant::now();
        let kills = memory::kills();
        let end = self.gather()?;
        let ended = match end {
            Some(end) => without_work(self.job.exec.id, end, begin.elapsed()),
            None => match launch::start(&self.job) {
                Ok(started) => {
                    let mut ended = self.work(Work::new(started, self.job.exec.output_bytes), begin)?;
                    ended.killed_for_memory = memory::kills() > kills;
                    ended
                }
                Err(error) => {
                    let cause = format!(
                        "no process could be made: {error}; the sandbox has too many, or no memory left"
                    );
                    let end = not_started(NotStarted::new(StartError::NoResources, cause));
                    without_work(self.job.exec.id, end, begin.elapsed())
                }
            },
        };
        output_file::send(&self.job, OUTPUT_FILE, &mut self.executor)?;
        if let Err(error) = scratch::remove(&self.job.scratch) {
            complain(&format!(
                "{} could not be removed: {error}",
                self.job.scratch.display()
            ));
        }
        self.executor.send(&ToRuntime::Ended(Box::new(ended)))?;
        self.say_all()
    }

    /// Waits for the whole input when the program gets it as a file. Gives an end if it shall not start.
    fn gather(&mut self) -> Result<Option<ProcessEnd>, SuperviseError> {
        // The first messages may have come together with the job.
        self.listen()?;
        while self.job.exec.io_files && !self.spool.is_complete() {
            if self.kill.is_some() {
                return Ok(Some(ProcessEnd::Signalled {
                    signal: Signal::TERM.as_raw(),
                }));
            }
            if let Some(error) = self.refused_stdin.take() {
                return Ok(Some(refused(&error)));
            }
            poll(&mut [self.executor.interest(true)], None)?;
            self.listen()?;
        }
        Ok(None)
    }

    /// From the start of the program to the proof that nothing of it is left.
    fn work(&mut self, mut work: Work, begin: Instant) -> Result<Ended, SuperviseError> {
        while !self.is_over(&work) {
            self.wait(&work)?;
            self.listen()?;
            self.feed(&mut work);
            self.forward(&mut work)?;
            self.rest(&mut work)?;
            sys::received(&self.signals);
            while let Reaped::One(pid, status) = tree::reap() {
                work.saw(pid, status);
            }
            self.count(&mut work);
            self.tell();
        }
        let was_alive = work.end.is_none();
        let mut felled = tree::fell(self.alone, |pid, status| work.saw(pid, status));
        // The first process is no descendant that outlived it.
        felled.killed = felled.killed.saturating_sub(was_alive.into());
        self.drain(&mut work, felled.empty)?;
        Ok(self.ended(work, felled, begin))
    }

    fn is_over(&self, work: &Work) -> bool {
        let patience_is_over = self.kill.is_some_and(|kill| Instant::now() >= kill.deadline);
        work.end.is_some() || work.too_many || patience_is_over || self.refused_stdin.is_some()
    }

    fn wait(&self, work: &Work) -> Result<(), SuperviseError> {
        let mut until = work.next_count;
        if let Some(kill) = self.kill {
            until = until.min(kill.deadline);
        }
        let timeout = timespec(until.saturating_duration_since(Instant::now()));
        let mut fds = vec![
            self.executor.interest(true),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if self.executor.backlog() < BUSY {
            let pipes = work.outputs.iter().filter_map(|output| output.pipe.as_ref());
            fds.extend(pipes.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        }
        if let Some(stdin) = work.stdin.as_ref().filter(|_| self.spool.has_more()) {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn listen(&mut self) -> Result<(), SuperviseError> {
        self.executor.flush();
        self.executor.receive();
        while let Some(message) = self.executor.next()? {
            match message {
                ToExecutor::Stdin { data, last, .. } => {
                    if std::mem::take(&mut self.frozen) {
                        tree::signal_all(Signal::CONT);
                    }
                    let added = self.spool.add(&data.0, last, &self.job.scratch);
                    self.refused_stdin = self.refused_stdin.take().or(added.err());
                }
                ToExecutor::Kill { grace_ms, .. } => {
                    let deadline = Instant::now() + Duration::from_millis(grace_ms);
                    let earlier = self.kill.unwrap_or(Kill {
                        deadline,
                        told: false,
                    });
                    self.kill = Some(Kill {
                        deadline: deadline.min(earlier.deadline),
                        ..earlier
                    });
                }
                ToExecutor::Rest { .. } => self.resting = true,
                ToExecutor::Expect { .. } | ToExecutor::Exec(_) | ToExecutor::Clear => {}
            }
        }
        if self.executor.is_open() {
            Ok(())
        } else {
            Err(SuperviseError::ExecutorGone)
        }
    }

    fn feed(&mut self, work: &mut Work) {
        let Some(stdin) = &work.stdin else {
            return;
        };
        let nobody_reads = self.spool.feed(stdin).is_err();
        if nobody_reads || self.spool.is_drained() {
            work.stdin = None;
        }
    }

    /// Forwards what the pipes hold, as long as PID 1 takes it.
    fn forward(&mut self, work: &mut Work) -> Result<(), SuperviseError> {
        for output in &mut work.outputs {
            if self.executor.backlog() < BUSY {
                output.forward(self.job.exec.id, &mut self.executor)?;
            }
        }
        Ok(())
    }

    /// Between two requests: what was written so far belongs to the first, and so do the files. Nothing runs until the
    /// next one comes, so that nothing can happen behind the back of a result.
    fn rest(&mut self, work: &mut Work) -> Result<(), SuperviseError> {
        if !std::mem::take(&mut self.resting) {
            return Ok(());
        }
        self.frozen = true;
        let still = tree::freeze();
        for output in &mut work.outputs {
            // A whole pipe. Who writes all the time would keep us here for ever.
            let mut reads = 0;
            while reads < PIPE_READS && output.forward(self.job.exec.id, &mut self.executor)? {
                reads += 1;
            }
        }
        let empty = scratch::clear(&self.job.scratch).unwrap_or_else(|error| {
            complain(&format!(
                "{} could not be emptied: {error}",
                self.job.scratch.display()
            ));
            false
        });
        let usage = usage::since_last_time();
        self.executor.send(&ToRuntime::Rested {
            id: self.job.exec.id,
            peak_memory_bytes: usage.peak_memory_bytes,
            cpu_ms: millis(usage.cpu),
            clean: still && empty,
        })?;
        Ok(())
    }

    /// Forwards the rest. When all writers are dead, that is at most a pipe's size; else it might never end.
    fn drain(&mut self, work: &mut Work, all_dead: bool) -> Result<(), SuperviseError> {
        for output in &mut work.outputs {
            while output.forward(self.job.exec.id, &mut self.executor)? && all_dead {}
        }
        Ok(())
    }

    fn count(&self, work: &mut Work) {
        let now = Instant::now();
        if now < work.next_count {
            return;
        }
        let allowed = self.job.exec.limits.processes as usize;
        work.counted(tree::descendants(allowed + 1).len(), allowed, now);
    }

    /// Passes the wish to end on to the processes, once.
    fn tell(&mut self) {
        let Some(kill) = self.kill.as_mut().filter(|kill| !kill.told) else {
            return;
        };
        kill.told = true;
        self.blocked_on_stdin = !self.spool.is_complete() && tree::reads_stdin();
        if kill.deadline > Instant::now() {
            tree::signal_all(Signal::TERM);
            // Who is stopped could not act on it.
            tree::signal_all(Signal::CONT);
        }
    }

    fn ended(&mut self, work: Work, felled: Felled, begin: Instant) -> Ended {
        let usage = sys::usage_of_children();
        let start_error = work.report.start_error();
        let refused_stdin = self.refused_stdin.take();
        let [stdout, stderr] = work.outputs;
        Ended {
            id: self.job.exec.id,
            end: start_error
                .map(not_started)
                .or(refused_stdin.as_ref().map(refused))
                .or(work.end)
                .unwrap_or(ProcessEnd::Signalled {
                    signal: Signal::KILL.as_raw(),
                }),
            duration_ms: millis(begin.elapsed()),
            peak_memory_bytes: usage.peak_memory_bytes,
            cpu_ms: millis(usage.cpu),
            stdout: stdout.capture.end(),
            stderr: stderr.capture.end(),
            killed_descendants: felled.killed,
            tree_empty: felled.empty,
            too_many_processes: work.too_many,
            killed_for_memory: false,
            stopped: false,
            blocked_on_stdin: self.blocked_on_stdin,
        }
    }

    /// Stays until PID 1 has taken everything.
    fn say_all(&mut self) -> Result<(), SuperviseError> {
        while self.executor.backlog() > 0 {
            if !self.executor.is_open() {
                return Err(SuperviseError::ExecutorGone);
            }
            poll(&mut [self.executor.interest(false)], None)?;
            self.executor.flush();
        }
        Ok(())
    }
}

fn not_started(cause: NotStarted) -> ProcessEnd {
    ProcessEnd::NotStarted {
        error: cause.error,
        message: cause.message,
    }
}

fn refused(error: &SpoolError) -> ProcessEnd {
    let message =
        std::error::Error::source(error).map_or(error.to_string(), |source| format!("{error}: {source}"));
    not_started(NotStarted::new(StartError::NoResources, message))
}
