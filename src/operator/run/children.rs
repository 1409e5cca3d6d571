//! Makes and stops sub-tasks as the plan says, and takes the run's progress from them.

use super::draft::{self, Draft};
use super::{apply, finish, owner_of_data};
use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::{
    AgentRun, AgentRunSpec, FailedReason, ProgressingReason, RunPhase, Skill, SubTask, SubTaskPhase,
};
use agentrun_core::plan::delegates;
use agentrun_core::plan::parsed::Expressions;
use agentrun_core::plan::progress;
use agentrun_core::plan::rerun;
use agentrun_core::plan::resolve::PinnedFunction;
use agentrun_core::plan::run::{self, RunPlan, RunView};
use jiff::Timestamp;
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Plans, makes, stops, and reports. Gives the time of the next look.
pub(super) async fn advance(
    world: &World,
    run: &Arc<AgentRun>,
    draft: &mut Draft,
    expressions: &Expressions,
) -> Result<Option<Timestamp>, ReconcileError> {
    let uid = run.uid().unwrap_or_default();
    let suspended = run.spec.suspend == Some(true);
    let stop = stop_of(draft, &run.spec);
    let children = world.subtasks.under(&uid);
    let refs: Vec<&SubTask> = children.iter().map(|child| &**child).collect();
    let plan = plan(world, run, expressions, &refs, stop.is_some(), suspended);
    let made = apply::create(world, run, &plan).await?;
    apply::stop(world, &refs, &plan, draft.now).await?;
    // What was just made counts already.
    let children = if made {
        world.subtasks.under(&uid)
    } else {
        children
    };
    let refs: Vec<&SubTask> = children.iter().map(|child| &**child).collect();
    progress::fill(
        &mut draft.status,
        &run.spec,
        &refs,
        &plan,
        draft.generation,
        draft.now,
    );
    finish::volume(world, run, draft);
    if let Some(end) = plan.end.filter(|_| !made) {
        finish::finish(draft, &run.spec, &plan, end, stop);
        return Ok(None);
    }
    report(draft, &refs, suspended);
    let deadline = draft
        .status
        .deadline
        .as_ref()
        .map(|time| time.0)
        .filter(|deadline| *deadline > draft.now);
    Ok(match plan.create.len() >= run::MAX_NEW_PER_ROUND {
        true => Some(draft.now),
        false => deadline,
    })
}

fn plan(
    world: &World,
    run: &AgentRun,
    expressions: &Expressions,
    children: &[&SubTask],
    stopped: bool,
    suspended: bool,
) -> RunPlan {
    let namespace = run.namespace().unwrap_or_default();
    let skills = pinned_skills(world, run, &namespace);
    let functions = skills.iter().flat_map(|(name, (skill, digest))| {
        let declared = skill.status.iter().flat_map(|status| &status.functions);
        declared.map(move |declared| {
            (
                (name.clone(), declared.name.clone()),
                PinnedFunction {
                    declared,
                    digest: digest.as_str(),
                },
            )
        })
    });
    let functions: BTreeMap<_, _> = functions.collect();
    let (_, thread) = owner_of_data(run);
    run::plan(&RunView {
        name: &run.name_any(),
        namespace: &namespace,
        uid: &run.uid().unwrap_or_default(),
        thread: &thread,
        spec: &run.spec,
        expressions,
        children,
        functions: &functions,
        stopped,
        suspended,
    })
}

/// Skills of the run with the digests that were pinned at admission.
fn pinned_skills(world: &World, run: &AgentRun, namespace: &str) -> BTreeMap<String, (Arc<Skill>, String)> {
    let pinned = run
        .status
        .iter()
        .flat_map(|status| &status.provenance)
        .flat_map(|provenance| &provenance.skills);
    let skills = pinned.filter_map(|pinned| {
        let skill = world.skills.get(namespace, &pinned.name)?;
        Some((pinned.name.clone(), (skill, pinned.digest.clone())))
    });
    skills.collect()
}

/// Why nothing may start any more.
fn stop_of(draft: &Draft, spec: &AgentRunSpec) -> Option<FailedReason> {
    if draft.status.cancel_requested_at.is_some() {
        return Some(draft::cancel_reason(spec));
    }
    // The deadline of a run at rest moves when it goes on, not before.
    if rests_since(draft).is_some() {
        return None;
    }
    let deadline = draft.status.deadline.as_ref()?.0;
    (deadline <= draft.now).then_some(FailedReason::DeadlineExceeded)
}

/// Since when a suspended run does nothing. `Progressing` remembers it.
fn rests_since(draft: &Draft) -> Option<Timestamp> {
    let progressing = agentrun_core::conditions::get(
        &draft.status.conditions,
        agentrun_api::names::conditions::PROGRESSING,
    );
    progressing
        .filter(|condition| condition.reason == ProgressingReason::Suspended.as_str())
        .map(|condition| condition.last_transition_time.0)
}

/// A suspended run's deadline moves with the time that it was at rest. That is written down before anything starts:
/// a sub-task that met the old deadline would be ended by it.
pub(super) async fn resume(
    world: &World,
    run: Arc<AgentRun>,
    draft: &mut Draft,
) -> Result<Arc<AgentRun>, ReconcileError> {
    let (Some(since), false) = (rests_since(draft), run.spec.suspend == Some(true)) else {
        return Ok(run);
    };
    let paused = draft.now.duration_since(since);
    if let Some(deadline) = &mut draft.status.deadline {
        deadline.0 += paused;
    }
    // It goes on: what follows in this round must not take it for resting any more.
    draft.progressing(RunPhase::Running, ProgressingReason::Running, None);
    let run = Arc::new(apply::write_status(world, &run, draft).await?);
    *draft = Draft::of(&run, draft.now);
    Ok(run)
}

fn report(draft: &mut Draft, children: &[&SubTask], suspended: bool) {
    let live = |child: &&&SubTask| {
        child
            .status
            .as_ref()
            .is_none_or(|status| status.outcome.is_none())
    };
    // One whose criteria are run again only waits for those that do so.
    let unsettled = |child: &SubTask| {
        child
            .status
            .as_ref()
            .is_some_and(|status| rerun::unsettled(status).is_some())
    };
    // What waits for its next attempt rests, too.
    let runs = |child: &&SubTask| {
        let phase = child.status.as_ref().and_then(|status| status.phase);
        phase == Some(SubTaskPhase::Running) && !unsettled(child)
    };
    if suspended && !children.iter().any(runs) {
        return draft.progressing(
            RunPhase::Suspended,
            ProgressingReason::Suspended,
            Some("spec.suspend is true".into()),
        );
    }
    let waits = |child: &&&SubTask| live(child) && !unsettled(child);
    let waiting = children.iter().filter(waits).find_map(|child| {
        let status = child.status.as_ref()?;
        let text = status.waiting_for.as_ref()?;
        let idle = status.phase != Some(SubTaskPhase::Finished);
        // That others are before it keeps nobody from going on.
        let in_turn = text.starts_with(delegates::FOR_A_PLACE);
        (idle && !in_turn).then(|| format!("{}: {text}", child.spec.task))
    });
    let reason = match waiting.as_deref() {
        Some(text) if text.contains("QuotaExceeded") => ProgressingReason::QuotaExceeded,
        Some(text) if text.contains("Unschedulable") => ProgressingReason::Unschedulable,
        Some(text) if text.contains("back-off") => ProgressingReason::BackOff,
        _ => ProgressingReason::Running,
    };
    draft.progressing(RunPhase::Running, reason, waiting);
}
