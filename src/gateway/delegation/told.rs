//! What one stream has asked and told about delegations; pure.

use super::ask::Answer;
use super::end::{end_of, gone};
use crate::board::Board;
use agentrun_protocol::agent::{CallPlace, Delegation, DelegationState};
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::work::AttemptId;
use std::collections::{BTreeMap, BTreeSet};

/// Where a delegation stands on this stream.
#[derive(Clone, Debug)]
enum Stage {
    /// It is being made, or waits for another try.
    Asked { ask: Delegation, under_way: bool },
    /// It has its SubTask. `seen`: a watch has shown it; `ended`: its end was told.
    Made { name: String, seen: bool, ended: bool },
    /// There will be none.
    Refused(String),
}

/// The delegations of a stream.
#[derive(Debug, Default)]
pub(crate) struct Told {
    attempts: BTreeMap<(String, i32), BTreeMap<CallPlace, Stage>>,
}

fn key(id: &AttemptId) -> (String, i32) {
    (id.uid.clone(), id.attempt)
}

fn said(id: &AttemptId, at: CallPlace, delegation: DelegationState) -> ToRuntime {
    ToRuntime::Delegated {
        id: id.clone(),
        at,
        delegation,
    }
}

impl Told {
    /// Takes what the runtime says, for the first time or again. Gives what is known already.
    pub(crate) fn hear(&mut self, id: &AttemptId, asked: Vec<Delegation>, board: &Board) -> Vec<ToRuntime> {
        let stages = self.attempts.entry(key(id)).or_default();
        let mut messages = Vec::new();
        for ask in asked {
            let at = ask.at;
            let stage = stages.entry(at).or_insert(Stage::Asked {
                ask,
                under_way: false,
            });
            messages.extend(state(id, stage, board).map(|state| said(id, at, state)));
        }
        messages
    }

    /// What has to be asked next, by attempt. It is under way from now on.
    pub(crate) fn next(&mut self) -> Vec<(AttemptId, BTreeSet<CallPlace>, Vec<Delegation>)> {
        let mut asks = Vec::new();
        for ((uid, attempt), stages) in &mut self.attempts {
            let mut next = Vec::new();
            let mut known = BTreeSet::new();
            for (at, stage) in stages {
                match stage {
                    Stage::Asked { ask, under_way } if !*under_way => {
                        *under_way = true;
                        next.push(ask.clone());
                    }
                    Stage::Asked { .. } | Stage::Made { .. } => {
                        known.insert(*at);
                    }
                    Stage::Refused(_) => {}
                }
            }
            if !next.is_empty() {
                let id = AttemptId {
                    uid: uid.clone(),
                    attempt: *attempt,
                };
                asks.push((id, known, next));
            }
        }
        asks
    }

    /// Takes what became of what was asked. Gives what to say.
    pub(crate) fn answered(
        &mut self,
        id: &AttemptId,
        answers: Vec<(CallPlace, Answer)>,
        board: &Board,
    ) -> Vec<ToRuntime> {
        let Some(stages) = self.attempts.get_mut(&key(id)) else {
            return Vec::new();
        };
        let mut messages = Vec::new();
        for (at, answer) in answers {
            let Some(stage) = stages.get_mut(&at) else {
                continue;
            };
            match (answer, &mut *stage) {
                (Answer::Later, Stage::Asked { under_way, .. }) => *under_way = false,
                (Answer::Later, _) => {}
                (Answer::Refused(message), _) => *stage = Stage::Refused(message),
                (Answer::Made(name), _) => {
                    *stage = Stage::Made {
                        name,
                        seen: false,
                        ended: false,
                    }
                }
            }
            messages.extend(state(id, stage, board).map(|state| said(id, at, state)));
        }
        messages
    }

    /// Compares with the board: gives the ends that were not told. What belongs to an attempt that is over is forgotten.
    pub(crate) fn look(&mut self, board: &Board) -> Vec<ToRuntime> {
        let mut messages = Vec::new();
        self.attempts.retain(|(uid, attempt), stages| {
            let id = AttemptId {
                uid: uid.clone(),
                attempt: *attempt,
            };
            if board.live(uid).is_none_or(|live| live.id != id) {
                return false;
            }
            for (at, stage) in stages {
                if let Stage::Made { ended: false, .. } = stage
                    && let Some(state @ DelegationState::Ended(_)) = state(&id, stage, board)
                {
                    messages.push(said(&id, *at, state));
                }
            }
            true
        });
        messages
    }

    /// Whether something waits for another try.
    pub(crate) fn is_waiting(&self) -> bool {
        let mut stages = self.attempts.values().flat_map(BTreeMap::values);
        stages.any(|stage| matches!(stage, Stage::Asked { under_way: false, .. }))
    }
}

/// What is known of a delegation, if anything.
fn state(id: &AttemptId, stage: &mut Stage, board: &Board) -> Option<DelegationState> {
    match stage {
        Stage::Asked { .. } => None,
        Stage::Refused(message) => Some(DelegationState::Refused {
            message: message.clone(),
        }),
        Stage::Made { name, seen, ended } => {
            let delegates = board.delegates_of(&id.uid);
            let end = match delegates.get(name) {
                Some(delegate) => {
                    *seen = true;
                    delegate.ended.as_deref().map(end_of)
                }
                None => seen.then(|| gone(name)),
            };
            *ended = end.is_some();
            Some(match end {
                Some(end) => DelegationState::Ended(Box::new(end)),
                None => DelegationState::Created { name: name.clone() },
            })
        }
    }
}
