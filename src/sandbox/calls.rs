//! The running calls: one supervisor process and one connection to it each.

use crate::job::Job;
use crate::options::Settings;
use crate::peer::Peer;
use crate::{environment, scratch};
use agentrun_protocol::executor::{CallId, Ended, Exec, ProcessEnd, StartError};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The most calls at once; the runtime has far fewer.
pub(crate) const MAX_CALLS: usize = 64;
/// A supervisor that takes no input, or has not ended its call this long after the grace, is as good as dead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// What all calls have in common.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) settings: Settings,
    pub(crate) landlock_required: bool,
    pub(crate) contained: bool,
}

/// One call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) supervisor: Peer,
    /// When PID 1 stops trusting the supervisor.
    pub(crate) deadline: Option<Instant>,
    started: Instant,
    scratch: PathBuf,
}

impl Call {
    /// Makes the private temp folder and starts the supervisor.
    pub(crate) fn start(mut exec: Exec, ground: &Ground) -> io::Result<Call> {
        let own = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let folder = scratch::create(&ground.settings.temp)?;
        let environment = environment::of_call(&exec, own, &folder);
        // It is in there now, and a frame has a limit.
        exec.env.clear();
        let job = Job {
            environment,
            exec,
            scratch: folder.clone(),
            settings: ground.settings.clone(),
            landlock_required: ground.landlock_required,
            contained: ground.contained,
        };
        spawn(&job)
            .map(|supervisor| Call {
                supervisor,
                deadline: None,
                started: Instant::now(),
                scratch: folder.clone(),
            })
            .inspect_err(|_| remove(&folder))
    }

    /// Expects the supervisor to end the call within the grace and our patience.
    pub(crate) fn expect_end(&mut self, grace: Duration) {
        let deadline = Instant::now() + grace + PATIENCE;
        self.deadline = Some(self.deadline.map_or(deadline, |earlier| earlier.min(deadline)));
    }

    /// Begins to wait anew.
    pub(crate) fn expect_end_from(&mut self, now: Instant) {
        self.deadline = self.deadline.max(Some(now + PATIENCE));
    }

    /// The end of a call whose supervisor is dead, and whose processes are too.
    pub(crate) fn reset(self, id: CallId) -> Ended {
        remove(&self.scratch);
        let duration = self.started.elapsed();
        without_work(id, ProcessEnd::SandboxReset, duration)
    }
}

fn remove(folder: &std::path::Path) {
    if let Err(error) = scratch::remove(folder) {
        crate::complain(&format!("{} could not be removed: {error}", folder.display()));
    }
}

/// The supervisor starts with an empty environment: what it does not know it cannot lose.
fn spawn(job: &Job) -> io::Result<Peer> {
    let (ours, theirs) = UnixStream::pair()?;
    // The handle is dropped: PID 1 waits for all children alike.
    Command::new("/proc/self/exe")
        .arg("supervise")
        .env_clear()
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .spawn()?;
    let mut supervisor = Peer::new(ours)?;
    supervisor.send(job).map_err(io::Error::other)?;
    Ok(supervisor)
}

/// The end of a call that PID 1 could not even begin.
pub(crate) fn not_started(id: CallId, error: StartError, message: String) -> Ended {
    without_work(id, ProcessEnd::NotStarted { error, message }, Duration::ZERO)
}

/// The end of a call of which nothing ever ran, or nothing is known.
pub(crate) fn without_work(id: CallId, end: ProcessEnd, duration: Duration) -> Ended {
    Ended::without_work(id, end, crate::millis(duration))
}
