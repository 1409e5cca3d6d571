//! PID 1: routes frames between the runtime and the supervisors, reaps, and ends everything when there
//! is nobody left to run things for.

use crate::calls::{self, Call, Ground, MAX_CALLS};
use crate::connect::{ConnectError, connect};
use crate::mounts::{self, Surprise};
use crate::options::Settings;
use crate::peer::{BUSY, Peer};
use crate::tree::{self, Reaped};
use crate::{complain, scratch, secrets, sys, timespec};
use agentrun_protocol::executor::{
    CallId, Ended, Exec, ExpectedMount, SecretPlaces, StartError, ToExecutor, ToRuntime,
};
use agentrun_protocol::frame::FrameError;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Signal, getpid, set_child_subreaper, set_dumpable_behavior};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Between SIGTERM and SIGKILL when the container is stopped.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Bytes that a supervisor has not taken above which nothing more is read for anybody.
const STALLED: usize = 4 << 20;

/// Why serving ended.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the container is not what the operator made")]
    Mounts(#[from] Surprise),
    #[error("cannot understand the runtime")]
    Frame(#[from] FrameError),
    #[error("the runtime sent {0} at the wrong time")]
    Protocol(&'static str),
    #[error("a system call failed")]
    System(#[from] io::Error),
}

impl From<Errno> for ServeError {
    fn from(error: Errno) -> Self {
        ServeError::System(error.into())
    }
}

/// Serves until the connection ends or SIGTERM comes; nothing of any call is left then.
pub(crate) fn serve(settings: Settings) -> ExitCode {
    match Executor::connect(settings).and_then(Executor::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            complain(&format!("{error}{}", source.unwrap_or_default()));
            ExitCode::FAILURE
        }
    }
}

struct Executor {
    runtime: Peer,
    signals: OwnedFd,
    ground: Ground,
    expected: bool,
    /// `/tmp` is mounted for this container alone.
    own_temp: bool,
    /// Something of a call may still run.
    haunted: bool,
    stopping: bool,
    calls: BTreeMap<CallId, Call>,
}

impl Executor {
    fn connect(settings: Settings) -> Result<Executor, ServeError> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let contained = getpid().is_init();
        if !contained {
            set_child_subreaper(Some(getpid()))?;
        }
        let signals = sys::signal_fd(&[Signal::CHILD, Signal::TERM, Signal::INT])?;
        let runtime = Peer::new(connect(&settings.socket, &signals)?)?;
        let ground = Ground {
            settings,
            landlock_required: true,
            contained,
        };
        Ok(Executor {
            runtime,
            signals,
            ground,
            expected: false,
            own_temp: false,
            haunted: false,
            stopping: false,
            calls: BTreeMap::new(),
        })
    }

    fn run(mut self) -> Result<(), ServeError> {
        let result = self.serve();
        // Whatever the reason is: nothing outlives us.
        tree::fell(self.ground.contained, |_, _| {});
        for (id, call) in std::mem::take(&mut self.calls) {
            call.reset(id);
        }
        result
    }

    fn serve(&mut self) -> Result<(), ServeError> {
        while self.runtime.is_open() && !self.is_done() {
            self.wait()?;
            self.handle_signals();
            self.hear_runtime()?;
            self.hear_supervisors()?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.stopping && self.calls.is_empty() && self.runtime.backlog() == 0
    }

    /// A supervisor that takes nothing holds up the others only until its deadline.
    fn may_listen(&self) -> bool {
        self.calls
            .values()
            .all(|call| call.supervisor.backlog() < STALLED)
    }

    fn wait(&self) -> Result<(), ServeError> {
        let has_room = self.runtime.backlog() < BUSY;
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            self.runtime.interest(self.may_listen()),
        ];
        fds.extend(self.calls.values().map(|call| call.supervisor.interest(has_room)));
        let deadline = self.calls.values().filter_map(|call| call.deadline).min();
        let timeout = deadline.map(|deadline| timespec(deadline.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn handle_signals(&mut self) {
        let stop = [Signal::TERM.as_raw(), Signal::INT.as_raw()];
        let stop = sys::received(&self.signals)
            .iter()
            .any(|signal| stop.contains(signal));
        while let Reaped::One(..) = tree::reap() {}
        if stop && !self.stopping {
            self.stopping = true;
            let ids: Vec<CallId> = self.calls.keys().copied().collect();
            for id in ids {
                self.kill(id, STOP_GRACE);
            }
        }
    }

    fn hear_runtime(&mut self) -> Result<(), ServeError> {
        self.runtime.flush();
        if !self.may_listen() {
            return Ok(());
        }
        self.runtime.receive();
        while let Some(message) = self.runtime.next()? {
            match message {
                ToExecutor::Expect {
                    mounts,
                    landlock_required,
                    secrets,
                } => self.expect(&mounts, landlock_required, &secrets)?,
                ToExecutor::Exec(exec) => self.exec(*exec)?,
                ToExecutor::Clear => {
                    let clean = self.clear();
                    self.runtime.send(&ToRuntime::Cleared { clean })?;
                }
                ToExecutor::Kill { id, grace_ms } => self.kill(id, Duration::from_millis(grace_ms)),
                ToExecutor::Stdin { id, .. } | ToExecutor::Rest { id } => self.tell(id, &message),
            }
        }
        Ok(())
    }

    fn expect(
        &mut self,
        mounts: &[ExpectedMount],
        landlock_required: bool,
        secrets: &SecretPlaces,
    ) -> Result<(), ServeError> {
        if self.expected {
            return Err(ServeError::Protocol("a second Expect"));
        }
        self.expected = true;
        self.ground.landlock_required = landlock_required;
        let temp = &self.ground.settings.temp;
        self.own_temp = self.ground.contained && mounts.iter().any(|mount| Path::new(&mount.path) == temp);
        let table = std::fs::read_to_string("/proc/self/mountinfo")?;
        // Outside a container the machine's mounts are nobody's promise.
        let surprise = if self.ground.contained {
            mounts::check(&table, mounts).err()
        } else {
            None
        };
        let Some(surprise) = surprise else {
            let ready = ToRuntime::Ready {
                landlock_abi: sys::landlock_abi(),
                secrets: secrets::values(secrets),
            };
            return Ok(self.runtime.send(&ready)?);
        };
        self.runtime.send(&ToRuntime::Refused {
            message: surprise.to_string(),
        })?;
        Err(surprise.into())
    }

    fn exec(&mut self, exec: Exec) -> Result<(), ServeError> {
        let id = exec.id;
        if !self.expected {
            return Err(ServeError::Protocol("Exec before Expect"));
        }
        if self.calls.contains_key(&id) {
            return Err(ServeError::Protocol("Exec with the number of a running call"));
        }
        let started = if self.stopping {
            Err("the sandbox is being stopped".to_owned())
        } else if self.calls.len() >= MAX_CALLS {
            Err(format!(
                "{MAX_CALLS} calls are running, no more are allowed at once; wait for one to end"
            ))
        } else {
            Call::start(exec, &self.ground)
                .map_err(|error| format!("no supervisor could be started: {error}"))
        };
        match started {
            Ok(call) => {
                self.calls.insert(id, call);
            }
            Err(message) => {
                let ended = calls::not_started(id, StartError::NoResources, message);
                self.runtime.send(&ToRuntime::Ended(Box::new(ended)))?;
            }
        }
        Ok(())
    }

    /// Empties the folders that calls share, if nobody is left who could write to them.
    fn clear(&self) -> bool {
        let settings = &self.ground.settings;
        // On a machine /tmp is everybody's.
        let moved = settings.temp != Settings::default().temp;
        if !self.calls.is_empty() || self.haunted || !(self.own_temp || moved) {
            return false;
        }
        let mut clean = true;
        for folder in settings.shm.iter().chain([&settings.temp]) {
            clean &= scratch::sweep(folder).unwrap_or_else(|error| {
                complain(&format!("{} could not be emptied: {error}", folder.display()));
                false
            });
        }
        clean
    }

    fn kill(&mut self, id: CallId, grace: Duration) {
        let grace_ms = crate::millis(grace);
        self.tell(id, &ToExecutor::Kill { id, grace_ms });
        if let Some(call) = self.calls.get_mut(&id) {
            call.expect_end(grace);
        }
    }

    /// A call that has ended meanwhile needs nothing any more.
    fn tell(&mut self, id: CallId, message: &ToExecutor) {
        let Some(call) = self.calls.get_mut(&id) else {
            return;
        };
        // It was a frame before, so it is one again.
        let _ = call.supervisor.send(message);
        if call.supervisor.backlog() >= STALLED {
            call.expect_end(Duration::ZERO);
        }
    }

    fn hear_supervisors(&mut self) -> Result<(), ServeError> {
        let now = Instant::now();
        let ids: Vec<CallId> = self.calls.keys().copied().collect();
        for id in ids {
            let Some(call) = self.calls.get_mut(&id) else {
                continue;
            };
            call.supervisor.flush();
            if self.runtime.backlog() < BUSY {
                call.supervisor.receive();
            } else if call.deadline.is_some() {
                // The runtime holds it up, not its supervisor.
                call.expect_end_from(now);
            }
            let state = relay(id, call, &mut self.runtime)?;
            let overdue = call.deadline.is_some_and(|deadline| now >= deadline);
            match state {
                Relayed::Ended(mut ended) if ended.tree_empty => {
                    self.calls.remove(&id);
                    ended.stopped = self.stopping;
                    self.runtime.send(&ToRuntime::Ended(ended))?;
                }
                // What its supervisor could not end, we can.
                Relayed::Ended(ended) => return self.reset("could not end its call", Some(ended)),
                Relayed::Lost => return self.reset("died", None),
                Relayed::Running if overdue => return self.reset("hangs", None),
                Relayed::Running => {}
            }
        }
        Ok(())
    }

    /// A supervisor died, or could not end its call, which is `unfinished` then: everything is killed.
    fn reset(&mut self, why: &str, unfinished: Option<Box<Ended>>) -> Result<(), ServeError> {
        complain(&format!(
            "a supervisor {why}; everything in the sandbox is killed"
        ));
        let empty = tree::fell(self.ground.contained, |_, _| {}).empty;
        self.haunted |= !empty;
        if let Some(mut ended) = unfinished {
            self.calls.remove(&ended.id);
            ended.tree_empty = empty;
            ended.stopped = self.stopping;
            self.runtime.send(&ToRuntime::Ended(ended))?;
        }
        for (id, mut call) in std::mem::take(&mut self.calls) {
            // What a supervisor said before its end still counts.
            while call.supervisor.is_open() {
                call.supervisor.receive();
            }
            let mut ended = match relay(id, &mut call, &mut self.runtime)? {
                Relayed::Ended(ended) => ended,
                Relayed::Running | Relayed::Lost => Box::new(call.reset(id)),
            };
            ended.tree_empty = empty;
            ended.stopped = self.stopping;
            self.runtime.send(&ToRuntime::Ended(ended))?;
        }
        Ok(())
    }
}

enum Relayed {
    Running,
    Ended(Box<Ended>),
    Lost,
}

/// Passes on what a supervisor said about its own call; the end is left to the caller.
fn relay(id: CallId, call: &mut Call, runtime: &mut Peer) -> Result<Relayed, FrameError> {
    loop {
        let Ok(message) = call.supervisor.next::<ToRuntime>() else {
            return Ok(Relayed::Lost);
        };
        let Some(message) = message else {
            let open = call.supervisor.is_open();
            return Ok(if open { Relayed::Running } else { Relayed::Lost });
        };
        match message {
            ToRuntime::Output { id: of, .. }
            | ToRuntime::OutputFile { id: of, .. }
            | ToRuntime::Rested { id: of, .. }
                if of == id =>
            {
                runtime.send(&message)?;
            }
            ToRuntime::Ended(ended) if ended.id == id => return Ok(Relayed::Ended(ended)),
            _ => return Ok(Relayed::Lost),
        }
    }
}
