//! The end of a run, and what follows it.

use super::draft::Draft;
use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::names::conditions as kind;
use agentrun_api::{
    AgentRun, AgentRunSpec, CompleteReason, FailedReason, Json, Outcome, RunPhase, VolumeReadyReason,
};
use agentrun_core::conditions::Is;
use agentrun_core::plan::acceptance;
use agentrun_core::plan::outcome::TaskEnd;
use agentrun_core::plan::output::{MAX_INLINE_BYTES, RunOutput};
use agentrun_core::plan::run::{RunEnd, RunPlan};
use jiff::Timestamp;
use kube::api::{DeleteParams, Preconditions};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use std::time::Duration;

/// Writes the terminal condition and the output into the draft.
pub(super) fn finish(
    draft: &mut Draft,
    spec: &AgentRunSpec,
    plan: &RunPlan,
    end: RunEnd,
    stop: Option<FailedReason>,
) {
    let unmet = accept(draft, spec, plan);
    draft.status.summary.clone_from(&plan.summary);
    let failed = plan.failed.iter().map(|task| match plan.ends.get(task) {
        Some(Some(TaskEnd::Failed(Outcome::Success))) => format!("{task} (not accepted)"),
        _ => task.clone(),
    });
    let failed = failed.collect::<Vec<_>>().join(", ");
    match (stop, end) {
        (Some(reason @ (FailedReason::Cancelled | FailedReason::Replaced)), _) => draft.cancelled(reason),
        (Some(reason), _) => draft.fail(reason, "limits.timeout is over"),
        (None, RunEnd::TaskFailed) => draft.fail(task_failed(plan), &format!("failed: {failed}")),
        (None, RunEnd::FailedFast) => draft.fail(
            FailedReason::RunFailedFast,
            &format!("failed: {failed}; the rest was stopped"),
        ),
        (None, RunEnd::NotAccepted) => draft.fail(FailedReason::AcceptanceNotMet, &unmet),
        (None, RunEnd::Succeeded) => succeed(draft, plan.output.clone()),
    }
}

/// A run whose lead ran out of its budget says so.
fn task_failed(plan: &RunPlan) -> FailedReason {
    match plan.budget_exceeded {
        true => FailedReason::BudgetExceeded,
        false => FailedReason::TaskFailed,
    }
}

/// Writes what the run's own criteria say, and gives it back as a sentence.
fn accept(draft: &mut Draft, spec: &AgentRunSpec, plan: &RunPlan) -> String {
    let Some(standing) = acceptance::of_run(spec, plan.acceptance.as_deref()) else {
        return String::new();
    };
    draft.status.acceptance = plan.acceptance.clone().unwrap_or_default();
    draft
        .status
        .verdict
        .get_or_insert_with(|| standing.reason.to_string());
    standing.show(&mut draft.status.conditions, draft.generation, draft.now);
    standing.message
}

fn succeed(draft: &mut Draft, output: Option<RunOutput>) {
    let mut reason = CompleteReason::Succeeded;
    let mut message = String::new();
    match output {
        None => {}
        Some(RunOutput::Inline(value)) => draft.status.output = Some(Json(value)),
        Some(RunOutput::Ref(file)) => draft.status.output_ref = Some(file),
        Some(RunOutput::TooLarge { bytes }) => {
            reason = CompleteReason::OutputTooLarge;
            let bytes = bytes.map_or_else(|| "a file".to_owned(), |bytes| format!("{bytes} bytes of JSON"));
            message = format!(
                "the output is {bytes}, a status holds {MAX_INLINE_BYTES}: let one task write it to a file"
            );
        }
        Some(RunOutput::Failed(error)) => return draft.fail(FailedReason::Invalid, &error),
    }
    draft.end(kind::COMPLETE, RunPhase::Succeeded, reason.as_str(), &message);
}

/// What is known of the claim.
pub(super) fn volume(world: &World, run: &AgentRun, draft: &mut Draft) {
    let Some(name) = draft.status.claim_name.clone() else {
        return;
    };
    let Some(claim) = world.claims.get(&run.namespace().unwrap_or_default(), &name) else {
        return;
    };
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    match phase {
        Some("Bound") => draft.volume(
            Is::True,
            VolumeReadyReason::Bound,
            &format!("claim {name} is bound"),
        ),
        Some("Lost") => draft.volume(
            Is::False,
            VolumeReadyReason::VolumeSetupFailed,
            &format!("claim {name} lost its volume"),
        ),
        _ => {}
    }
}

/// Deletes a finished run when its time is over.
pub(super) async fn expire(world: &World, run: &AgentRun, now: Timestamp) -> Result<Action, ReconcileError> {
    let completed = run
        .status
        .as_ref()
        .and_then(|status| status.completion_time.as_ref())
        .map(|time| time.0);
    let seconds = run
        .spec
        .ttl_seconds_after_finished
        .and_then(|seconds| u64::try_from(seconds).ok());
    let (Some(completed), Some(seconds)) = (completed, seconds) else {
        return Ok(Action::await_change());
    };
    let expires = completed + Duration::from_secs(seconds);
    if expires > now {
        return Ok(Action::requeue(
            Duration::try_from(expires.duration_since(now)).unwrap_or_default(),
        ));
    }
    let api: Api<AgentRun> = Api::namespaced(
        world.operator.client.clone(),
        &run.namespace().unwrap_or_default(),
    );
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: run.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match api
        .delete(&run.name_any(), &params)
        .await
        .map_err(ReconcileError::from)
    {
        Ok(_) | Err(ReconcileError::Gone) => Ok(Action::await_change()),
        Err(error) => Err(error),
    }
}
