//! What every reconciler works with: the caches, the installation, and the memory of a leader.

use crate::Operator;
use crate::admissions::Admissions;
use crate::cache::Cache;
use crate::error::ReconcileError;
use crate::pods::Platform;
use crate::policies::{Denied, GatewayPods};
use agentrun_api::{AgentRun, Model, SandboxPool, Skill, SubTask, Thread};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// What every reconciler works with.
pub struct World {
    /// Client, settings, metrics, events.
    pub operator: Arc<Operator>,
    /// Runs, by thread (`agentrun_core::names::thread_name`).
    pub runs: Cache<AgentRun>,
    /// Sub-tasks, by the UID of their run.
    pub subtasks: Cache<SubTask>,
    /// Sandbox Pods, by the UIDs of their sub-task and of their claim.
    pub pods: Cache<Pod>,
    /// Threads.
    pub threads: Cache<Thread>,
    /// Skills.
    pub skills: Cache<Skill>,
    /// Pools.
    pub pools: Cache<SandboxPool>,
    /// Models, by their namespace.
    pub models: Cache<Model>,
    /// Claims that we made.
    pub claims: Cache<PersistentVolumeClaim>,
    /// Nodes.
    pub nodes: Cache<Node>,
    /// What the installation knows of itself; `None` until it is complete.
    pub installation: watch::Receiver<Option<Arc<Installation>>>,
    /// When this process became leader.
    pub since: Instant,
    /// Delegates whose start is on its way.
    pub admissions: Admissions,
    /// Memory that may be lost.
    pub memory: Memory,
}

/// What the installation knows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// What goes into every Pod.
    pub platform: Platform,
    /// Where policies let sandboxes go.
    pub gateway: GatewayPods,
    /// Where they let nobody go.
    pub denied: Denied,
}

/// What a leader remembers besides the objects. Losing it costs a few requests and nothing else.
#[derive(Default)]
pub struct Memory {
    /// Policies and accounts that were made or seen, by namespace and name.
    made: Mutex<HashSet<(String, String)>>,
    /// When the status of a run was last written.
    written: Mutex<HashMap<String, Instant>>,
}

impl Memory {
    /// Whether a fixture of a namespace is known to be there.
    pub fn is_made(&self, namespace: &str, name: &str) -> bool {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&(namespace.to_owned(), name.to_owned()))
    }

    /// Remembers a fixture.
    pub fn made(&self, namespace: &str, name: &str) {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert((namespace.to_owned(), name.to_owned()));
    }

    /// Forgets the fixtures of a namespace: one of them was found missing.
    pub fn forget(&self, namespace: &str) {
        self.made
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(known, _)| known != namespace);
    }

    /// When the status of a run was last written.
    pub fn last_written(&self, uid: &str) -> Option<Instant> {
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(uid)
            .copied()
    }

    /// Remembers that the status of a run is written now; `over` forgets the run.
    pub fn written(&self, uid: &str, over: bool) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        match over {
            true => written.remove(uid),
            false => written.insert(uid.to_owned(), Instant::now()),
        };
    }
}

impl World {
    /// The time. The only place where reconcilers take it from.
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// The installation, or why nothing can start yet.
    pub fn installation(&self) -> Result<Arc<Installation>, ReconcileError> {
        let installation = self.installation.borrow().clone();
        installation.ok_or_else(|| {
            ReconcileError::NotReady("the gateway's address or certificate is not known yet".into())
        })
    }
}
