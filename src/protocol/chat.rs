//! A conversation with a model, in the one form that the parts of AgentRun exchange. What an endpoint wants to read and
//! writes is known to the gateway alone.

use crate::Blob;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// What an agent is to its run; chooses its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Works on the run's goal and may delegate.
    Lead,
    /// Makes a plan of sub-tasks.
    Planner,
    /// Finds things out.
    Researcher,
    /// Does work.
    Executor,
    /// Judges work.
    Reviewer,
    /// Shortens conversations and results.
    Summarizer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 6] = [
        Role::Lead,
        Role::Planner,
        Role::Researcher,
        Role::Executor,
        Role::Reviewer,
        Role::Summarizer,
    ];

    /// The name that manifests use.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Lead => "lead",
            Role::Planner => "planner",
            Role::Researcher => "researcher",
            Role::Executor => "executor",
            Role::Reviewer => "reviewer",
            Role::Summarizer => "summarizer",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum Message {
    /// Standing instructions.
    System {
        /// Text.
        text: String,
    },
    /// What the model is asked or told.
    User {
        /// Text.
        text: String,
        /// Pictures, for a model that sees.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// What the model said. Its reasoning is not part of the conversation.
    #[serde(rename_all = "camelCase")]
    Assistant {
        /// Text; empty when it only called tools.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
        /// Tools that it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The answer to one tool call.
    Tool {
        /// Which call.
        id: String,
        /// Name of the tool.
        name: String,
        /// Text.
        text: String,
        /// Pictures, for a model that sees.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// For example `image/png`.
    pub media_type: String,
    /// Its bytes.
    pub data: Blob,
}

/// A tool that the model called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique in its conversation.
    pub id: String,
    /// As the model wrote it; there may be no such tool.
    pub name: String,
    /// As the model wrote them; may be no JSON.
    pub arguments: String,
}

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments, an object.
    pub parameters: Value,
}

/// One call of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// For whom: chooses the model.
    pub role: Role,
    /// Name of a Model that was asked for instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The conversation.
    pub messages: Vec<Message>,
    /// Tools that it may call; none means that it has to answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// The answer has to be JSON of this schema, where the endpoint can enforce it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    /// Text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Tools that it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it used.
    pub usage: TokenUsage,
    /// What that cost, in millionths of the Model's currency.
    #[serde(default)]
    pub cost_micros: u64,
    /// Name of the Model that answered; a fallback perhaps.
    pub model: String,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// It was done.
    Stop,
    /// It calls tools.
    ToolCalls,
    /// It may write no more; the answer is cut.
    Length,
    /// The endpoint withheld the answer.
    ContentFilter,
    /// The endpoint's word is unknown to us.
    Unknown,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Of the request.
    pub input: u64,
    /// Of the answer.
    pub output: u64,
    /// Of the request, as far as the endpoint had it cached.
    #[serde(default)]
    pub cached_input: u64,
    /// The endpoint told no figures: these were counted by the gateway.
    #[serde(default)]
    pub estimated: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFailure {
    /// Its kind.
    pub code: ModelFailureCode,
    /// What was found, what is allowed and what to do.
    pub message: String,
}

/// Kinds of failures. Whatever was worth another try has been tried again before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelFailureCode {
    /// The namespace has no Model for the role, or more than one.
    NoModel,
    /// The endpoint does not take the key, or the key cannot be read.
    AuthFailed,
    /// Nothing answers at the endpoint.
    Unreachable,
    /// The endpoint has taken no request for as long as we ask.
    RateLimited,
    /// The conversation is longer than the model reads: shorten it and ask again.
    ContextTooLong,
    /// The run's tokens or money are used up.
    BudgetExceeded,
    /// The endpoint refuses the request.
    Refused,
    /// What the endpoint says is no answer.
    BadAnswer,
}
