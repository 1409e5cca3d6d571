//! What a sandbox is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GoDuration, Protocol, Quantity, Reuse, Start, common, rules};

/// Upper limits of a sandbox. What is reached ends the call, not the node's other work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Memory, for example `128Mi`. More than that ends the call with `Error` and reason `OOMKilled`. Default: 2Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
    /// Processors, for example `500m` (half of one) or `2`. More is not given; nothing ends because of it.
    /// Default: 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Quantity>,
}

/// One place that user code may reach. Without any it reaches nothing at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EgressRule {
    /// Name of the rule, for you and for patches.
    #[schemars(length(min = 1, max = 40), regex(pattern = common::DNS_LABEL))]
    pub name: String,
    /// Addresses in CIDR form, IPv4 or IPv6, for example `192.0.2.5/32`. Loopback, link-local, the API server and
    /// what the operator denies with `--egress-deny` are refused; a wider block is allowed without them.
    #[schemars(length(min = 4, max = 49), regex(pattern = r"^[0-9A-Fa-f:.]+/[0-9]{1,3}$"))]
    pub cidr: String,
    /// Port at those addresses.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// TCP or UDP. Default: TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
}

/// One environment variable of user code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Name of the variable. Names that begin with `AGENTRUN_` are the platform's.
    #[schemars(length(min = 1, max = 128), regex(pattern = common::ENV_NAME))]
    pub name: String,
    /// Its text, passed on as it is: no expression, no reference to other variables. Default: empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 32768))]
    pub value: String,
}

/// One key of a Secret as a file or as an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::secret_item()))]
pub struct SecretItem {
    /// Key in the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
    /// The key becomes this file below `mountPath`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = common::RELATIVE_PATH))]
    pub path: Option<String>,
    /// The key becomes this environment variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = common::ENV_NAME))]
    pub env: Option<String>,
}

/// A Secret of the namespace that the work may read. It reaches only the tasks that name it, in memory. In what the
/// work prints, and in messages, its values of 6 bytes and more are replaced by `***`, each line of them too, in status
/// and whole logs alike. An output is data and is not changed: let no work give a secret as its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::secret_use()))]
pub struct SecretUse {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Which keys, and what becomes of each. Default: every key a file of the same name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub items: Vec<SecretItem>,
    /// Folder for the files, for example `/run/secrets/warehouse`. Needed unless every item is an environment
    /// variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 253), regex(pattern = common::ABSOLUTE_PATH))]
    pub mount_path: Option<String>,
}

/// The sandbox that work runs in: one Pod in which user code has no credential, no network but `egress`, and
/// nothing to write to but workspace, outputs and `/tmp`.
///
/// Either `pool`, or any of `image`, `resources`, `runtimeClassName` and `egress`; the rest besides either. What
/// a task leaves out comes from its function, its agent type, the run, the pool, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxSpec {
    /// Name of a SandboxPool of the namespace: its template, and its warm sandboxes if it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub pool: Option<String>,
    /// Container image that holds what the work needs; nothing of AgentRun has to be in it. Default: the
    /// operator's `--default-image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub image: Option<String>,
    /// Upper limits of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// RuntimeClass of the Pod, for example one of gVisor or Kata Containers. Default: the cluster's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub runtime_class_name: Option<String>,
    /// What user code may reach. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub egress: Option<Vec<EgressRule>>,
    /// Environment variables of user code.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Option<Vec<EnvVar>>,
    /// Secrets that user code may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub secrets: Option<Vec<SecretUse>>,
    /// Who may use the sandbox after this work. `Never`: nobody. `SameRun`: other tasks of the run. `SameThread`:
    /// later runs of the thread too, while it is not idle for longer than the pool's `idleTimeout`.
    /// Default: SameRun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reuse: Option<Reuse>,
    /// When it starts. `Lazy`: when its work may start. `Eager`: with the run. Default: Lazy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// How long a sandbox in which work failed is kept for you to look into, for example `15m`. Default: not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_on_failure: Option<GoDuration>,
}
