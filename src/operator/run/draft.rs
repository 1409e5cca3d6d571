//! The status that a round is about to write. Pure: it changes with what the round finds, and is written once.

use super::PROGRESS_PAUSE;
use agentrun_api::names::conditions as kind;
use agentrun_api::{
    AdmittedReason, AgentRun, AgentRunSpec, AgentRunStatus, FailedReason, ProgressingReason, RunPhase,
    VolumeReadyReason,
};
use agentrun_core::conditions::{self, Is};
use agentrun_core::plan::resolve::DEFAULT_START_TIMEOUT;
use agentrun_core::plan::validate::{FieldError, Validated};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use std::time::Duration;

/// How long until a missing object is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The status in the making.
pub(super) struct Draft {
    /// As it was read.
    pub before: AgentRunStatus,
    /// As it will be.
    pub status: AgentRunStatus,
    /// `metadata.generation`.
    pub generation: Option<i64>,
    /// The time of the round.
    pub now: Timestamp,
    created: Timestamp,
}

/// A wait, as it shows in conditions.
pub(super) struct DataWait {
    /// Reason of `Progressing` or `VolumeReady`.
    pub reason: DataWaitReason,
    /// One sentence.
    pub message: String,
}

/// What about the data is waited for.
pub(super) enum DataWaitReason {
    /// Another run of the thread is before this one.
    ThreadBusy,
    /// A Pod of a run that is gone is still on its way out.
    ThreadEnding,
    /// The claim of the thread differs from what this run asks for.
    ThreadMismatch,
    /// The policy refuses to wait: the run ends.
    Ends(FailedReason),
}

impl Draft {
    /// Starts from the status of a run.
    pub(super) fn of(run: &AgentRun, now: Timestamp) -> Self {
        let before = run.status.clone().unwrap_or_default();
        let mut status = before.clone();
        status.observed_generation = run.metadata.generation;
        status.phase = status.phase.or(Some(RunPhase::Pending));
        let created = run
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(now, |time| time.0);
        Self {
            before,
            status,
            generation: run.metadata.generation,
            now,
            created,
        }
    }

    /// Sets a condition.
    pub(super) fn condition(&mut self, kind: &str, is: Is, reason: &str, message: &str) {
        conditions::set(
            &mut self.status.conditions,
            kind,
            is,
            reason,
            message,
            self.generation,
            self.now,
        );
    }

    /// A cancel once seen stays, whatever a GitOps tool applies afterwards.
    pub(super) fn latch_cancel(&mut self, spec: &AgentRunSpec) {
        if spec.cancel == Some(true) && self.status.cancel_requested_at.is_none() {
            self.status.cancel_requested_at = Some(Time(self.now));
        }
    }

    /// A mistake in the spec is final.
    pub(super) fn refuse(&mut self, refused: &Validated) {
        let (reason, errors): (_, &[FieldError]) = match refused {
            Validated::Valid(_) => return,
            Validated::NotYetSupported(errors) => (AdmittedReason::NotYetSupported, errors),
            Validated::Invalid(errors) => (AdmittedReason::Invalid, errors),
        };
        let message = errors
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        self.condition(kind::ADMITTED, Is::False, reason.as_str(), &message);
        self.fail(FailedReason::Invalid, &message);
    }

    /// Something that the spec names is not there: wait for it until `startTimeout`.
    pub(super) fn not_admitted(
        &mut self,
        run: &AgentRun,
        (reason, message): &(AdmittedReason, String),
    ) -> Option<Timestamp> {
        self.condition(kind::ADMITTED, Is::False, reason.as_str(), message);
        self.wait(run, reason.as_str(), message)
    }

    /// The thread or its claim cannot be had yet.
    pub(super) fn waiting_for_data(&mut self, run: &AgentRun, wait: &DataWait) -> Option<Timestamp> {
        match &wait.reason {
            DataWaitReason::Ends(reason) => {
                self.fail(*reason, &wait.message);
                None
            }
            DataWaitReason::ThreadMismatch => {
                let reason = AdmittedReason::ThreadMismatch.as_str();
                self.condition(kind::ADMITTED, Is::False, reason, &wait.message);
                self.wait(run, reason, &wait.message)
            }
            DataWaitReason::ThreadBusy | DataWaitReason::ThreadEnding => {
                let reason = ProgressingReason::ThreadBusy.as_str();
                self.condition(kind::PROGRESSING, Is::False, reason, &wait.message);
                self.status.waiting_for = Some(wait.message.clone());
                self.status.reason = Some(reason.to_owned());
                // The end of the run before wakes this one, but nobody is left to speak for a run that is gone.
                matches!(wait.reason, DataWaitReason::ThreadEnding).then(|| self.now + LOOK_AGAIN)
            }
        }
    }

