//! Connects to the runtime, whose container may start later than ours.

use crate::sys;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::Timespec;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the runtime's socket is waited for.
const PATIENCE: Duration = Duration::from_mins(1);
const ROUND: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};

/// No runtime.
#[derive(Debug, thiserror::Error)]
#[error("no runtime listened on {socket:?} for {} s or until SIGTERM; see the log of the runtime container", PATIENCE.as_secs())]
pub(crate) struct ConnectError {
    socket: PathBuf,
    source: io::Error,
}

/// Tries until somebody listens, or a signal says that nobody will.
pub(crate) fn connect(socket: &Path, signals: &OwnedFd) -> Result<UnixStream, ConnectError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(source) if Instant::now() >= deadline || is_stopped(signals) => {
                return Err(ConnectError {
                    socket: socket.to_owned(),
                    source,
                });
            }
            // A socket file appears by `bind`; only `listen`, which gives no event, makes it answer.
            Err(_) => {
                let _ = poll(&mut [PollFd::new(signals, PollFlags::IN)], Some(&ROUND));
            }
        }
    }
}

fn is_stopped(signals: &OwnedFd) -> bool {
    let stop = [Signal::TERM.as_raw(), Signal::INT.as_raw()];
    sys::received(signals).iter().any(|signal| stop.contains(signal))
}
