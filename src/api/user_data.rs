//! The user-data volume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccessMode, ConcurrencyPolicy, OnRelease, Quantity, common, rules};

/// The PersistentVolumeClaim to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplate {
    /// Size of the volume. Default: 1Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
    /// Name of the StorageClass. Default: the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
    /// How the volume may be mounted. With anything but `ReadWriteMany` the sandboxes of a run share one node.
    /// Default: ReadWriteOnce.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub access_modes: Option<Vec<AccessMode>>,
}

/// The volume that a run's sandboxes see as `/mnt/user-data` with `uploads`, `workspace` and `outputs`.
///
/// On a thread that exists, what is left out is as the thread has it, and what differs is refused with
/// `Admitted=False/ThreadMismatch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::user_data()))]
pub struct UserData {
    /// Whose data it is; users do not see each other's. Default: `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub user: Option<String>,
    /// The conversation this run is a turn of: runs with the same user and thread share files and history, one
    /// run at a time. Default: none, and the data lives as long as the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = common::THREAD_NAME))]
    pub thread: Option<String>,
    /// The claim to make.
    #[serde(flatten)]
    pub claim: ClaimTemplate,
    /// Name of a PersistentVolumeClaim that is there already. It is used and never deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub existing_claim: Option<String>,
    /// What becomes of the data when its last holder has left: with a thread its last run, else this run when it
    /// is deleted. Default: Delete without `thread`, Retain with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_release: Option<OnRelease>,
    /// What this run does when another has the thread. `Queue`: it waits its turn. `Reject`: it fails. `Replace`:
    /// it cancels the other. Default: Queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
}
