//! What an agent is.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{GoDuration, History, SandboxSpec, common};

/// An agent: an LLM loop with tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSpec {
    /// Standing instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub instructions: Option<String>,
    /// Name of a Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub model: Option<String>,
    /// Its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 64)), extend("x-kubernetes-list-type" = "set"))]
    pub tools: Option<Vec<String>>,
    /// Its skills.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)), extend("x-kubernetes-list-type" = "set"))]
    pub skills: Option<Vec<String>>,
    /// Most turns it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_turns: Option<i32>,
    /// JSON Schema that its answer must be valid against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "common::any_object")]
    pub output_schema: Option<Map<String, Value>>,
}

/// The lead agent of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeadSpec {
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentSpec,
    /// Whether it goes on with the thread's conversation; `Continue` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
}

/// Work for an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentWork {
    /// What it is asked to do.
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
    /// Name of the type.
    #[schemars(
        length(min = 1, max = 40),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,
    /// What it is good for, as the delegating agent reads it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
    /// The agent.
    #[serde(flatten)]
    pub agent: AgentSpec,
    /// Its sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSpec>,
    /// Its time per attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<GoDuration>,
}
