//! The sub-tasks that agents of a run have asked for. The gateway makes them, the operator alone lets them start: the
//! first by time of creation, then by name, as many as the run may have and as there are places for.
//!
//! Both reconcilers ask [`Delegates`], and everything follows from the objects, and from what the operator remembers of
//! its decisions until they are written: what was let start once stays admitted, and a place that is given to the first that
//! waits stays its own until it has started.

use super::rerun;
use super::run::DEFAULT_MAX_PARALLEL;
use crate::agents::caps::Caps;
use crate::names;
use agentrun_api::names::labels;
use agentrun_api::{AgentRunSpec, DelegationStatus, Outcome, SubTask, SubTaskReason, SubTaskRole};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The longest chain of parents that is followed: deeper than any `maxDepth`.
const MAX_CHAIN: u32 = 16;

/// How the wait of a delegate begins that only waits for its turn.
pub const FOR_A_PLACE: &str = "waits for a place";

/// Whether a sub-task was asked for by an agent, or made by hand: everything that is not the plan's own. What it says of
/// itself does not count, its name does.
pub fn is_delegate(child: &SubTask) -> bool {
    if child.spec.role == SubTaskRole::Delegate {
        return true;
    }
    if rerun::is_rerun(child) {
        return false;
    }
    let spec = &child.spec;
    let index = spec.index.and_then(|index| u32::try_from(index).ok());
    let (run, key) = (&spec.run_ref, spec.key.as_deref());
    let planned = names::subtask_name(&run.name, &spec.task, &run.uid, index, key);
    child.metadata.name.as_ref() != Some(&planned)
}

/// Where a delegate stands that has not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may start.
    MayStart,
    /// It has to wait, for this.
    Waits(String),
    /// It never starts.
    Refused(String),
}

/// The delegates of a run.
#[derive(Debug)]
pub struct Delegates<'a> {
    by_uid: BTreeMap<&'a str, &'a SubTask>,
    /// In the order of admission.
    sorted: Vec<&'a SubTask>,
    caps: Caps,
    max_parallel: usize,
    /// UIDs of sub-tasks that wait for a delegate of theirs.
    waiting: BTreeSet<&'a str>,
    live: usize,
}

