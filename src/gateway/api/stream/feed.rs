//! One run that somebody reads.

use super::derive::{self, Keyed};
use super::event::Event;
use super::log::{Log, Start};
use super::sightings::Sink;
use crate::api::bounds;
use crate::api::cluster::{Cluster, SubTasks};
use crate::api::problem::{Code, Problem};
use crate::backoff::Backoff;
use crate::board::Name;
use crate::bounds::STORE_PAUSE;
use crate::text::chain;
use agentrun_api::{AgentRun, SubTask};
use bytes::Bytes;
use jiff::Timestamp;
use kube::ResourceExt as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{OnceCell, watch};
use tokio::time::Instant;

/// A run's events, for any number of readers. Lives as long as one of them.
pub(crate) struct Feed {
    name: Name,
    cluster: Arc<Cluster>,
    state: Mutex<State>,
    loaded: OnceCell<()>,
    changes: watch::Sender<u64>,
    me: Weak<Self>,
}

#[derive(Debug, Default)]
struct State {
    uid: String,
    stage: Stage,
    log: Log,
}

#[derive(Debug)]
enum Stage {
    /// The objects are being read; what the watches see meanwhile waits here.
    Loading(Box<Meanwhile>),
    /// The watches tell.
    Live,
    /// The run is over, and the ends of its sub-tasks are being read.
    Closing,
    /// Nothing follows.
    Closed {
        /// Since the run was deleted.
        deleted: bool,
    },
}

impl Default for Stage {
    fn default() -> Self {
        Self::Loading(Box::default())
    }
}

#[derive(Debug, Default)]
struct Meanwhile {
    run: Option<AgentRun>,
    subtasks: HashMap<String, SubTask>,
    deleted: Option<String>,
}

/// What a reader finds at its place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event.
    Event(Bytes),
    /// The events from its place on are not kept any more; they are from this one on.
    Lost(usize),
    /// Nothing yet.
    Wait,
    /// Nothing any more.
    End,
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Feed {
    pub(crate) fn new(name: Name, cluster: Arc<Cluster>) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            name,
            cluster,
            state: Mutex::default(),
            loaded: OnceCell::new(),
            changes: watch::Sender::new(0),
            me: me.clone(),
        })
    }

    /// Whether it is about a run that is gone, so that another of the same name needs another feed.
    pub(crate) fn is_deleted(&self) -> bool {
        matches!(self.lock().stage, Stage::Closed { deleted: true })
    }

    /// Reads the objects once, whoever asks. The watches must tell already.
    pub(crate) async fn load(&self) -> Result<(), Problem> {
        self.loaded.get_or_try_init(|| self.read()).await.copied()
    }

    async fn read(&self) -> Result<(), Problem> {
        let unread = |error: kube::Error| Problem::of_api_server("read the task", &error);
        let (namespace, name) = (&self.name.namespace, &self.name.name);
        let run = self.cluster.run(namespace, name).await.map_err(unread)?;
        let Some(run) = run else {
            return Err(not_found(&self.name));
        };
        let uid = run.uid().unwrap_or_default();
        let children = self.cluster.subtasks(namespace, &uid, bounds::EVENTS).await;
        self.begin(&run, &uid, &children.map_err(unread)?);
        Ok(())
    }

    fn begin(&self, run: &AgentRun, uid: &str, children: &SubTasks) {
        let mut state = self.lock();
        uid.clone_into(&mut state.uid);
        state.log.add(&derive::opening(run));
        state.add_sorted(&children.items);
        let Stage::Loading(meanwhile) = std::mem::replace(&mut state.stage, Stage::Live) else {
            return;
        };
        let ending = derive::ending(run);
        if !ending.is_empty() {
            // A run is over only when all its sub-tasks are: they were read after it.
            state.close(&ending, false);
        }
        drop(state);
        meanwhile
            .subtasks
            .values()
            .for_each(|subtask| self.subtask(subtask));
        meanwhile.run.iter().for_each(|run| self.run(run));
        meanwhile.deleted.iter().for_each(|uid| self.deleted(uid));
        self.changed();
    }

    /// Where a reader begins that has seen `last`, and whether there is nothing for it any more.
    pub(crate) fn start(&self, last: Option<&str>) -> (Start, bool) {
        let state = self.lock();
        let start = state.log.start(last);
        let closed = matches!(state.stage, Stage::Closed { .. });
        let over = closed && start.gap.is_none() && start.place == state.log.len();
        (start, over)
    }

    /// What follows `place` events.
    pub(crate) fn next(&self, place: usize) -> Next {
        let state = self.lock();
        match state.log.after(place) {
            Ok(Some(event)) => Next::Event(event),
            Err(kept) => Next::Lost(kept),
            Ok(None) if matches!(state.stage, Stage::Closed { .. }) => Next::End,
            Ok(None) => Next::Wait,
        }
    }

    /// Changes whenever there may be something new.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the ends of the sub-tasks, which their own watch may bring later than the run's, then tells the run's.
    async fn close(&self, run: &AgentRun) {
        let latest = Instant::now() + bounds::CLOSING;
        let mut backoff = Backoff::new(STORE_PAUSE);
        let (namespace, uid) = (&self.name.namespace, run.uid().unwrap_or_default());
        let children = loop {
            match self.cluster.subtasks(namespace, &uid, bounds::EVENTS).await {
                Ok(children) => break Some(children),
                Err(error) if Instant::now() < latest => {
                    tracing::warn!(
                        error = chain(&error),
                        "cannot read the ends of sub-tasks, trying again"
                    );
                    backoff.pause().await;
                }
                Err(_) => break None,
            }
        };
        let mut state = self.lock();
        if !matches!(state.stage, Stage::Closing) {
            return;
        }
        match children {
            Some(children) => state.add_sorted(&children.items),
            None => state.add(&[unknown_ends()]),
        };
        state.close(&derive::ending(run), false);
        drop(state);
        self.changed();
    }
}

