//! What a leader does now and then besides reconciling: gauges, and taking back what namespaces need no more.

use crate::error::ReconcileError;
use crate::run;
use crate::world::World;
use agentrun_api::names::labels;
use agentrun_api::names::objects::SANDBOX_SERVICE_ACCOUNT;
use agentrun_core::plan::run::has_lease;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often gauges are set.
const GAUGES: Duration = Duration::from_secs(15);
/// Every so many rounds of gauges the namespaces are swept.
const ROUNDS_PER_SWEEP: u32 = 20;

/// Runs until it is dropped.
pub async fn keep(world: Arc<World>) {
    let mut timer = tokio::time::interval(GAUGES);
    let mut round = 0u32;
    loop {
        timer.tick().await;
        let held = world
            .subtasks
            .all()
            .iter()
            .filter(|child| has_lease(child))
            .count();
        world.operator.metrics.leases(held);
        round = round.wrapping_add(1);
        if round.is_multiple_of(ROUNDS_PER_SWEEP)
            && let Err(error) = sweep(&world).await
        {
            tracing::warn!(%error, "namespaces could not be swept, trying again later");
        }
    }
}

/// Deletes policies and accounts of namespaces in which nothing of ours is left. A run that appears meanwhile finds
/// them missing and makes them again, since they are forgotten before they are deleted; where even that comes too
/// late, its probe finds the network open and no user code runs.
async fn sweep(world: &World) -> Result<(), ReconcileError> {
    let used = namespaces_in_use(world);
    let ours = ListParams::default().labels(&format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE));
    let client = || world.operator.client.clone();
    let policies: Api<NetworkPolicy> = world.operator.looked_after();
    for policy in policies.list_metadata(&ours).await?.items {
        let namespace = policy.namespace().unwrap_or_default();
        if used.contains(&namespace) || !policy.labels().contains_key(labels::EGRESS) {
            continue;
        }
        world.memory.forget(&namespace);
        let api: Api<NetworkPolicy> = Api::namespaced(client(), &namespace);
        gone(
            api.delete(&policy.name_any(), &DeleteParams::default())
                .await
                .map(drop),
        )?;
        let accounts: Api<ServiceAccount> = Api::namespaced(client(), &namespace);
        gone(
            accounts
                .delete(SANDBOX_SERVICE_ACCOUNT, &DeleteParams::default())
                .await
                .map(drop),
        )?;
        tracing::info!(
            namespace,
            policy = policy.name_any(),
            "nothing of ours is left in the namespace"
        );
    }
    Ok(())
}

/// Namespaces with a run that is not over, or with a Pod of ours.
fn namespaces_in_use(world: &World) -> BTreeSet<String> {
    let live = world
        .runs
        .all()
        .into_iter()
        .filter(|run| !run.status.as_ref().is_some_and(run::is_over));
    let runs = live.filter_map(|run| run.namespace());
    runs.chain(world.pods.all().into_iter().filter_map(|pod| pod.namespace()))
        .collect()
}

fn gone(deleted: Result<(), kube::Error>) -> Result<(), ReconcileError> {
    match deleted.map_err(ReconcileError::from) {
        Ok(()) | Err(ReconcileError::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}
