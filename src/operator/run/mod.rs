//! Reconciles one run: dereference, validate and plan (pure), apply, update_status.

mod admit;
mod apply;
mod children;
mod data;
mod dereference;
mod draft;
mod egress;
mod finish;

use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::names::conditions as kind;
use agentrun_api::{AgentRun, AgentRunStatus, RunPhase};
use agentrun_core::conditions;
use agentrun_core::plan::validate::{Validated, validate};
pub use data::live_runs;
use draft::Draft;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube::runtime::controller::Action;
use std::sync::Arc;
use std::time::Duration;

/// The status of a run is written at most twice a second while only numbers change.
const PROGRESS_PAUSE: Duration = Duration::from_millis(500);

/// One round for one run.
pub async fn reconcile(run: Arc<AgentRun>, world: Arc<World>) -> Result<Action, ReconcileError> {
    let namespace = run.namespace().unwrap_or_default();
    let known = world
        .runs
        .get(&namespace, &run.name_any())
        .filter(|known| known.uid() == run.uid());
    let run = known.unwrap_or(run);
    let now = world.now();
    if run.metadata.deletion_timestamp.is_some() {
        return Ok(Action::await_change()); // its sub-tasks are released one by one; it holds nothing itself
    }
    let mut draft = Draft::of(&run, now);
    if is_over(&draft.status) {
        return finish::expire(&world, &run, now).await;
    }
    draft.latch_cancel(&run.spec);
    let (run, next) = match advance(&world, Arc::clone(&run), &mut draft).await {
        Ok(advanced) => advanced,
        Err(error) => return Err(blocked(&world, &run, now, error).await),
    };
    let later = apply::update_status(&world, &run, &draft).await?;
    Ok(requeue(&draft, later.into_iter().chain(next).min(), now))
}

/// Says in the status what is in the way, from the run as it was read: what this round had decided may not have
/// happened. The round is repeated all the same.
async fn blocked(world: &World, run: &AgentRun, now: Timestamp, error: ReconcileError) -> ReconcileError {
    let Some((reason, message)) = error.obstacle() else {
        return error;
    };
    let mut draft = Draft::of(run, now);
    let phase = draft.status.phase.unwrap_or(RunPhase::Pending);
    draft.progressing(phase, reason, Some(message));
    if let Err(unwritten) = apply::update_status(world, run, &draft).await {
        tracing::debug!(%unwritten, "what is in the way is not in the status yet");
    }
    error
}

/// Goes as far as it can and leaves what it found in the draft. Gives the run as it was last written, and the time
/// of the next look.
async fn advance(
    world: &World,
    run: Arc<AgentRun>,
    draft: &mut Draft,
) -> Result<(Arc<AgentRun>, Option<Timestamp>), ReconcileError> {
    let expressions = match validate(&run.spec) {
        Validated::Valid(expressions) => expressions,
        refused => {
            draft.refuse(&refused);
            return Ok((run, None));
        }
    };
    if admit::is_admitted(&draft.status) {
        let run = children::resume(world, run, draft).await?;
        let next = children::advance(world, &run, draft, &expressions).await?;
        return Ok((run, next));
    }
    if draft.status.cancel_requested_at.is_some() {
        draft.cancelled(draft::cancel_reason(&run.spec));
        return Ok((run, None));
    }
    if egress::is_asked_for(&run.spec) {
        let forbidden = egress::forbidden(&run.spec, &world.installation()?.denied);
        if !forbidden.is_empty() {
            draft.refuse(&Validated::Invalid(forbidden));
            return Ok((run, None));
        }
    }
    let facts = dereference::admission(world, &run).await?;
    if !facts.invalid.is_empty() {
        draft.refuse(&Validated::Invalid(facts.invalid));
        return Ok((run, None));
    }
    if let Some(wait) = admit::waits_for(&facts) {
        let next = draft.not_admitted(&run, &wait);
        return Ok((run, next));
    }
    if let Some(wait) = data::take(world, &run, draft).await? {
        let next = draft.waiting_for_data(&run, &wait);
        return Ok((run, next));
    }
    // What was admitted is written down before anything starts: the gateway serves files by these digests.
    admit::admit(draft, &run, &facts, world);
    let run = Arc::new(apply::write_status(world, &run, draft).await?);
    *draft = Draft::of(&run, draft.now);
    let next = children::advance(world, &run, draft, &expressions).await?;
    Ok((run, next))
}

/// Whether a run has its terminal condition.
pub fn is_over(status: &AgentRunStatus) -> bool {
    conditions::is_true(&status.conditions, kind::COMPLETE)
        || conditions::is_true(&status.conditions, kind::FAILED)
}

/// User and thread of a run's folder; without a thread its UID stands for one.
pub fn owner_of_data(run: &AgentRun) -> (String, String) {
    let data = run.spec.user_data.clone().unwrap_or_default();
    let user = data.user.unwrap_or_else(|| "default".to_owned());
    (user, data.thread.unwrap_or_else(|| run.uid().unwrap_or_default()))
}

fn requeue(draft: &Draft, next: Option<Timestamp>, now: Timestamp) -> Action {
    match next {
        Some(at) if !is_over(&draft.status) => {
            let pause = Duration::try_from(at.duration_since(now)).unwrap_or_default();
            Action::requeue(pause.max(Duration::from_millis(20)))
        }
        _ if is_over(&draft.status) => Action::requeue(Duration::from_millis(20)), // TTL, from the written status
        _ => Action::await_change(),
    }
}