impl<'a> Delegates<'a> {
    /// Looks through the sub-tasks of a run.
    pub fn of(run: &AgentRunSpec, children: &[&'a SubTask]) -> Self {
        let mut sorted: Vec<_> = children
            .iter()
            .copied()
            .filter(|child| is_delegate(child))
            .collect();
        sorted.sort_by_key(|child| order(child));
        let waiting = sorted.iter().filter(|child| is_live(child));
        let waiting = waiting.filter_map(|child| Some(child.spec.parent_ref.as_ref()?.uid.as_str()));
        let limit = run.limits.as_ref().and_then(|limits| limits.max_parallel);
        let mut delegates = Self {
            by_uid: children
                .iter()
                .filter_map(|child| Some((child.metadata.uid.as_deref()?, *child)))
                .collect(),
            waiting: waiting.collect(),
            sorted,
            caps: Caps::of(run),
            max_parallel: limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(DEFAULT_MAX_PARALLEL),
            live: 0,
        };
        let takes_place = |child: &&&SubTask| !is_delegate(child) && delegates.takes_place(child);
        delegates.live = children.iter().filter(takes_place).count();
        delegates
    }

    /// All of them.
    pub fn all(&self) -> &[&'a SubTask] {
        &self.sorted
    }

    /// Whether one has not ended.
    pub fn is_any_live(&self) -> bool {
        self.sorted.iter().any(|child| is_live(child))
    }

    /// Places that are left for the plan's own tasks.
    pub fn free_places(&self) -> usize {
        let taken = self.sorted.iter().filter(|child| self.takes_place(child)).count();
        self.max_parallel.saturating_sub(self.live + taken)
    }

    /// Whether a sub-task counts for `maxParallel`: not while it waits for its delegates. What runs a criterion again does
    /// so in the place of the sub-task that waits for it.
    fn takes_place(&self, child: &SubTask) -> bool {
        let waits = || {
            let uid = child.metadata.uid.as_deref().unwrap_or_default();
            child.spec.agent.is_some() && self.waiting.contains(uid)
        };
        is_live(child) && !rerun::is_rerun(child) && !waits()
    }

    /// Where a delegate stands that has no attempt yet. `admitted` are the UIDs of those that were let start before, of
    /// which no attempt is seen yet: they keep their admission like the ones that have started.
    pub fn standing(&self, delegate: &SubTask, admitted: &BTreeSet<String>) -> Standing {
        let is_admitted = |child: &SubTask| {
            let uid = child.metadata.uid.as_ref();
            has_started(child) || uid.is_some_and(|uid| admitted.contains(uid))
        };
        if is_admitted(delegate) {
            return Standing::MayStart;
        }
        let taken = self.sorted.iter();
        let taken = taken
            .filter(|child| is_taken(child) || is_admitted(child))
            .count();
        let mut quota = self.caps.per_run.saturating_sub(taken);
        let running = self
            .sorted
            .iter()
            .filter(|child| is_admitted(child) && self.takes_place(child));
        let mut places = self.max_parallel.saturating_sub(self.live + running.count());
        for child in self
            .sorted
            .iter()
            .filter(|child| is_live(child) && !is_admitted(child))
        {
            let refused = self.refused(child, quota);
            let may_start = refused.is_none() && places > 0;
            if child.metadata.uid == delegate.metadata.uid {
                return match refused {
                    Some(why) => Standing::Refused(why),
                    None if may_start => Standing::MayStart,
                    None => Standing::Waits(format!(
                        "{FOR_A_PLACE}: limits.maxParallel is {}, and as many sub-tasks run",
                        self.max_parallel
                    )),
                };
            }
            if refused.is_none() {
                quota -= 1;
                places = places.saturating_sub(1);
            }
        }
        Standing::Waits("waits for its object to be seen".to_owned())
    }

    fn refused(&self, child: &SubTask, quota: usize) -> Option<String> {
        // Without its parent it is stopped, not refused.
        let depth = self.depth(child)?;
        if depth > self.caps.depth {
            return Some(format!(
                "it would be {depth} deep, delegation.maxDepth is {}: its parent has to do the work",
                self.caps.depth
            ));
        }
        (quota == 0).then(|| {
            format!(
                "the run has delegated {0} of {0} sub-tasks (delegation.maxPerRun): finish with what is there",
                self.caps.per_run
            )
        })
    }

    /// How deep a sub-task is, by the chain of its parents: 0 for the plan's own, 1 for one that was made by hand. `None`
    /// where a parent is not there.
    pub fn depth(&self, child: &SubTask) -> Option<u32> {
        let mut depth = 0;
        let mut at = child;
        while is_delegate(at) {
            depth += 1;
            let Some(parent) = &at.spec.parent_ref else {
                return Some(depth);
            };
            at = self.by_uid.get(parent.uid.as_str())?;
            if depth > MAX_CHAIN {
                return Some(depth);
            }
        }
        Some(depth)
    }

    /// Names of live delegates whose parent has ended, is being stopped, or is not there.
    pub fn orphans(&self) -> Vec<String> {
        let is_orphan = |child: &&&SubTask| {
            let Some(parent) = &child.spec.parent_ref else {
                return false;
            };
            let parent = self.by_uid.get(parent.uid.as_str());
            is_live(child) && parent.is_none_or(|parent| !is_live(parent) || is_stopping(parent))
        };
        let orphans = self.sorted.iter().filter(is_orphan);
        orphans.filter_map(|child| child.metadata.name.clone()).collect()
    }

    /// How many were admitted and how many were not; nothing where none was asked for.
    pub fn status(&self) -> Option<DelegationStatus> {
        let count = |is: fn(&SubTask) -> bool| {
            let found = self.sorted.iter().filter(|child| is(child)).count();
            i32::try_from(found).unwrap_or(i32::MAX)
        };
        (!self.sorted.is_empty()).then(|| DelegationStatus {
            used: count(is_taken),
            refused: count(is_refused),
        })
    }
}

fn order(child: &SubTask) -> (Option<Timestamp>, Option<&String>) {
    let created = child.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, child.metadata.name.as_ref())
}

fn is_live(child: &SubTask) -> bool {
    outcome(child).is_none()
}

fn outcome(child: &SubTask) -> Option<Outcome> {
    child.status.as_ref().and_then(|status| status.outcome)
}

/// It has, or had, an attempt: it keeps its admission.
pub fn has_started(child: &SubTask) -> bool {
    child
        .status
        .as_ref()
        .is_some_and(|status| !status.attempts.is_empty())
}

fn is_refused(child: &SubTask) -> bool {
    let reason = child.status.as_ref().and_then(|status| status.reason.as_deref());
    outcome(child) == Some(Outcome::Skipped) && reason == Some(SubTaskReason::QuotaExceeded.as_str())
}

/// It counts for `maxPerRun`.
fn is_taken(child: &SubTask) -> bool {
    has_started(child) || (!is_live(child) && !is_refused(child))
}

fn is_stopping(child: &SubTask) -> bool {
    let stopped = child
        .metadata
        .annotations
        .as_ref()
        .is_some_and(|annotations| annotations.contains_key(labels::STOP));
    stopped || child.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
#[path = "delegates_tests.rs"]
mod tests;
