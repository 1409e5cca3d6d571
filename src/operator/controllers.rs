//! The controllers that a leader runs.

use crate::Operator;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs until `stop`, then lets the reconciles under way end.
pub async fn run(operator: Arc<Operator>, stop: CancellationToken) {
    tracing::info!(namespace = operator.settings.namespace, "controllers run");
    stop.cancelled().await;
}
