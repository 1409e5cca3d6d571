//! SandboxPool: a sandbox template with a name, and sandboxes kept warm from it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClaimTemplate, Conditions, EgressRule, EnvVar, GoDuration, Landlock, Resources, common};

/// What its sandboxes are like and how many wait.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "SandboxPool",
    plural = "sandboxpools",
    shortname = "sp",
    category = "agentrun-all",
    namespaced,
    status = "SandboxPoolStatus",
    derive = "PartialEq",
    derive = "Default",
    scale(
        spec_replicas_path = ".spec.warm.slots",
        status_replicas_path = ".status.slots",
        label_selector_path = ".status.selector"
    ),
    doc = "SandboxPool is a sandbox template with a name and, if it keeps any, sandboxes that wait ready, so that \
           work starts at once.",
    printcolumn(
        name = "Slots",
        type_ = "integer",
        json_path = ".spec.warm.slots",
        description = "Wanted slots"
    ),
    printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readySlots"),
    printcolumn(name = "Sandboxes", type_ = "integer", json_path = ".status.sandboxes"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".spec.template.image",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPoolSpec {
    /// What every sandbox of the pool is like.
    pub template: SandboxTemplate,
    /// What waits ready. Default: nothing; the pool is a named template. Has no effect in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<Warm>,
    /// How many sandboxes of the pool may exist at the same time, claimed ones included. Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_sandboxes: Option<i32>,
    /// How long an idle sandbox that served a thread is kept for that thread. Default: 600s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<GoDuration>,
    /// How old a waiting sandbox may get until it is replaced. Default: 24h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<GoDuration>,
    /// The claim of a slot; runs that want another start cold. Default: 1Gi, ReadWriteOnce, the cluster's class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<ClaimTemplate>,
}

/// What every sandbox of a pool is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxTemplate {
    /// Container image. Default: the operator's `--default-image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Upper limits of a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// RuntimeClass of the Pods. Default: the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
    /// What user code may reach. Default: nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub egress: Vec<EgressRule>,
    /// Environment variables of user code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// Skills from images and claims that are mounted; a run that needs others of that kind starts cold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub skills: Vec<String>,
    /// `false` gives every Pod a user namespace of its own. Default: the cluster's, which is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_users: Option<bool>,
    /// What the node's kernel must offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSpec>,
}

/// What the kernel must offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IsolationSpec {
    /// What happens on a node without Landlock. `Required`: the work is refused. `BestEffort`: it runs with what
    /// there is. Default: Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landlock: Option<Landlock>,
}

/// What waits ready.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warm {
    /// How many unclaimed slots to keep: claims with ready sandboxes on them. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub slots: Option<i32>,
    /// How many sandboxes wait on one slot. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub sandboxes_per_slot: Option<i32>,
}

/// What there is of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxPoolStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// `Ready`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// Slots that exist and are unclaimed, ready or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub slots: Option<i32>,
    /// Slots that can be claimed now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ready_slots: Option<i32>,
    /// Sandboxes of the pool that exist, claimed or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub sandboxes: Option<i32>,
    /// Number of the newest slot; numbers are never used again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub last_slot: Option<i64>,
    /// Hash of what the slots are made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub template_hash: Option<String>,
    /// Label selector of the pool's Pods, for autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub selector: Option<String>,
}
