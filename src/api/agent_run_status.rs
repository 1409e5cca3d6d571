//! What the operator says about a run.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Artifact, Conditions, FileRef, Json, PendingKind, RunPhase, Verdict, common};

/// Where the run stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentRunStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands, summed up from the conditions. `Succeeded`, `Failed` and `Cancelled` are final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<RunPhase>,
    /// `Admitted`, `VolumeReady`, `NetworkIsolated`, `Progressing`, `AcceptanceMet`, and at the end exactly one of
    /// `Complete` and `Failed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// Ended sub-tasks of all, for example `7/12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub done: Option<String>,
    /// What the acceptance criteria say, in a word or two.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub verdict: Option<String>,
    /// What it waits for, or why it ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// What it waits for, in one sentence, for example `quota cpu in namespace a: 2 of 2 used; 3 runs ahead`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub waiting_for: Option<String>,
    /// When it was admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<MicroTime>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<MicroTime>,
    /// When it must have ended, from `limits.timeout`; moved while it is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// When a cancel was first seen. From then on it is cancelled, whatever the spec says later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel_requested_at: Option<Time>,
    /// Sub-tasks by state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Items by state, for every `forEach` task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["task"]))]
    pub fan_out: Vec<FanOut>,
    /// What was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// Name of the Thread object, if the run has a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub thread: Option<String>,
    /// Name of the PersistentVolumeClaim that holds its user data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub claim_name: Option<String>,
    /// How many sub-tasks hold a sandbox or the user data.
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
    /// The run's output, if it is at most 16 KiB of JSON that the API server stores unchanged.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "common::present"
    )]
    #[schemars(schema_with = "common::any_json")]
    pub output: Option<Json>,
    /// The file that holds the output instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<FileRef>,
    /// The files of `spec.files` as they were at admission, without those of claims: their digest is fixed when the first
    /// sub-task copies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub files: Vec<FileRef>,
    /// What was done and found, in a few sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub summary: Option<String>,
    /// What was delivered in `outputs`; the first 100 files by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub artifacts: Vec<Artifact>,
    /// What each of `spec.acceptance` says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["criterion"]))]
    pub acceptance: Vec<Verdict>,
    /// With which skills, images, models and versions it was made.
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
#[serde(rename_all = "camelCase")]
pub struct FanOut {
    /// Name of the task.
    #[schemars(length(min = 1, max = 40))]
    pub task: String,
    /// How many items there are.
    #[serde(default)]
    pub total: i32,
    /// How many run.
    #[serde(default)]
    pub running: i32,
    /// How many ended with Success.
    #[serde(default)]
    pub succeeded: i32,
    /// How many ended otherwise.
    #[serde(default)]
    pub failed: i32,
    /// How many were never started.
    #[serde(default)]
    pub skipped: i32,
    /// How many were cancelled.
    #[serde(default)]
    pub cancelled: i32,
    /// How many finished items were folded into the task's file.
    #[serde(default)]
    pub folded: i32,
}

/// What a run used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunUsage {
    /// Tokens by role.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "common::tokens_by_role")]
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
