//! What one stream knows of the attempts of its Pod, and what follows when the board changes; pure.

use crate::board::Live;
use crate::contents::{Allowed, Source};
use crate::placement::is_stopped;
use agentrun_protocol::work::AttemptId;
use jiff::Timestamp;
use std::collections::HashMap;
use tokio::time::Instant;

/// Where an attempt stands on this stream.
#[derive(Debug)]
pub(crate) enum Stage {
    /// Its assignment is being made.
    Preparing {
        /// Since when.
        since: Instant,
    },
    /// Its assignment lacks something and is tried again.
    Waiting {
        /// Since when it is prepared.
        since: Instant,
    },
    /// The runtime has it.
    Assigned {
        /// When the message went out, by the wall clock.
        at: Timestamp,
        /// What the runtime may ask for.
        allowed: Allowed,
        /// It was told to end it.
        cancelled: bool,
    },
    /// Its end is reported; nothing more is said about it.
    Ending,
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Make the assignment.
    Prepare(Box<Live>),
    /// Tell the runtime to end it.
    Cancel(AttemptId),
}

/// The attempts of a stream.
#[derive(Debug, Default)]
pub(crate) struct Work {
    stages: HashMap<AttemptId, Stage>,
}

impl Work {
    /// What follows from what the board says now.
    pub(crate) fn consider(&mut self, live: Vec<Live>, now: Instant) -> Vec<Action> {
        let mut actions = self.cancel_the_gone(&live);
        for live in live {
            let stopped = is_stopped(&live.subtask, live.run.as_deref());
            let stage = self.stages.get_mut(&live.id);
            match (stage, stopped) {
                (None, false) => {
                    self.stages
                        .insert(live.id.clone(), Stage::Preparing { since: now });
                    actions.push(Action::Prepare(Box::new(live)));
                }
                (Some(stage @ Stage::Waiting { .. }), false) => {
                    let since = stage.since().unwrap_or(now);
                    *stage = Stage::Preparing { since };
                    actions.push(Action::Prepare(Box::new(live)));
                }
                (Some(Stage::Assigned { cancelled, .. }), true) if !*cancelled => {
                    *cancelled = true;
                    actions.push(Action::Cancel(live.id));
                }
                _ => {}
            }
        }
        actions
    }

    /// Nothing of a sub-task runs once the objects say that it is over or elsewhere.
    fn cancel_the_gone(&mut self, live: &[Live]) -> Vec<Action> {
        let is_live = |id: &AttemptId| live.iter().any(|live| live.id == *id);
        let mut actions = Vec::new();
        self.stages.retain(|id, stage| {
            if is_live(id) {
                return true;
            }
            match stage {
                Stage::Assigned { cancelled, .. } => {
                    if !*cancelled {
                        *cancelled = true;
                        actions.push(Action::Cancel(id.clone()));
                    }
                    true
                }
                _ => false,
            }
        });
        actions
    }

    /// The stage of an attempt.
    pub(crate) fn stage(&self, id: &AttemptId) -> Option<&Stage> {
        self.stages.get(id)
    }

    /// Sets the stage of an attempt.
    pub(crate) fn set(&mut self, id: AttemptId, stage: Stage) {
        self.stages.insert(id, stage);
    }

    /// The runtime has this attempt from an earlier stream, and its assignment cannot be made again: it goes on
    /// without new contents.
    pub(crate) fn resume(&mut self, id: AttemptId, at: Timestamp) {
        let stage = Stage::Assigned {
            at,
            allowed: Allowed::default(),
            cancelled: false,
        };
        self.stages.insert(id, stage);
    }

    /// Whether an assignment waits for something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.stages
            .values()
            .any(|stage| matches!(stage, Stage::Waiting { .. }))
    }

    /// Where a content is, if an assignment of this stream names its digest.
    pub(crate) fn source(&self, sha256: &str) -> Option<&Source> {
        self.stages.values().find_map(|stage| match stage {
            Stage::Assigned { allowed, .. } => allowed.get(sha256),
            _ => None,
        })
    }
}

impl Stage {
    /// Since when the assignment is being prepared.
    pub(crate) fn since(&self) -> Option<Instant> {
        match self {
            Self::Preparing { since } | Self::Waiting { since } => Some(*since),
            Self::Assigned { .. } | Self::Ending => None,
        }
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
