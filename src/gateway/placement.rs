//! What the objects say about who works on what; pure.

use agentrun_api::names::labels::STOP;
use agentrun_api::{AgentRun, Attempt, RunPhase, SubTask};
use agentrun_protocol::work::AttemptId;
use kube::ResourceExt as _;

/// The Pod that a sub-task is assigned to, and the attempt that it is to work on. `None` when the sub-task has its
/// outcome, its newest attempt has ended, or nothing is assigned.
pub(crate) fn placement(subtask: &SubTask) -> Option<(&str, AttemptId)> {
    let status = subtask.status.as_ref()?;
    let pod_uid = status.sandbox.as_ref()?.pod_uid.as_deref()?;
    let attempt = newest(&status.attempts)?;
    let runs = status.outcome.is_none() && attempt.outcome.is_none() && attempt.finished.is_none();
    let here = attempt.pod_uid.as_deref() == Some(pod_uid);
    let id = AttemptId {
        uid: subtask.uid()?,
        attempt: attempt.number,
    };
    (runs && here).then_some((pod_uid, id))
}

/// The attempt with the highest number.
pub(crate) fn newest(attempts: &[Attempt]) -> Option<&Attempt> {
    attempts.iter().max_by_key(|attempt| attempt.number)
}

/// Whether the objects show that the work must end: a cancelled or deleted run, a deleted sub-task, or one that its run
/// stops. The operator then decides the outcome.
pub(crate) fn is_stopped(subtask: &SubTask, run: Option<&AgentRun>) -> bool {
    let deleted = subtask.metadata.deletion_timestamp.is_some();
    let stopped = subtask.annotations().contains_key(STOP);
    deleted || stopped || run.is_some_and(is_cancelled)
}

fn is_cancelled(run: &AgentRun) -> bool {
    let requested = run
        .status
        .as_ref()
        .is_some_and(|status| status.cancel_requested_at.is_some());
    requested || run.metadata.deletion_timestamp.is_some()
}

/// Whether nothing of a run can be worked on any more.
pub(crate) fn is_over(run: &AgentRun) -> bool {
    let phase = run.status.as_ref().and_then(|status| status.phase);
    matches!(
        phase,
        Some(RunPhase::Succeeded | RunPhase::Failed | RunPhase::Cancelled)
    )
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
