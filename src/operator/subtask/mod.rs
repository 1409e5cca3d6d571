//! Reconciles one sub-task: dereference, plan (pure, in `agentrun_core::plan::subtask`), apply.

mod apply;
mod dereference;
mod sandbox;

use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::SubTask;
use agentrun_core::plan::subtask;
use kube::runtime::controller::Action;
use std::sync::Arc;
use std::time::Duration;

/// One round for one sub-task.
pub async fn reconcile(subtask: Arc<SubTask>, world: Arc<World>) -> Result<Action, ReconcileError> {
    let now = world.now();
    // 1. dereference: reads caches, and the API server where a cache may lag.
    let facts = dereference::read(&world, &subtask, now).await?;
    // 2. and 3. validate and plan: pure.
    let plan = subtask::plan(&facts.view(), now);
    // 4. and 5. apply and update_status: writes, in the order of the plan.
    apply::apply(&world, &facts, &plan, now).await?;
    Ok(match plan.look_again {
        None => Action::await_change(),
        Some(at) => Action::requeue(
            Duration::try_from(at.duration_since(now))
                .unwrap_or_default()
                .max(Duration::from_millis(50)),
        ),
    })
}
