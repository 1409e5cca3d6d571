//! The processes that stay between calls.

use crate::executor::{Call, CallEvent};
use crate::lock::lock;
use agentrun_protocol::executor::{Exec, Stream};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinHandle;

/// The most functions that have processes at once; the one that came first gives way.
const MAX_PLACES: usize = 8;

/// What a process is started from. Calls share one only when all of it is the same.
#[derive(Clone, Debug, PartialEq)]
pub(in super::super) struct Key {
    /// Name of the Skill.
    pub(in super::super) skill: String,
    /// Digest of its files.
    pub(in super::super) digest: String,
    /// Program, environment, access and bounds.
    pub(in super::super) exec: Exec,
}

/// The processes of this Pod. They end with the executor's connection, with an error of their own, and when another
/// digest of their skill comes.
#[derive(Debug, Default)]
pub struct Pool {
    places: Mutex<Vec<Arc<Place>>>,
}

impl Pool {
    /// Where processes for `key` are.
    pub(super) fn place(&self, key: Key, instances: u32) -> Arc<Place> {
        let mut places = lock(&self.places);
        places.retain(|place| place.key.skill != key.skill || place.key.digest == key.digest);
        if let Some(place) = places.iter().find(|place| place.key == key) {
            return Arc::clone(place);
        }
        if places.len() >= MAX_PLACES {
            places.remove(0);
        }
        let place = Arc::new(Place {
            key,
            room: Arc::new(Semaphore::new(instances as usize)),
            idle: Mutex::default(),
        });
        places.push(Arc::clone(&place));
        place
    }
}

/// The processes of one key. Whoever has room takes one that is idle or starts one, so that there are never more
/// than `instances`.
#[derive(Debug)]
pub(super) struct Place {
    key: Key,
    room: Arc<Semaphore>,
    idle: Mutex<VecDeque<Idle>>,
}

impl Place {
    /// What a process is started with.
    pub(super) fn exec(&self) -> &Exec {
        &self.key.exec
    }

    /// Waits for the right to have a process.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.room).acquire_owned().await.ok()
    }

    /// The process that has been idle for longest.
    pub(super) async fn take(&self) -> Option<Process> {
        loop {
            let idle = lock(&self.idle).pop_front()?;
            if let Some(process) = idle.take().await {
                return Some(process);
            }
        }
    }

    /// Keeps a process for the next call.
    pub(super) fn keep(&self, process: Process) {
        lock(&self.idle).push_back(Idle::new(process));
    }
}

/// A process that can take calls.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) call: Call,
    /// Calls that it has served.
    pub(super) calls: u32,
    /// Processor time that it had used after the last one.
    pub(super) cpu_ms: u64,
}

impl Process {
    pub(super) fn new(call: Call) -> Self {
        Process {
            call,
            calls: 0,
            cpu_ms: 0,
        }
    }

    /// Kills it. The executor sees to it that all of it goes.
    pub(super) async fn end(self) {
        // Without an executor there is no process either.
        let _ = self.call.kill(Duration::ZERO).await;
    }

    /// Returns when it ends or writes to stdout, which no idle process may.
    async fn stirs(&mut self) {
        while let Ok(CallEvent::Output(Stream::Stderr, _)) = self.call.next().await {}
    }
}

/// A process between two calls. Dropping this kills it.
#[derive(Debug)]
struct Idle {
    wanted: oneshot::Sender<()>,
    keeper: JoinHandle<Option<Process>>,
}

impl Idle {
    fn new(process: Process) -> Self {
        let (wanted, asked) = oneshot::channel();
        Idle {
            wanted,
            keeper: tokio::spawn(watch(process, asked)),
        }
    }

    /// The process, if it is still of use.
    async fn take(self) -> Option<Process> {
        // An error means that it is not.
        let _ = self.wanted.send(());
        self.keeper.await.ok().flatten()
    }
}

/// Reads what the process says, since nobody else does, until somebody wants it.
async fn watch(mut process: Process, asked: oneshot::Receiver<()>) -> Option<Process> {
    let wanted = tokio::select! {
        biased;
        () = process.stirs() => false,
        asked = asked => asked.is_ok(),
    };
    if wanted {
        return Some(process);
    }
    process.end().await;
    None
}
