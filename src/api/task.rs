//! A task of a plan.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    AcceptancePolicy, AgentWork, Approval, Cache, CommandWork, Context, ForEach, FunctionWork, GoDuration,
    InputFrom, Json, Resources, Retry, SandboxSpec, When, Work, common, rules,
};

/// A task that must have ended before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dependency {
    /// Name of the task.
    #[schemars(length(min = 1, max = 40), regex(pattern = common::DNS_LABEL))]
    pub task: String,
    /// Which end of it is waited for. `Succeeded`: Success, and accepted if it requires that. `Failed`: Error,
    /// Timeout, ParseError, Cancelled or not accepted. `Finished`: any. If it ends otherwise, this task is
    /// skipped. Default: Succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
}

/// One task of a plan: exactly one of `function`, `command` and `agent`, and when, where and how often it runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules::task_template()))]
pub struct TaskTemplate {
    /// Name of the task, as expressions and other tasks know it.
    #[schemars(length(min = 1, max = 40), regex(pattern = common::DNS_LABEL))]
    pub name: String,
    /// What it is for, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub description: Option<String>,
    /// A call of a skill's function. Its output is the JSON that it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<FunctionWork>,
    /// A program. Its output is the JSON that it writes to the file `$AGENTRUN_OUTPUT`, else `{stdout_tail}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandWork>,
    /// Work for an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentWork>,
    /// The input: any JSON of at most 64 KiB. Strings may hold expressions in `${}`; a string that is nothing but
    /// one expression becomes its value with its type. A command finds the input on standard input and in the
    /// file `$AGENTRUN_INPUT`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "common::present"
    )]
    #[schemars(schema_with = "common::any_json")]
    pub input: Option<Json>,
    /// Where the input comes from, instead of `input`: for large ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_from: Option<InputFrom>,
    /// Tasks that must have ended before. Every `tasks.NAME` in an expression adds one by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["task"]))]
    pub depends_on: Vec<Dependency>,
    /// One expression, `${…}`, that is true or false. False: the task is `Skipped`. With `forEach` it is asked for
    /// every item. Default: true.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1040))]
    pub if_: Option<String>,
    /// Runs the task once per item of a list. Expressions of the task see `item` and `index`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// The task's sandbox, where it differs from the run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::written_sandbox()))]
    pub sandbox: Option<SandboxSpec>,
    /// Upper limits of the task's call. A function's own limits may only be lowered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Time per attempt; then the outcome is `Timeout`. A function's own may only be lowered, and it is never
    /// more than what the run has left. Default: 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
    /// When it is tried again. Default: never, but after disruptions of the platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What a delegated agent sees of its parent's conversation. Only for delegated agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Context>,
    /// What must hold of what it delivered: `file:PATH exists|non-empty|json-valid|csv-columns:a,b|json-schema:PATH`,
    /// `file_written:PATH`, `tests_passed:COMMAND` or `rerun:COMMAND`. Relative paths start at the workspace; others
    /// are below `/mnt/user-data/workspace` and `/mnt/user-data/outputs`. Anything else is never taken to hold. Under
    /// `Require`, another attempt finds what was not met in the variable `AGENTRUN_NOTES`, a JSON array of strings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), inner(length(min = 1, max = 500)), extend("x-kubernetes-list-type" = "set"))]
    pub acceptance: Vec<String>,
    /// What `acceptance` is for. `Report`: to be seen. `Require`: until all of it holds, dependants wait and the
    /// task counts as failed. Default: Report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acceptance_policy: Option<AcceptancePolicy>,
    /// Takes the result of an earlier call with the same skill digest and input, if there is one. Only for
    /// functions. Default: off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// `Required`: the task waits as `Pending` until someone approves, and the run shows `NeedsInput`. Default: it
    /// does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,
}

impl TaskTemplate {
    /// The task's work, or nothing unless exactly one kind is given.
    pub fn work(&self) -> Option<Work<'_>> {
        Work::of(self.function.as_ref(), self.command.as_ref(), self.agent.as_ref())
    }
}
