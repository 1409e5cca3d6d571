//! The user-data volume.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AccessMode, ConcurrencyPolicy, OnRelease, Quantity};

/// The volume claim that is made when none exists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplate {
    /// Size, 1Gi by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Quantity>,
    /// StorageClass; the cluster's default if unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub storage_class_name: Option<String>,
    /// Access modes, `[ReadWriteOnce]` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub access_modes: Option<Vec<AccessMode>>,
}

/// The user-data volume of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserData {
    /// Whose data it is; `default` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub user: Option<String>,
    /// The thread; without one the data lives as long as the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub thread: Option<String>,
    /// The claim to make.
    #[serde(flatten)]
    pub claim: ClaimTemplate,
    /// A claim that is there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub existing_claim: Option<String>,
    /// What becomes of it at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_release: Option<OnRelease>,
    /// What happens when the thread is busy; `Queue` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<ConcurrencyPolicy>,
}
