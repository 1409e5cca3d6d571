//! The model proxy: sandboxes reach a model only through it, and keys never leave it.
//!
//! A call comes over the channel in pieces ([`calls`]). [`ask`] chooses the Models to ask, holds the call against the
//! run's [`budget`], asks each until one answers ([`tries`]) and writes down what it used ([`count`]). One try
//! ([`once`]) is a request ([`body`], [`access`], [`http`]) and its stream, read in whatever dialect the endpoint speaks
//! ([`sse`], [`reader`], [`prose`], [`spoken`]); what went wrong is a [`fault`]. [`probe`] keeps the condition `Ready`.

mod access;
mod ask;
mod body;
mod budget;
mod calls;
mod count;
mod fault;
mod http;
mod limits;
mod once;
mod probe;
mod prose;
mod quirks;
mod reader;
mod spoken;
mod sse;
mod texts;
mod tries;

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod proxy_tests;

pub(crate) use budget::{Amount, Recorded};
pub(crate) use calls::{Calls, Piece};
pub(crate) use limits::Patience;
pub(crate) use probe::look_after;

use crate::board::{Board, Name};
use agentrun_api::Model;
use budget::Ledger;
use kube::ResourceExt as _;
use quirks::{Quirk, Quirks};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Runs in the ledger from which on those that are over are looked for.
const LEDGER_TIDY: usize = 64;
/// Endpoints whose quirks are kept.
const MAX_QUIRKS: usize = 1024;
/// The unit in which room for requests is counted, in bytes.
const ROOM_UNIT: usize = 1024;

/// What all calls share.
#[derive(Debug)]
pub(crate) struct Models {
    clients: http::Clients,
    patience: Patience,
    ledger: Arc<Ledger>,
    room: Arc<Semaphore>,
    /// By UID and generation of the Model.
    quirks: Mutex<HashMap<(String, i64), Quirks>>,
    suspects: Mutex<HashSet<Name>>,
    look: Notify,
}

impl Models {
    /// `daily` is how many tokens a namespace may use a day.
    pub(crate) fn new(patience: Patience, daily: Option<u64>) -> Self {
        Self {
            clients: http::Clients::default(),
            patience,
            ledger: Arc::new(Ledger::new(daily)),
            room: Arc::new(Semaphore::new(limits::REQUESTS / ROOM_UNIT)),
            quirks: Mutex::default(),
            suspects: Mutex::default(),
            look: Notify::new(),
        }
    }

    /// The board shows Models as they were not before.
    pub(crate) fn changed(&self) {
        self.look.notify_one();
    }

    /// Forgets the accounts of runs that the board does not show any more.
    pub(crate) fn tidy(&self, board: &Board) {
        if self.ledger.len() >= LEDGER_TIDY {
            self.ledger.retain(|run| board.run(run).is_some());
        }
    }

    /// Until there may be something to look at.
    async fn wait(&self) {
        self.look.notified().await;
    }

    /// A Model that was ready gives no answers: it is looked at.
    fn suspect(&self, name: &Name) {
        let mut suspects = self.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        if suspects.insert(name.clone()) {
            self.look.notify_one();
        }
    }

    /// The suspected Models, once.
    fn suspects(&self) -> HashSet<Name> {
        std::mem::take(&mut self.suspects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Room for so many bytes of a request, if there is.
    fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let units = u32::try_from(bytes.div_ceil(ROOM_UNIT)).ok()?;
        Arc::clone(&self.room).try_acquire_many_owned(units).ok()
    }

    fn quirks_of(&self, model: &Model) -> Quirks {
        let known = self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key(model)).copied().unwrap_or_default()
    }

    /// Remembers what an endpoint does not know; false if that was known.
    fn learn(&self, model: &Model, quirk: Quirk) -> bool {
        let mut known = self.quirks.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_QUIRKS {
            known.clear();
        }
        known.entry(key(model)).or_default().learn(quirk)
    }
}

fn key(model: &Model) -> (String, i64) {
    (
        model.uid().unwrap_or_default(),
        model.metadata.generation.unwrap_or_default(),
    )
}
