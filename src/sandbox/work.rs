//! The running program of a call, as its supervisor holds it.

use crate::capture::Capture;
use crate::launch::{Report, Started};
use crate::peer::Peer;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{CallId, ProcessEnd, Stream, ToRuntime};
use agentrun_protocol::frame::FrameError;
use rustix::io::Errno;
use rustix::process::{Pid, WaitStatus};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How often processes are counted; and how often when there are many, since a fork bomb doubles quickly.
const CALM: Duration = Duration::from_millis(25);
const ALERT: Duration = Duration::from_millis(3);
/// One read from a pipe.
const CHUNK: usize = 64 * 1024;

/// The first process, its pipes, and what is known about them.
pub(crate) struct Work {
    /// Says why the program did not start.
    pub(crate) report: Report,
    /// Until everything was written, or nobody reads it any more.
    pub(crate) stdin: Option<OwnedFd>,
    /// stdout and stderr.
    pub(crate) outputs: [Output; 2],
    /// How the first process ended.
    pub(crate) end: Option<ProcessEnd>,
    /// When to count its processes next.
    pub(crate) next_count: Instant,
    /// There were more than allowed.
    pub(crate) too_many: bool,
    first: Pid,
}

/// One output stream.
pub(crate) struct Output {
    /// Until its last writer has closed it.
    pub(crate) pipe: Option<OwnedFd>,
    /// What is counted and kept of it.
    pub(crate) capture: Capture,
    stream: Stream,
}

impl Work {
    /// Takes over what was just started.
    pub(crate) fn new(started: Started, output_bytes: u64) -> Work {
        let Started {
            pid,
            stdin,
            stdout,
            stderr,
            report,
        } = started;
        let output = |stream, pipe| Output {
            stream,
            pipe: Some(pipe),
            capture: Capture::new(output_bytes),
        };
        Work {
            first: pid,
            report,
            stdin: Some(stdin),
            outputs: [output(Stream::Stdout, stdout), output(Stream::Stderr, stderr)],
            end: None,
            next_count: Instant::now() + ALERT,
            too_many: false,
        }
    }

    /// Any child ended; only the first process is the program.
    pub(crate) fn saw(&mut self, pid: Pid, status: WaitStatus) {
        if pid != self.first {
            return;
        }
        let exited = status.exit_status().map(|code| ProcessEnd::Exited { code });
        let signalled = status
            .terminating_signal()
            .map(|signal| ProcessEnd::Signalled { signal });
        self.end = exited.or(signalled);
    }

    /// Takes the number of living processes at this time.
    pub(crate) fn counted(&mut self, found: usize, allowed: usize, now: Instant) {
        self.too_many = found > allowed;
        self.next_count = now + if found * 4 > allowed { ALERT } else { CALM };
    }
}

impl Output {
    /// Reads once and forwards what is within the limit. Returns whether there may be more at once.
    pub(crate) fn forward(&mut self, id: CallId, to: &mut Peer) -> Result<bool, FrameError> {
        let Some(pipe) = &self.pipe else {
            return Ok(false);
        };
        let mut buffer = vec![0; CHUNK];
        let count = match rustix::io::read(pipe, &mut buffer) {
            Ok(count) if count > 0 => count,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Ok(_) | Err(_) => {
                self.pipe = None;
                return Ok(false);
            }
        };
        let send = self.capture.take(&buffer[..count]);
        if !send.is_empty() {
            to.send(&ToRuntime::Output {
                id,
                stream: self.stream,
                data: Blob(send.to_vec()),
            })?;
        }
        Ok(true)
    }
}