impl State {
    fn add(&mut self, events: &[Keyed]) -> bool {
        let before = self.log.len();
        for event in events {
            self.log.add(event);
        }
        self.log.len() > before
    }

    /// Adds what several sub-tasks show in the order of time.
    fn add_sorted(&mut self, subtasks: &[SubTask]) -> bool {
        let mut events: Vec<_> = subtasks.iter().flat_map(derive::of_subtask).collect();
        events.sort_by_key(|event| event.at);
        self.add(&events)
    }

    fn close(&mut self, events: &[Keyed], deleted: bool) {
        self.add(events);
        self.stage = Stage::Closed { deleted };
    }
}

impl Sink for Feed {
    fn run(&self, run: &AgentRun) {
        let mut state = self.lock();
        match &mut state.stage {
            Stage::Loading(meanwhile) => {
                meanwhile.run = Some(run.clone());
                return;
            }
            Stage::Live => {}
            Stage::Closing | Stage::Closed { .. } => return,
        }
        if run.metadata.uid.as_deref() != Some(&state.uid) {
            return;
        }
        if derive::ending(run).is_empty() {
            return;
        }
        state.stage = Stage::Closing;
        drop(state);
        if let Some(me) = self.me.upgrade() {
            let run = run.clone();
            tokio::spawn(async move { me.close(&run).await });
        }
    }

    fn subtask(&self, subtask: &SubTask) {
        let mut state = self.lock();
        match &mut state.stage {
            Stage::Loading(meanwhile) => {
                let uid = subtask.uid().unwrap_or_default();
                meanwhile.subtasks.insert(uid, subtask.clone());
                return;
            }
            Stage::Live | Stage::Closing => {}
            Stage::Closed { .. } => return,
        }
        if subtask.spec.run_ref.uid == state.uid && state.add(&derive::of_subtask(subtask)) {
            drop(state);
            self.changed();
        }
    }

    fn deleted(&self, uid: &str) {
        let mut state = self.lock();
        let ours = state.uid == uid;
        match &mut state.stage {
            Stage::Loading(meanwhile) => meanwhile.deleted = Some(uid.to_owned()),
            Stage::Live if ours => {
                state.close(&[derive::deleted()], true);
                drop(state);
                self.changed();
            }
            // Its end is told. A run that is made anew under this name is another one.
            Stage::Closed { deleted } if ours => *deleted = true,
            Stage::Live | Stage::Closing | Stage::Closed { .. } => {}
        }
    }

    fn begun_anew(&self) {
        let Some(me) = self.me.upgrade() else { return };
        tokio::spawn(async move {
            let uid = me.lock().uid.clone();
            let run = me.cluster.run(&me.name.namespace, &me.name.name).await;
            match run {
                Ok(Some(run)) if run.metadata.uid.as_deref() == Some(&uid) => me.run(&run),
                Ok(_) => me.deleted(&uid),
                // The next event or list tells.
                Err(_) => {}
            }
        });
    }
}

fn unknown_ends() -> Keyed {
    let reason = "the ends of some sub-tasks could not be read".to_owned();
    Keyed {
        key: "unknown-ends".into(),
        at: Timestamp::UNIX_EPOCH,
        event: Event::Gap { reason },
    }
}

/// There is no such task.
pub(crate) fn not_found(name: &Name) -> Problem {
    let message = format!("there is no task {} in namespace {}", name.name, name.namespace);
    Problem::new(Code::NotFound, message)
}
