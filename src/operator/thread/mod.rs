//! Reconciles one thread: counts its holders, keeps it while there are any, and lets it go with its last run when
//! its policy says so.

use crate::error::ReconcileError;
use crate::run::live_runs;
use crate::world::World;
use crate::write;
use agentrun_api::names::labels;
use agentrun_api::{OnRelease, Thread};
use agentrun_core::plan::run::has_lease;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::api::DeleteParams;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use std::sync::Arc;
use std::time::Duration;

/// How often a thread that is held is looked at.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// One round for one thread.
pub async fn reconcile(thread: Arc<Thread>, world: Arc<World>) -> Result<Action, ReconcileError> {
    let namespace = thread.namespace().unwrap_or_default();
    let known = world
        .threads
        .get(&namespace, &thread.name_any())
        .filter(|known| known.uid() == thread.uid());
    let thread = known.unwrap_or(thread);
    let api: Api<Thread> = Api::namespaced(world.operator.client.clone(), &namespace);
    let live = live_runs(&world, &thread);
    let leases = leases(&world, &namespace, &thread);
    let idle = live.is_empty() && leases == 0;
    // The last holder may go without an event that names this thread: its run may be gone already.
    let next = if idle {
        Action::await_change()
    } else {
        Action::requeue(LOOK_AGAIN)
    };
    if thread.metadata.deletion_timestamp.is_some() {
        let free = leases == 0 && live.iter().all(|run| !holds(run, &thread));
        release(&world, &api, &thread, free).await?;
        return Ok(next);
    }
    let mut status = thread.status.clone().unwrap_or_default();
    status.leases = Some(i32::try_from(leases).unwrap_or(i32::MAX));
    status.observed_generation = thread.metadata.generation;
    let deletes_itself = thread.spec.on_release == Some(OnRelease::Delete);
    // That a run has been here is all that is left to know of one that is over: the release rests on it.
    if !deletes_itself && live.iter().all(|run| !holds(run, &thread)) {
        status.active_run = None;
    }
    // One that we made may have lost its run before that took the lock.
    let had_a_run = status.active_run.is_some() || is_ours(&thread);
    if deletes_itself && idle && had_a_run {
        return match api
            .delete(&thread.name_any(), &DeleteParams::background())
            .await
            .map_err(ReconcileError::from)
        {
            Ok(_) | Err(ReconcileError::Gone) => Ok(Action::await_change()),
            Err(error) => Err(error),
        };
    }
    if Some(&status) != thread.status.as_ref() {
        world.threads.wrote(write::status(&api, &*thread, &status).await?);
    }
    Ok(next)
}

/// Whether a run's reconcile made it, and no person.
fn is_ours(thread: &Thread) -> bool {
    thread.labels().get(labels::MANAGED_BY).map(String::as_str) == Some(labels::MANAGED_BY_VALUE)
}

fn holds(run: &agentrun_api::AgentRun, thread: &Thread) -> bool {
    let active = thread
        .status
        .as_ref()
        .and_then(|status| status.active_run.as_ref());
    active.is_some_and(|active| run.uid().as_ref() == Some(&active.uid))
}

/// Sub-tasks of the thread's runs that hold a lease, and Pods that are still on its claim.
fn leases(world: &World, namespace: &str, thread: &Thread) -> usize {
    let runs = world.runs.under(&format!("{namespace}/{}", thread.name_any()));
    let children = runs
        .iter()
        .filter_map(|run| run.uid())
        .flat_map(|uid| world.subtasks.under(&uid));
    let held = children.filter(|child| has_lease(child)).count();
    let claim = thread
        .status
        .as_ref()
        .and_then(|status| status.claim_name.as_deref());
    let claim_uid = claim
        .and_then(|name| world.claims.get(namespace, name))
        .and_then(|claim| claim.uid());
    let pods = claim_uid.map_or(0, |uid| world.pods.under(&uid).len());
    held.max(pods)
}

/// The last holder is gone: the claim may go (it is owned by the thread), unless it was never ours.
async fn release(
    world: &World,
    api: &Api<Thread>,
    thread: &Thread,
    free: bool,
) -> Result<(), ReconcileError> {
    if !free
        || !thread
            .finalizers()
            .iter()
            .any(|finalizer| finalizer == labels::IN_USE)
    {
        return Ok(());
    }
    let finalizers: Vec<_> = thread
        .finalizers()
        .iter()
        .filter(|finalizer| *finalizer != labels::IN_USE)
        .cloned()
        .collect();
    match write::finalizers(api, thread, &finalizers).await {
        Ok(written) => world.threads.wrote(written),
        Err(ReconcileError::Gone) => {}
        Err(error) => return Err(error),
    }
    // Owned claims follow by garbage collection; asking for it here gives them back at once.
    if thread.spec.existing_claim.is_none() {
        let namespace = thread.namespace().unwrap_or_default();
        let name = agentrun_core::names::claim_name(&thread.uid().unwrap_or_default());
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(world.operator.client.clone(), &namespace);
        match claims
            .delete(&name, &DeleteParams::background())
            .await
            .map_err(ReconcileError::from)
        {
            Ok(_) | Err(ReconcileError::Gone) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
