//! AgentRun: one turn of work on one thread.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AcceptancePolicy, AgentType, Artifact, Conditions, FailurePolicy, FileRef, GoDuration, Json, KeyRef,
    LeadSpec, PendingKind, RunPhase, SandboxSpec, TaskTemplate, UserData, Verdict, common,
};

/// What to do, and within which limits.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "AgentRun",
    plural = "agentruns",
    shortname = "ar",
    category = "agentrun",
    namespaced,
    status = "AgentRunStatus",
    derive = "PartialEq",
    derive = "Default"
)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunSpec {
    /// Instruction for the lead agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub goal: Option<String>,
    /// The lead agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<LeadSpec>,
    /// A fixed plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tasks: Vec<TaskTemplate>,
    /// Values for expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "common::any_object")]
    pub params: Option<Map<String, Value>>,
    /// Files below `uploads`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub files: Vec<FileSource>,
    /// Expression for the run's output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub output: Option<String>,
    /// The user-data volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// Sandbox for every task that does not say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Limits of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What agents may delegate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// Which Model serves which role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(length(max = 16), extend("maxProperties" = 16))]
    pub models: BTreeMap<String, String>,
    /// What waits for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalSpec>,
    /// What a failed task means for the others; `Continue` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Criteria for the whole run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 500)), extend("x-kubernetes-list-type" = "set"))]
    pub acceptance: Vec<String>,
    /// What criteria mean; `Report` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_policy: Option<AcceptancePolicy>,
    /// An earlier run whose successes are taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub resume_from: Option<String>,
    /// Cancels the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<bool>,
    /// Holds the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Seconds after the end until the run is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// A file that is put below `uploads` before the first task starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSource {
    /// Path below `/mnt/user-data/uploads`.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// Its text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub content: Option<String>,
    /// A key of a ConfigMap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// An artifact of another run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<RunFile>,
    /// A file on another claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimFile>,
}

/// A file that another run delivered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    /// Name of the run in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub run: String,
    /// Path below its user data.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
}

/// A file on a claim of this namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimFile {
    /// Name of the PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Path on it.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
}

/// Limits of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Most sub-tasks at the same time; 5 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: Option<i32>,
    /// Time for the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// Time until work that may start has started; 10m by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<GoDuration>,
    /// Most tokens; 2,000,000 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub tokens: Option<i64>,
    /// Most money, as a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"))]
    pub cost: Option<String>,
}

/// What agents may delegate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// Most delegations in one turn; 3 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_per_turn: Option<i32>,
    /// Most delegations in the run; 6 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_per_run: Option<i32>,
    /// How deep delegation goes; 1 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5))]
    pub max_depth: Option<i32>,
    /// Types of agents besides the built-in ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub agents: Vec<AgentType>,
}

/// What waits for a person.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSpec {
    /// Whether the lead's plan does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<bool>,
    /// Which tools do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub tools: Vec<String>,
    /// How long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}

/// Where the run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Summary of the conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// The conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// Column: `7/12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub done: Option<String>,
    /// Column: what the criteria say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub verdict: Option<String>,
    /// Column: what it waits for, or why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// What it waits for, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub waiting_for: Option<String>,
    /// When work began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<MicroTime>,
    /// When it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When a cancel was first seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Time>,
    /// Sub-tasks by state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Items by `forEach` task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["task"]))]
    pub fan_out: Vec<FanOut>,
    /// What was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// Name of the Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub thread: Option<String>,
    /// Name of the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub claim_name: Option<String>,
    /// How many hold sandboxes or user data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub leases: Option<i32>,
    /// Delegations so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationStatus>,
    /// What waits for a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub pending: Vec<PendingInput>,
    /// The output.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "common::present"
    )]
    #[schemars(schema_with = "common::any_json")]
    pub output: Option<Json>,
    /// Where the output is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<FileRef>,
    /// Input files as they were at admission.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub files: Vec<FileRef>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub summary: Option<String>,
    /// Delivered files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub artifacts: Vec<Artifact>,
    /// Verdict by criterion.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["criterion"]))]
    pub acceptance: Vec<Verdict>,
    /// What it was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// Sub-tasks by state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Counts {
    /// All that are known so far.
    pub total: i32,
    /// Not started.
    pub pending: i32,
    /// Running.
    pub running: i32,
    /// Ended with Success.
    pub succeeded: i32,
    /// Ended with Error, Timeout or ParseError.
    pub failed: i32,
    /// Never started.
    pub skipped: i32,
    /// Cancelled.
    pub cancelled: i32,
}

/// Items of one `forEach` task by state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FanOut {
    /// Name of the task.
    #[schemars(length(min = 1, max = 40))]
    pub task: String,
    /// How many items there are.
    pub total: i32,
    /// How many run.
    pub running: i32,
    /// How many ended with Success.
    pub succeeded: i32,
    /// How many ended otherwise.
    pub failed: i32,
    /// How many were never started.
    pub skipped: i32,
    /// How many were cancelled.
    pub cancelled: i32,
    /// How many finished items were folded into the task's file.
    pub folded: i32,
}

/// What a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// Tokens by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub tokens: BTreeMap<String, i64>,
    /// Money, as a decimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub cost: Option<String>,
    /// Seconds that sandboxes existed, added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_seconds: Option<i64>,
}

/// Delegations so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DelegationStatus {
    /// How many were admitted.
    pub used: i32,
    /// How many were refused.
    pub refused: i32,
}

/// A question or approval that waits for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingInput {
    /// Its name for an answer.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// Question or approval.
    pub kind: PendingKind,
    /// What is asked.
    #[schemars(length(max = 1024))]
    pub text: String,
    /// Digest of what is approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub payload_digest: Option<String>,
    /// Until when it can be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
}

/// What the run was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// Skills by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub skills: Vec<SkillDigest>,
    /// Images by task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["task"]))]
    pub images: Vec<TaskImage>,
    /// Digest of the runtime image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub runtime_digest: Option<String>,
    /// Version of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub operator_version: Option<String>,
    /// Models by role.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["role"]))]
    pub models: Vec<RoleModel>,
}

/// A skill and its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillDigest {
    /// Name of the Skill.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its digest.
    #[schemars(length(max = 80))]
    pub digest: String,
}

/// A task and the image it ran in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskImage {
    /// Name of the task.
    #[schemars(length(min = 1, max = 40))]
    pub task: String,
    /// Image by digest.
    #[schemars(length(max = 512))]
    pub image: String,
}

/// A role and the model that served it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleModel {
    /// The role.
    #[schemars(length(min = 1, max = 40))]
    pub role: String,
    /// Name of the Model resource.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The model's own name at its endpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub model: Option<String>,
}
