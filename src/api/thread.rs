//! Thread: a conversation and its user data across runs.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClaimTemplate, Conditions, OnRelease, RunRef, common, rules};

/// Whose thread it is and what its volume is like.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "Thread",
    plural = "threads",
    shortname = "th",
    category = "agentrun-all",
    namespaced,
    status = "ThreadStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Thread is one user's conversation: the files and the history that its runs share, and the lock that lets \
           one run at a time use them. Deleting it deletes the data once its last holder has left.",
    printcolumn(name = "User", type_ = "string", json_path = ".spec.user"),
    printcolumn(name = "Thread", type_ = "string", json_path = ".spec.thread"),
    printcolumn(name = "Run", type_ = "string", json_path = ".status.activeRun.name"),
    printcolumn(name = "Leases", type_ = "integer", json_path = ".status.leases"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Claim",
        type_ = "string",
        json_path = ".status.claimName",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::thread()))]
pub struct ThreadSpec {
    /// Whose it is.
    #[schemars(length(min = 1, max = 128))]
    pub user: String,
    /// Its name for that user.
    #[schemars(length(max = 64), regex(pattern = common::THREAD_NAME))]
    pub thread: String,
    /// The claim to make. Default: 1Gi, ReadWriteOnce, the cluster's StorageClass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimTemplate>,
    /// A claim that is there already; never deleted, owned or finalized by AgentRun.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub existing_claim: Option<String>,
    /// What becomes of the data when the last run has left. Default: Retain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_release: Option<OnRelease>,
}

/// Who holds it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThreadStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// `Ready` and `VolumeReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// Name of the PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub claim_name: Option<String>,
    /// Folder of the thread on the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub folder: Option<String>,
    /// The run that has the thread; others wait with `ThreadBusy`, the oldest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_run: Option<RunRef>,
    /// How many hold its data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub leases: Option<i32>,
    /// Size of its data in bytes when last measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub bytes: Option<i64>,
}
