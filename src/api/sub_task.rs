//! SubTask: one piece of work with its own sandbox, limits, outcome and verdict.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AcceptancePolicy, AgentWork, Approval, Artifact, Cache, CommandWork, Conditions, Context, FileRef,
    FunctionWork, GoDuration, History, InputFrom, Isolation, Json, Outcome, Resources, Retry, RunRef,
    SandboxSpec, StopReason, SubTaskPhase, SubTaskRef, SubTaskRole, Verdict, Work, common, rules,
};

/// A task in its resolved form: nothing is left to evaluate, to inherit or to change.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "agentrun.dev",
    version = "v1alpha1",
    kind = "SubTask",
    plural = "subtasks",
    shortname = "st",
    category = "agentrun-all",
    namespaced,
    status = "SubTaskStatus",
    derive = "PartialEq",
    doc = "SubTask is one piece of an AgentRun's work with its own sandbox, limits, outcome and verdict. The operator \
           makes them, and the gateway those that an agent delegates; deleting one of a live run cancels it.",
    validation = rules::outcome_is_final(),
    printcolumn(name = "Run", type_ = "string", json_path = ".spec.runRef.name"),
    printcolumn(name = "Task", type_ = "string", json_path = ".spec.task"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.outcome"),
    printcolumn(name = "Reason", type_ = "string", json_path = ".status.reason"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="AcceptanceMet")].reason"#
    ),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.attempt"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Role", type_ = "string", json_path = ".spec.role", priority = 1),
    printcolumn(name = "Stopped", type_ = "string", json_path = ".status.stopReason", priority = 1),
    printcolumn(name = "Tokens", type_ = "integer", json_path = ".status.usage.tokens", priority = 1),
    printcolumn(name = "Waiting", type_ = "string", json_path = ".status.waitingFor", priority = 1)
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::sub_task()))]
pub struct SubTaskSpec {
    /// The run it belongs to. One whose run is gone is cancelled.
    pub run_ref: RunRef,
    /// The sub-task that delegated it, or whose criterion it runs again. Quota and depth come from this chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_ref: Option<SubTaskRef>,
    /// Name of the task, or the agent type of a delegate.
    #[schemars(
        length(min = 1, max = 40),
        regex(pattern = common::DNS_LABEL)
    )]
    pub task: String,
    /// What it is to its run. `Task`: one of its tasks or one item of a `forEach`. `Lead`: its lead agent.
    /// `Delegate`: work that an agent delegated.
    pub role: SubTaskRole,
    /// What it is for, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub description: Option<String>,
    /// Position of its item in the list, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub index: Option<i32>,
    /// Key of its item, where `forEach.key` gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub key: Option<String>,
    /// A call of a skill's function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionWork>,
    /// A program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWork>,
    /// An agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentWork>,
    /// Whether a lead goes on with the thread's conversation. Default: Continue on a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    /// The evaluated input.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "common::present"
    )]
    #[schemars(schema_with = "common::any_json")]
    pub input: Option<Json>,
    /// Where the input comes from instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_from: Option<InputFrom>,
    /// Its sandbox, merged from task, function, agent type and run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Upper limits of its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Time per attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What it sees of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// What must hold of what it delivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 500)), extend("x-kubernetes-list-type" = "set"))]
    pub acceptance: Vec<String>,
    /// What `acceptance` is for. Default: Report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_policy: Option<AcceptancePolicy>,
    /// `Required`: it waits as `Pending` until someone approves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
    /// Takes an earlier result, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
}

impl SubTaskSpec {
    /// The work, or nothing unless exactly one kind is given.
    pub fn work(&self) -> Option<Work<'_>> {
        Work::of(self.function.as_ref(), self.command.as_ref(), self.agent.as_ref())
    }
}

/// Where the sub-task stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubTaskStatus {
    /// Generation of the spec that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Where it stands. `Finished` comes with `outcome`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<SubTaskPhase>,
    /// `Admitted` and `AcceptanceMet`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "common::conditions")]
    pub conditions: Conditions,
    /// How it ended; never changes once set. `Success`: it delivered what its contract asks for. `Timeout`: its time
    /// was up. `ParseError`: it ended well, but its output is not what the contract asks for. `Error`: it failed,
    /// or the platform could not run it. `Cancelled`: it was stopped on purpose. `Skipped`: it was never started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why, as one word from the documented list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// Why, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub message: Option<String>,
    /// Why an agent was stopped before it was done: it had used up its tokens or turns, or repeated itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// What the model of role `reviewer` said of an agent's last answer. Its word is no proof: what a machine checked
    /// stands in `acceptance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// What it waits for, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub waiting_for: Option<String>,
    /// Exit code of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Number of the latest attempt, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 99))]
    pub attempt: Option<i32>,
    /// Its attempts. One without outcome is going on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["number"]))]
    pub attempts: Vec<Attempt>,
    /// When the next attempt may start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<MicroTime>,
    /// Its output, if it is at most 16 KiB of JSON that the API server stores unchanged.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "common::present"
    )]
    #[schemars(schema_with = "common::any_json")]
    pub output: Option<Json>,
    /// The file that holds the exact output instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<FileRef>,
    /// The end of its standard output, at most 2 KiB; the whole is a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub stdout_tail: Option<String>,
    /// Head and end of its standard error, at most 2 KiB; the whole is a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub stderr_tail: Option<String>,
    /// What each of its criteria says. It never changes the outcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["criterion"]))]
    pub acceptance: Vec<Verdict>,
    /// What it delivered in `outputs`; the first 100 files by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["path"]))]
    pub artifacts: Vec<Artifact>,
    /// The sandbox it is assigned to. Writing it is the assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxStatus>,
    /// How long things took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// What was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<SubTaskUsage>,
}

/// One attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Its number, from 1.
    #[schemars(range(min = 1, max = 99))]
    pub number: i32,
    /// Its Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pod_name: Option<String>,
    /// The UID of its Pod.
    #[serde(rename = "podUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pod_uid: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Why, as one word from the documented list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub reason: Option<String>,
    /// When it was assigned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<MicroTime>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished: Option<MicroTime>,
}

/// What a reviewer says of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Whether it found that the answer does what was asked for.
    pub accepted: bool,
    /// What it found missing or wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(max = 500)), extend("x-kubernetes-list-type" = "atomic"))]
    pub notes: Vec<String>,
}

/// The sandbox a sub-task is assigned to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxStatus {
    /// Its Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub pod_name: Option<String>,
    /// The UID of its Pod.
    #[serde(rename = "podUID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub pod_uid: Option<String>,
    /// Whether the sandbox was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm: Option<bool>,
    /// Why it was not, for example `more memory than the pool gives`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub cold_reason: Option<String>,
    /// What was found about its network before any user code ran. `Verified`: everything that must be closed was
    /// closed. `NotIsolated`: something was open. `NotRequired`: the operator does not ask for isolation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The runtime has proven that no process of the newest attempt is left: the lease may end before the
    /// Pod is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_tree_empty: Option<bool>,
}

/// How long things took, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From creation to assignment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued_ms: Option<i64>,
    /// From assignment to the start of the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<i64>,
    /// The work itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_ms: Option<i64>,
}

/// What a sub-task used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubTaskUsage {
    /// Most memory at one time, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<i64>,
    /// Processor time in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<i64>,
    /// Tokens of its model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    /// The same by the role that used them: summaries of an agent's conversation are made by another one than its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "common::tokens_by_role")]
    pub tokens_by_role: BTreeMap<String, i64>,
    /// What those cost, as a decimal in the Model's currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub cost: Option<String>,
}
