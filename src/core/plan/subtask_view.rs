//! What the decision about a sub-task takes and gives: plain data.

use crate::plan::rerun::Reruns;
use crate::settle::{Settlement, Stop};
use agentrun_api::{Outcome, SubTaskReason, SubTaskSpec, SubTaskStatus, Verdict};
use jiff::Timestamp;
use std::time::Duration;

/// A Pod of the sub-task, as far as the plan needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodView {
    /// Name of the Pod.
    pub name: String,
    /// UID of the Pod.
    pub uid: String,
    /// The attempt it was made for.
    pub attempt: i32,
    /// When its deletion was asked for.
    pub deleting_since: Option<Timestamp>,
    /// What its status says.
    pub state: PodState,
}

/// What a Pod's status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// No container runs yet; `message` is the last scheduler, volume or image message.
    Pending {
        /// What it waits for, for people.
        message: Option<String>,
    },
    /// It will never start.
    Broken {
        /// Why.
        reason: SubTaskReason,
        /// What was found and what to do.
        message: String,
    },
    /// Both containers run.
    Running {
        /// Since when.
        since: Timestamp,
    },
    /// A container ended, or the Pod was taken away.
    Lost {
        /// Why.
        reason: SubTaskReason,
        /// What was found.
        message: String,
        /// The cause may still change: container statuses are not final yet.
        settled: bool,
        /// No container of the Pod runs any more.
        nothing_runs: bool,
    },
}

/// What the sub-task must know of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunView {
    /// There is no run with that UID (any more).
    Gone,
    /// The run is there.
    Live {
        /// When its cancellation, or else its deletion, was first seen.
        stopped_at: Option<Timestamp>,
        /// `spec.suspend`.
        suspended: bool,
        /// Since when it goes on: its start, or its last rest's end.
        going_since: Option<Timestamp>,
        /// `status.deadline`.
        deadline: Option<Timestamp>,
        /// The run's terminal status is written.
        finished: bool,
    },
}

/// All that the decision depends on.
#[derive(Clone, Debug)]
pub struct SubTaskView<'a> {
    /// `metadata.uid`.
    pub uid: &'a str,
    /// The spec.
    pub spec: &'a SubTaskSpec,
    /// The status.
    pub status: &'a SubTaskStatus,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `metadata.deletionTimestamp`.
    pub deleted: Option<Timestamp>,
    /// Whether our lease finalizer is on it.
    pub has_lease: bool,
    /// An outcome that was decided when the sub-task was made (skipped, bad expression).
    pub decided: Option<Decided>,
    /// A stop that the run's plan marked, with its time.
    pub marked: Option<(Stop, Timestamp)>,
    /// How far its criteria have been run again, while it waits for that.
    pub reruns: Option<&'a Reruns>,
    /// Its run.
    pub run: RunView,
    /// Its Pods.
    pub pods: &'a [PodView],
    /// Why no Pod may be made on the claim now.
    pub blocked: Option<&'a str>,
    /// How long starting may take.
    pub start_timeout: Duration,
    /// How long an attempt may run.
    pub timeout: Duration,
    /// How long a failed sandbox is kept.
    pub keep_on_failure: Duration,
    /// Whether the operator's own deadline counts already: not right after becoming leader, not while no
    /// gateway is ready.
    pub backstop: bool,
}

/// An end that needs no attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The outcome.
    pub outcome: Outcome,
    /// Its reason.
    pub reason: SubTaskReason,
    /// One sentence.
    pub message: String,
}

/// One thing to do. They are done in order; the first that fails ends the round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Put our finalizer on.
    TakeLease,
    /// Make the Pod of this attempt, then assign it.
    StartPod {
        /// Number of the attempt.
        attempt: i32,
    },
    /// Write `sandbox`, `attempts[]` and `phase: Running`, in one write.
    Assign {
        /// Number of the attempt.
        attempt: i32,
        /// Name of the Pod.
        pod_name: String,
        /// UID of the Pod.
        pod_uid: String,
    },
    /// Write down why an attempt is being ended, before its Pod is deleted.
    NoteEnding {
        /// Number of the attempt.
        attempt: i32,
        /// Why.
        reason: SubTaskReason,
        /// What was found.
        message: String,
    },
    /// Delete a Pod, by UID.
    DeletePod {
        /// Its name.
        name: String,
        /// Its UID.
        uid: String,
    },
    /// Write the end of an attempt and what follows.
    EndAttempt {
        /// Number of the attempt.
        attempt: i32,
        /// How it ended.
        outcome: Outcome,
        /// Why.
        reason: String,
        /// What was found.
        message: String,
        /// What follows.
        settlement: Settlement,
    },
    /// Write what the criteria of the newest attempt, a success, say in the end, and what follows.
    Settle {
        /// One for each criterion.
        verdicts: Vec<Verdict>,
        /// What follows.
        settlement: Settlement,
    },
    /// Write the outcome of a sub-task of which no attempt runs.
    Finish(Decided),
    /// Take our finalizer off.
    ReleaseLease,
}

/// What to do, and when to look again if nothing happens before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubTaskPlan {
    /// In order.
    pub actions: Vec<Action>,
    /// The next time that a deadline may pass.
    pub look_again: Option<Timestamp>,
    /// What the sub-task waits for, as one sentence; empty when nothing.
    pub waiting_for: Option<String>,
}

impl SubTaskPlan {
    pub(super) fn of(actions: Vec<Action>) -> Self {
        Self {
            actions,
            ..Self::default()
        }
    }

    pub(super) fn at(mut self, time: Timestamp) -> Self {
        self.look_again = Some(self.look_again.map_or(time, |other| other.min(time)));
        self
    }

    pub(super) fn waiting(mut self, text: impl Into<String>) -> Self {
        self.waiting_for = Some(text.into());
        self
    }
}
