//! A task of a plan, and the parts it shares with its resolved form, the SubTask.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AcceptancePolicy, AgentWork, Approval, Collect, ContextMode, GoDuration, Json, OnDisruption, Resources,
    RetryOutcome, SandboxSpec, Threshold, When, common,
};

/// A call of a skill's function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionWork {
    /// Name of the Skill.
    #[schemars(length(min = 1, max = 253))]
    pub skill: String,
    /// Name of the function in it.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Digest of the skill that the run pinned at its start. Only in a SubTask.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 80))]
    pub digest: Option<String>,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandWork {
    /// The program and its arguments; no shell is involved.
    #[schemars(length(min = 1, max = 128), inner(length(max = 4096)), extend("x-kubernetes-list-type" = "atomic"))]
    pub argv: Vec<String>,
    /// Its working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub working_dir: Option<String>,
}

/// The one kind of work that a task has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work<'a> {
    /// A call of a skill's function.
    Function(&'a FunctionWork),
    /// A program.
    Command(&'a CommandWork),
    /// An agent.
    Agent(&'a AgentWork),
}

impl<'a> Work<'a> {
    /// The work if exactly one kind is given.
    pub(crate) fn of(
        function: Option<&'a FunctionWork>,
        command: Option<&'a CommandWork>,
        agent: Option<&'a AgentWork>,
    ) -> Option<Self> {
        match (function, command, agent) {
            (Some(function), None, None) => Some(Self::Function(function)),
            (None, Some(command), None) => Some(Self::Command(command)),
            (None, None, Some(agent)) => Some(Self::Agent(agent)),
            _ => None,
        }
    }
}

/// Where the input comes from, if not from `input`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputFrom {
    /// A JSON file below `/mnt/user-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub path: Option<String>,
    /// The stored output of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40))]
    pub task: Option<String>,
}

/// A task that must have ended before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Name of the task.
    #[schemars(length(min = 1, max = 40))]
    pub task: String,
    /// Which end of it; `Succeeded` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
}

/// A JSON Lines, JSON or CSV file of items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemsFrom {
    /// Path below `/mnt/user-data`.
    #[schemars(length(min = 1, max = 1024))]
    pub path: String,
}

/// One sub-task per item of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForEach {
    /// Expression that gives the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub items: Option<String>,
    /// File that holds the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_from: Option<ItemsFrom>,
    /// Expression that names an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub key: Option<String>,
    /// Most items at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: Option<i32>,
    /// Most item objects at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub window: Option<i32>,
    /// How many items may fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<Threshold>,
    /// How outputs are collected; `List` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<Collect>,
}

/// When an attempt is followed by another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// Attempts in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts: Option<i32>,
    /// Pause before the second attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<GoDuration>,
    /// Which ends are worth another attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub outcomes: Vec<RetryOutcome>,
    /// What follows an end that the platform caused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disruption: Option<OnDisruption>,
}

/// What a delegated agent sees of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// `Isolated` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ContextMode>,
}

/// Reuse of an earlier result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// Files whose digests enter the key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "set"))]
    pub reads: Vec<String>,
}

/// One task of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskTemplate {
    /// Name of the task.
    #[schemars(
        length(min = 1, max = 40),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub description: Option<String>,
    /// A call of a skill's function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionWork>,
    /// A program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWork>,
    /// An agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentWork>,
    /// The input.
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
    /// What must have ended before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["task"]))]
    pub depends_on: Vec<Dependency>,
    /// Guard.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub if_: Option<String>,
    /// One sub-task per item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// Its sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Its limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Its time per attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What a delegated agent sees of its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// Criteria.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 500)), extend("x-kubernetes-list-type" = "set"))]
    pub acceptance: Vec<String>,
    /// What criteria mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_policy: Option<AcceptancePolicy>,
    /// Reuse of an earlier result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// Whether it waits for an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

impl TaskTemplate {
    /// The task's work, or nothing unless exactly one kind is given.
    pub fn work(&self) -> Option<Work<'_>> {
        Work::of(self.function.as_ref(), self.command.as_ref(), self.agent.as_ref())
    }
}
