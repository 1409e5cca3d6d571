//! Stand-ins for what surrounds the operator: a kubelet that runs every Pod at once, a gateway that ends every attempt as
//! the script says, and a record of every Pod and SubTask that was ever made.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "a test's helper says what is wrong by panicking"
)]

mod gateway;
mod kubelet;
mod record;

pub use gateway::Ending;
pub use record::Made;

use crate::cluster::Namespace;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How an attempt ends, by the name of the task and the number of the attempt. `None`: it runs on until it is stopped.
pub type Script = fn(task: &str, attempt: i32) -> Option<Ending>;

/// Kubelet, gateway and record of one namespace; they end when it is dropped.
pub struct Stage {
    made: Arc<Made>,
    _tasks: JoinSet<()>,
}

impl Stage {
    /// Starts them. Nothing may have been made in the namespace yet.
    pub async fn start(namespace: &Namespace, script: Script) -> Self {
        let made = Arc::new(Made::default());
        let mut tasks = JoinSet::new();
        kubelet::ensure_node(&namespace.client).await;
        record::start(namespace, &made, &mut tasks).await;
        tasks.spawn(kubelet::heartbeat(namespace.client.clone()));
        tasks.spawn(kubelet::run(namespace.clone()));
        tasks.spawn(gateway::run(namespace.clone(), script));
        Self { made, _tasks: tasks }
    }

    /// What was ever made.
    pub fn made(&self) -> &Made {
        &self.made
    }
}
