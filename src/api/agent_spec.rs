//! What an agent is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{GoDuration, History, Json, SandboxSpec, common, rules};

/// An agent: an LLM that works in a loop with tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// Standing instructions, added to the ones every agent has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub instructions: Option<String>,
    /// Name of a Model of the namespace. Default: the run's `models` for the agent's role, then the namespace's
    /// Model with that role, then its default Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub model: Option<String>,
    /// Names of the tools it has: `bash`, `ls`, `read_file`, `write_file`, `str_replace`, `glob`, `grep`, `view_image`,
    /// `present_files`, `write_todos` and `task`, which delegates. An empty list gives it none. An agent with Skills has
    /// `skill` besides. Default: the tools of its type, and for a lead all; `task` only where `delegation.maxDepth`
    /// leaves room.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub tools: Option<Vec<String>>,
    /// Names of the Skills it may use. An empty list gives it none. Default: none; a delegate has those of the agent
    /// that asks for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub skills: Option<Vec<String>>,
    /// How many turns it may take; then it gets one last turn without tools and ends with `stopReason:
    /// TurnCapped`. Default: that of its type (general-purpose 150, bash 60).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_turns: Option<i32>,
    /// JSON Schema, an object. With it the answer is JSON that is valid against it, or the outcome is
    /// `ParseError`. Default: the answer is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "common::any_json")]
    pub output_schema: Option<Json>,
}

/// The lead agent of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeadSpec {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentSpec,
    /// What it knows of earlier runs of the thread. `Continue`: the conversation goes on. `Fresh`: nothing, though
    /// the files are there. Default: Continue on a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// Work for an agent. Its output is `{text}`, or JSON if it has an `outputSchema`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWork {
    /// What it is asked to do. Expressions in `${}` are evaluated.
    #[schemars(length(min = 1, max = 32768))]
    pub prompt: String,
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentSpec,
}

/// A type of agent that others may delegate to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentType {
    /// Name of the type. `general-purpose` and `bash` replace the built-in ones.
    #[schemars(length(min = 1, max = 40), regex(pattern = common::DNS_LABEL))]
    pub name: String,
    /// What it is good for, as the delegating agent reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentSpec,
    /// Its sandbox, where it differs from the run's.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = rules::written_sandbox()))]
    pub sandbox: Option<SandboxSpec>,
    /// Its time per attempt. Default: 30m.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}
