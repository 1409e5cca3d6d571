//! The writes of a run's round.

use super::draft::Draft;
use super::is_over;
use crate::error::{ReconcileError, already_exists};
use crate::events::EventReason;
use crate::world::World;
use crate::write;
use agentrun_api::names::{conditions as kind, labels};
use agentrun_api::{AgentRun, RunPhase, SubTask, SubTaskReason};
use agentrun_core::conditions;
use agentrun_core::plan::run::{NewSubTask, RunPlan};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PostParams;
use kube::{Api, Resource as _, ResourceExt as _};
use serde_json::json;
use std::collections::BTreeMap;

/// Makes the sub-tasks of the plan; says whether there were any. One that exists with our owner is success.
pub(super) async fn create(world: &World, run: &AgentRun, plan: &RunPlan) -> Result<bool, ReconcileError> {
    let namespace = run.namespace().unwrap_or_default();
    let api: Api<SubTask> = Api::namespaced(world.operator.client.clone(), &namespace);
    let run_uid = run.uid().unwrap_or_default();
    for new in &plan.create {
        let made = match api
            .create(&PostParams::default(), &subtask(run, &namespace, new))
            .await
        {
            Err(error) if already_exists(&error) => {
                let there = api.get(&new.name).await?;
                if there.spec.run_ref.uid != run_uid
                    || !there.owner_references().iter().any(|owner| owner.uid == run_uid)
                {
                    return Err(ReconcileError::NameTaken {
                        kind: "SubTask",
                        name: new.name.clone(),
                    });
                }
                there
            }
            made => made?,
        };
        world.subtasks.wrote(made);
    }
    Ok(!plan.create.is_empty())
}

/// The object of a sub-task. A run's own labels and annotations are not copied: a GitOps tool would adopt the
/// children and prune them.
fn subtask(run: &AgentRun, namespace: &str, new: &NewSubTask) -> SubTask {
    let mut subtask = SubTask::new(&new.name, (*new.spec).clone());
    let metadata = &mut subtask.metadata;
    metadata.namespace = Some(namespace.to_owned());
    metadata.finalizers = Some(vec![labels::LEASE.to_owned()]);
    metadata.labels = Some(BTreeMap::from([
        (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
        (labels::RUN_UID.to_owned(), run.uid().unwrap_or_default()),
    ]));
    metadata.owner_references = Some(vec![OwnerReference {
        api_version: AgentRun::api_version(&()).into_owned(),
        kind: AgentRun::kind(&()).into_owned(),
        name: run.name_any(),
        uid: run.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }]);
    if let Some(decided) = &new.decided {
        let value = json!({"outcome": decided.outcome, "reason": decided.reason.as_str(), "message": decided.message});
        metadata.annotations = Some(BTreeMap::from([(labels::DECIDED.to_owned(), value.to_string())]));
    }
    subtask
}

/// Marks the sub-tasks that have to stop since a sibling failed, or since nobody waits for them any more. The mark carries its time, so that the patience with
/// a stubborn one survives a restart.
pub(super) async fn stop(
    world: &World,
    children: &[&SubTask],
    plan: &RunPlan,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    for child in children {
        let name = child.name_any();
        let reason = match (plan.stop.contains(&name), plan.orphans.contains(&name)) {
            (true, _) => SubTaskReason::RunFailedFast,
            (false, true) => SubTaskReason::Cancelled,
            (false, false) => continue,
        };
        if child.annotations().contains_key(labels::STOP) || child.metadata.deletion_timestamp.is_some() {
            continue;
        }
        let api: Api<SubTask> = Api::namespaced(
            world.operator.client.clone(),
            &child.namespace().unwrap_or_default(),
        );
        let mark = format!("{reason} {now}");
        match write::annotation(&api, *child, labels::STOP, &mark).await {
            Ok(written) => world.subtasks.wrote(written),
            Err(ReconcileError::Gone) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes the status if something other than time has changed. `Some` is when it may be written, if not yet.
pub(super) async fn update_status(
    world: &World,
    run: &AgentRun,
    draft: &Draft,
) -> Result<Option<Timestamp>, ReconcileError> {
    if draft.status == draft.before {
        return Ok(None);
    }
    let uid = run.uid().unwrap_or_default();
    if let Some(pause) = draft.not_before(world.memory.last_written(&uid)) {
        return Ok(Some(draft.now + pause));
    }
    write_status(world, run, draft).await?;
    Ok(None)
}

/// Writes the status and tells of the transition.
pub(super) async fn write_status(
    world: &World,
    run: &AgentRun,
    draft: &Draft,
) -> Result<AgentRun, ReconcileError> {
    let api: Api<AgentRun> = Api::namespaced(
        world.operator.client.clone(),
        &run.namespace().unwrap_or_default(),
    );
    let written = write::status(&api, run, &draft.status).await?;
    world
        .memory
        .written(&run.uid().unwrap_or_default(), is_over(&draft.status));
    world.runs.wrote(written.clone());
    if let Some((reason, note)) = transition(draft) {
        world
            .operator
            .events
            .publish(&run.object_ref(&()), reason, "Reconcile", &note)
            .await;
    }
    Ok(written)
}

/// The transition that a write makes, if it makes one.
fn transition(draft: &Draft) -> Option<(EventReason, String)> {
    let (before, after) = (&draft.before, &draft.status);
    if is_over(after) && !is_over(before) {
        let kinds = [kind::COMPLETE, kind::FAILED];
        let end = kinds
            .iter()
            .find_map(|kind| conditions::get(&after.conditions, kind).filter(|end| end.status == "True"))?;
        let event = match after.phase {
            Some(RunPhase::Succeeded) => EventReason::Succeeded,
            Some(RunPhase::Cancelled) => EventReason::Cancelled,
            _ => EventReason::Failed,
        };
        return Some((event, format!("{}: {}", end.reason, end.message)));
    }
    let admitted = |status| conditions::get(status, kind::ADMITTED).cloned();
    let (was, is) = (admitted(&before.conditions), admitted(&after.conditions)?);
    if was.is_some_and(|was| was.status == is.status && was.reason == is.reason) {
        return None;
    }
    match is.status.as_str() {
        "True" => Some((EventReason::Admitted, "all that it names is there".to_owned())),
        _ => Some((EventReason::NotAdmitted, format!("{}: {}", is.reason, is.message))),
    }
}
