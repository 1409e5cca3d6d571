//! The state that all streams share.

use crate::api::Sightings;
use crate::board::{Board, Touched};
use crate::health::Health;
use crate::metrics::Metrics;
use crate::models::Models;
use crate::objects::Objects;
use crate::skills::SkillFolders;
use crate::streams::Streams;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// One gateway.
#[derive(Debug)]
pub(crate) struct Gateway {
    board: RwLock<Board>,
    /// Who wants to know of what the watches see.
    pub(crate) sightings: Sightings,
    /// Who is connected.
    pub(crate) streams: Arc<Streams>,
    /// Reads and writes of the Kubernetes API.
    pub(crate) objects: Objects,
    /// File lists of skills that travel over the channel.
    pub(crate) skills: SkillFolders,
    /// What all calls of models share.
    pub(crate) models: Models,
    /// Whether this gateway should be sent anyone.
    pub(crate) health: Health,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Cancelled when the gateway is to stop.
    pub(crate) stop: CancellationToken,
    /// Streams and writes that shutdown waits for.
    pub(crate) tasks: TaskTracker,
}

impl Gateway {
    pub(crate) fn new(client: kube::Client, metrics: Metrics, models: Models) -> Arc<Self> {
        Arc::new(Self {
            board: RwLock::default(),
            sightings: Sightings::default(),
            streams: Arc::default(),
            objects: Objects::new(client, metrics.clone()),
            skills: SkillFolders::default(),
            models,
            health: Health::default(),
            metrics,
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// The objects as the watches have seen them. Hold it for moments only.
    pub(crate) fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the board and wakes the streams that it is about.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Board) -> Touched) {
        let touched = change(&mut self.board.write().unwrap_or_else(PoisonError::into_inner));
        match touched {
            Touched::Nobody => {}
            Touched::Pods(pods) => pods.iter().for_each(|pod| self.streams.wake(pod)),
            Touched::All => self.streams.wake_all(),
            Touched::Models => self.models.changed(),
        }
    }
}
