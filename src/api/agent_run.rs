//! AgentRun: one turn of work on one thread.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AcceptancePolicy, AgentRunStatus, AgentType, FailurePolicy, GoDuration, KeyRef, LeadSpec, SandboxSpec,
    TaskTemplate, UserData, common, rules,
};

/// What to do, and within which limits. Fixed at creation but for `cancel`, `suspend` and
/// `ttlSecondsAfterFinished`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "AgentRun",
    plural = "agentruns",
    shortname = "ar",
    category = "agentrun-all",
    namespaced,
    status = "AgentRunStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "AgentRun is one turn of work: a goal for a lead agent that plans and delegates, or a fixed plan of tasks, \
           or both. Every piece of it runs in a locked-down sandbox, and all of them share one user-data volume.",
    validation = rules::phase_is_final(),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Done", type_ = "string", json_path = ".status.done", description = "Ended sub-tasks of all"),
    printcolumn(name = "Failed", type_ = "integer", json_path = ".status.counts.failed"),
    printcolumn(name = "Verdict", type_ = "string", json_path = ".status.verdict"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.reason",
        description = "What it waits for, or why it ended"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Delegated",
        type_ = "integer",
        json_path = ".status.delegation.used",
        priority = 1
    ),
    printcolumn(name = "Cost", type_ = "string", json_path = ".status.usage.cost", priority = 1),
    printcolumn(name = "Waiting", type_ = "string", json_path = ".status.waitingFor", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::agent_run()))]
pub struct AgentRunSpec {
    /// What the lead agent is asked to do. Expressions in `${}` are evaluated. With `tasks` too, the tasks run
    /// first and the lead sees their results.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub goal: Option<String>,
    /// The lead agent that works on `goal`. Default: a general-purpose agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lead: Option<LeadSpec>,
    /// A fixed plan. Tasks run as soon as what they depend on has ended; their order here means nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub tasks: Vec<TaskTemplate>,
    /// A JSON object of your own that expressions see as `params`. Client-side `kubectl apply` drops null members
    /// of it, `kubectl apply --server-side` keeps them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "common::any_object")]
    pub params: Option<Map<String, Value>>,
    /// Files that are put below `/mnt/user-data/uploads` before the first task starts. Their digests are fixed
    /// when the run is admitted: one that changes later ends its tasks with `InputChanged`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub files: Vec<FileSource>,
    /// What the run's output is, as text with expressions in `${}`. Default: the output of the only task that no
    /// other depends on, else a map of such outputs by name; for a goal the lead's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub output: Option<String>,
    /// The volume that all sandboxes of the run share. Default: one of 1Gi that lives as long as the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// The sandbox of every task that does not say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::written_sandbox()))]
    pub sandbox: Option<SandboxSpec>,
    /// Limits of the whole run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What agents of the run may delegate, and to whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delegation: Option<Delegation>,
    /// Which Model of the namespace serves which role: `lead`, `planner`, `researcher`, `executor`, `reviewer`,
    /// `summarizer`. Default: the Model that has the role, else the default Model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "common::models_by_role")]
    pub models: BTreeMap<String, String>,
    /// What waits for the approval of a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalSpec>,
    /// What a failed task means for the others. `Continue`: what does not depend on it finishes. `FailFast`: the
    /// others are cancelled with reason `RunFailedFast`, and only tasks that wait for a failure or for any end
    /// still run. Default: Continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// What must hold of what the whole run delivered, checked when every task has ended well; written as in a task,
    /// without `file_written` and `tests_passed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 500)), extend("x-kubernetes-list-type" = "set"))]
    pub acceptance: Vec<String>,
    /// What `acceptance` is for. `Report`: to be seen. `Require`: the lead gets one turn per attempt to repair what
    /// does not hold; a run that is not accepted in the end fails with `AcceptanceNotMet`. Default: Report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_policy: Option<AcceptancePolicy>,
    /// Name of an earlier run of the same namespace and thread. Its successes are taken over where task, input,
    /// skill and image are the same; the rest runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub resume_from: Option<String>,
    /// `true` cancels the run, for good. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancel: Option<bool>,
    /// `true` holds the run: nothing new starts, running tasks finish, idle sandboxes go, the deadline moves.
    /// `false` lets it go on. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Seconds after its end until the run is deleted with everything it owns. Default: never. Do not set it under
    /// GitOps: a deleted run would be applied, and run, again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub ttl_seconds_after_finished: Option<i32>,
}

/// A file that is put below `uploads`, from exactly one of `content`, `configMapKeyRef`, `from` and `claim`. There is
/// no Secret among them: it would stay on the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::file_source()))]
pub struct FileSource {
    /// Path below `/mnt/user-data/uploads`, for example `titanic.csv` or `new/passengers.csv`.
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: String,
    /// The file's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 262_144))]
    pub content: Option<String>,
    /// A key of a ConfigMap of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
    /// A file that another run delivered. The run is admitted once that one has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<RunFile>,
    /// A file on a claim of the namespace. What the first sub-task finds there is what the whole run sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimFile>,
}

/// A file that another run delivered. Its digest is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunFile {
    /// Name of the AgentRun in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub run: String,
    /// Path of one of the artifacts in that run's status below its user data, for example `outputs/passengers.csv`.
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: String,
}

/// A file on a claim of this namespace, which is mounted read-only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimFile {
    /// Name of the PersistentVolumeClaim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Path on the volume.
    #[schemars(length(min = 1, max = 512), regex(pattern = common::RELATIVE_PATH))]
    pub path: String,
}

/// Limits of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// How many sub-tasks may run at the same time. Default: 5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: Option<i32>,
    /// Time for the whole run, waiting included; then it fails with `DeadlineExceeded`. Default: none, though every
    /// task has its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// How long work that may start may wait for a volume, a node or an image, and the run for what it names; then
    /// it fails with `StartTimeout`. Default: 10m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout: Option<GoDuration>,
    /// How many tokens all agents may use together. Default: 2,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub tokens: Option<i64>,
    /// How much money all agents may use together, as a decimal in the Models' currency, for example `"1.50"`.
    /// Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), regex(pattern = common::DECIMAL))]
    pub cost: Option<String>,
}

/// What agents of the run may delegate, and to whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// How many sub-tasks an agent may ask for in one turn; what is more is cut, and the agent is told. Default: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_per_turn: Option<i32>,
    /// How many sub-tasks the run's agents may ask for in all. Default: 6.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_per_run: Option<i32>,
    /// How deep delegation goes: the lead is 0, its children are 1. Default: 1, so that children do not delegate.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 5))]
    pub max_depth: Option<i32>,
    /// Types of agents besides the built-in `general-purpose` and `bash`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub agents: Vec<AgentType>,
}

/// What waits for the approval of a person. Answers are given over the API or with `kubectl agentrun`; they never
/// touch the spec.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalSpec {
    /// Whether the lead's plan does. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<bool>,
    /// Names of the tools of which every call does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub tools: Vec<String>,
    /// How long it waits; then it is as if it had been refused. Default: as long as the run may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}