    fn wait(&mut self, run: &AgentRun, reason: &str, message: &str) -> Option<Timestamp> {
        self.status.waiting_for = Some(message.to_owned());
        self.status.reason = Some(reason.to_owned());
        let limits = run
            .spec
            .limits
            .as_ref()
            .and_then(|limits| limits.start_timeout.as_ref());
        let start_timeout = limits
            .and_then(|text| text.parse().ok())
            .unwrap_or(DEFAULT_START_TIMEOUT);
        let give_up = self.created + start_timeout;
        if give_up <= self.now {
            self.fail(
                FailedReason::StartTimeout,
                &format!("not started within {start_timeout:?}: {message}"),
            );
            return None;
        }
        Some(give_up.min(self.now + LOOK_AGAIN))
    }

    /// What is known of the volume.
    pub(super) fn volume(&mut self, is: Is, reason: VolumeReadyReason, message: &str) {
        self.condition(kind::VOLUME_READY, is, reason.as_str(), message);
    }

    /// It goes on, or waits for something on its way.
    pub(super) fn progressing(
        &mut self,
        phase: RunPhase,
        reason: ProgressingReason,
        waiting_for: Option<String>,
    ) {
        let is = if waiting_for.is_none() {
            Is::True
        } else {
            Is::False
        };
        self.condition(
            kind::PROGRESSING,
            is,
            reason.as_str(),
            waiting_for.as_deref().unwrap_or_default(),
        );
        self.status.phase = Some(phase);
        self.status.reason = waiting_for.as_ref().map(|_| reason.as_str().to_owned());
        self.status.waiting_for = waiting_for;
    }

    /// Ends the run badly.
    pub(super) fn fail(&mut self, reason: FailedReason, message: &str) {
        let phase = match reason {
            FailedReason::Cancelled | FailedReason::Replaced => RunPhase::Cancelled,
            _ => RunPhase::Failed,
        };
        self.end(kind::FAILED, phase, reason.as_str(), message);
    }

    /// Ends the run as cancelled.
    pub(super) fn cancelled(&mut self, reason: FailedReason) {
        let message = match reason {
            FailedReason::Replaced => "another run took the thread over: its concurrencyPolicy is Replace",
            _ => "cancelled as spec.cancel asked",
        };
        self.fail(reason, message);
    }

    /// Writes the terminal condition.
    pub(super) fn end(&mut self, condition: &str, phase: RunPhase, reason: &str, message: &str) {
        self.condition(condition, Is::True, reason, message);
        self.condition(
            kind::PROGRESSING,
            Is::False,
            ProgressingReason::Finished.as_str(),
            "",
        );
        self.status.phase = Some(phase);
        self.status.reason = Some(reason.to_owned());
        self.status.waiting_for = None;
        self.status.completion_time = Some(MicroTime(self.now));
    }

    /// When this may be written, if it has to wait: numbers alone are not urgent.
    pub(super) fn not_before(&self, last_written: Option<std::time::Instant>) -> Option<Duration> {
        let quiet = |status: &AgentRunStatus| {
            (
                status.phase,
                status.conditions.clone(),
                status.cancel_requested_at.clone(),
            )
        };
        if quiet(&self.before) != quiet(&self.status) {
            return None;
        }
        let left = PROGRESS_PAUSE.checked_sub(last_written?.elapsed())?;
        (!left.is_zero()).then_some(left)
    }
}

/// Who asked for the cancel that is latched: the run's own spec, or else the run that replaces it.
pub(super) fn cancel_reason(spec: &AgentRunSpec) -> FailedReason {
    match spec.cancel {
        Some(true) => FailedReason::Cancelled,
        _ => FailedReason::Replaced,
    }
}
