//! The work of a task and what surrounds it: the parts that a task and its SubTask share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AgentWork, Collect, ContextMode, GoDuration, OnDisruption, RetryOutcome, Threshold, common, rules,
};

/// A call of a skill's function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionWork {
    /// Name of the Skill in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub skill: String,
    /// Name of the function, as the skill's `functions.yaml` declares it.
    #[schemars(length(min = 1, max = 64))]
    pub name: String,
    /// Digest of the skill that the run pinned at its start. Only in a SubTask, where the operator writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 80))]
    pub digest: Option<String>,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandWork {
    /// The program and its arguments, passed on as they are: no shell, no expression.
    #[schemars(length(min = 1, max = 128), inner(length(max = 4096)), extend("x-kubernetes-list-type" = "atomic"))]
    pub argv: Vec<String>,
    /// Folder it starts in. Default: /mnt/user-data/workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = common::ABSOLUTE_PATH))]
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

/// Where the input comes from, if not from `input`: fed by the runtime and checked by digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::input_from()))]
pub struct InputFrom {
    /// A JSON file below `/mnt/user-data`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = common::ABSOLUTE_PATH))]
    pub path: Option<String>,
    /// The stored output of this task, of any size. The task becomes a dependency.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 40), regex(pattern = common::DNS_LABEL))]
    pub task: Option<String>,
}

/// A file of items: JSON Lines, a JSON list, or CSV with a header, by the ending of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemsFrom {
    /// Path below `/mnt/user-data`.
    #[schemars(length(min = 1, max = 1024), regex(pattern = common::ABSOLUTE_PATH))]
    pub path: String,
}

/// Runs a task once per item: exactly one of `items` and `itemsFrom`, at most 10,000 items.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::for_each()))]
pub struct ForEach {
    /// One expression, `${…}`, that gives a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub items: Option<String>,
    /// A file that holds the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_from: Option<ItemsFrom>,
    /// One expression, `${…}`, that gives an item its key; keys must differ. Default: the item's index.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub key: Option<String>,
    /// How many items may run at the same time, within the run's `limits.maxParallel`. Default: that.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_parallel: Option<i32>,
    /// How many SubTask objects of the list exist at the same time; finished ones are folded into a file.
    /// Default: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub window: Option<i32>,
    /// How many items may fail, as a number or as a percentage such as `2%`, until the task ends with reason
    /// `TooManyFailures`. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_failures: Option<Threshold>,
    /// What `tasks.NAME.output` is. `List`: the outputs in item order, null where an item was not successful, and
    /// `{ref, count}` above 256 KiB. `File`: always `{ref, count}`. Default: List.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collect: Option<Collect>,
}

/// When an attempt is followed by another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retry {
    /// How many attempts there are in all. Default: 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10))]
    pub attempts: Option<i32>,
    /// Pause before the second attempt; it doubles before every further one, up to 5m. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<GoDuration>,
    /// Which ends are worth another attempt. Default: all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "set"))]
    pub outcomes: Vec<RetryOutcome>,
    /// What follows an end that the platform caused: an eviction, a preemption, a lost node, Pod or runtime.
    /// `Restart`: another attempt, up to 3 besides `attempts`. `Fail`: outcome `Error`. Default: Restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disruption: Option<OnDisruption>,
}

/// What a delegated agent sees of its parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Context {
    /// `Isolated`: its own prompt and nothing else. `Snapshot`: besides, a copy of the conversation as it was.
    /// Default: Isolated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<ContextMode>,
}

/// Reuse of earlier results of this function on this thread; being there turns it on.
///
/// An earlier `Success` with the same key is taken, reason `Cached`, and the function is not run. The key covers the
/// skill's digest, the function, its input, `reads`, `env`, its limits and the image by name; not what the image's tag
/// points to, the time and the network. Only for functions that declare `files: none`, or `files: read` with `reads`, in a
/// sandbox without Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// Files that the function reads, absolute or from the workspace; their digests enter the key. Needed unless it
    /// declares `files: none`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 1024)), extend("x-kubernetes-list-type" = "set"))]
    pub reads: Vec<String>,
}
