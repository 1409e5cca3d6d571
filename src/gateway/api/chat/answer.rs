//! What a run's end means in the words of the Chat Completions API; pure.

use super::request::DEFAULT_MODEL;
use crate::api::bounds;
use crate::api::problem::{Problem, json};
use crate::api::view::{self, TaskStatus};
use agentrun_api::{AgentRun, FailedReason, Model, SubTask, SubTaskRole};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode};
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The answer of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChatCompletion {
    /// Name of the AgentRun: the task's id.
    pub(crate) id: String,
    /// `chat.completion`.
    pub(crate) object: &'static str,
    /// When the run was made, in seconds since 1970.
    pub(crate) created: i64,
    /// The model that was asked for.
    pub(crate) model: String,
    /// The one answer.
    pub(crate) choices: [ChatChoice; 1],
    /// What all agents of the run used; absent where nothing was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<ChatUsage>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChatChoice {
    /// 0.
    pub(crate) index: u32,
    /// The lead agent's answer.
    pub(crate) message: ChatAnswer,
    /// `stop`, or `length` where a limit of tokens, turns or repetition made the lead answer with what it had.
    pub(crate) finish_reason: &'static str,
}

/// The message of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChatAnswer {
    /// `assistant`.
    pub(crate) role: &'static str,
    /// The text.
    pub(crate) content: String,
}

/// Tokens of a whole run. What of them was asked and what was answered is not kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChatUsage {
    /// All tokens.
    pub(crate) total_tokens: i64,
}

/// The models that can be named.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ModelList {
    /// `list`.
    pub(crate) object: &'static str,
    /// `agentrun` first, then the Models of the namespace by name.
    pub(crate) data: Vec<ModelEntry>,
}

/// One model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ModelEntry {
    /// What `model` takes.
    pub(crate) id: String,
    /// `model`.
    pub(crate) object: &'static str,
    /// When its Model was made, in seconds since 1970; 0 for `agentrun`.
    pub(crate) created: i64,
    /// The namespace.
    pub(crate) owned_by: String,
}

impl ModelList {
    pub(super) fn of(namespace: &str, models: &[Arc<Model>]) -> Self {
        let entry = |id: String, created| ModelEntry {
            id,
            object: "model",
            created,
            owned_by: namespace.to_owned(),
        };
        let own = models.iter().map(|it| entry(it.name_any(), created(&**it)));
        // The default's name hides a Model that is called like it.
        let mut own: Vec<_> = own.filter(|it| it.id != DEFAULT_MODEL).collect();
        own.sort_by(|a, b| a.id.cmp(&b.id));
        let mut data = vec![entry(DEFAULT_MODEL.to_owned(), 0)];
        data.extend(own);
        Self { object: "list", data }
    }
}

fn created(object: &impl kube::ResourceExt) -> i64 {
    let time = object.creation_timestamp();
    time.map_or(0, |time| time.0.as_second())
}

impl ChatCompletion {
    /// The answer of a run that is over.
    pub(super) fn of(model: &str, run: &AgentRun, subtasks: &[SubTask]) -> Result<Self, ChatRefused> {
        let status = run.status.clone().unwrap_or_default();
        if TaskStatus::of(run) != TaskStatus::Succeeded {
            return Err(ChatRefused::failed(run));
        }
        let content = match status.output.map(|output| output.0) {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => return Err(ChatRefused::without_text(&run.name_any())),
        };
        let lead = subtasks.iter().find(|it| it.spec.role == SubTaskRole::Lead);
        let capped = lead.is_some_and(|it| it.status.as_ref().is_some_and(|it| it.stop_reason.is_some()));
        let total_tokens = status.usage.map_or(0, |usage| usage.tokens.values().sum());
        Ok(Self {
            id: run.name_any(),
            object: "chat.completion",
            created: created(run),
            model: model.to_owned(),
            choices: [ChatChoice {
                index: 0,
                message: ChatAnswer {
                    role: "assistant",
                    content,
                },
                finish_reason: if capped { "length" } else { "stop" },
            }],
            usage: (total_tokens > 0).then_some(ChatUsage { total_tokens }),
        })
    }
}

/// Why there is no answer, in the shape that clients of the Chat Completions API read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ChatRefused {
    /// The cause.
    pub(crate) error: ChatError,
    #[serde(skip)]
    refusal: Refusal,
}

/// The cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChatError {
    /// A sentence.
    pub(crate) message: String,
    /// `invalid_request_error` where the request is at fault, else `api_error`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    /// Always null.
    pub(crate) param: Option<String>,
    /// One word: a code of this API, or the reason of the run.
    pub(crate) code: String,
}

#[derive(Clone, Debug)]
enum Refusal {
    /// No run was made.
    Unmade(Problem),
    /// A run ended without an answer.
    Ended(StatusCode),
}

impl ChatRefused {
    fn ended(status: StatusCode, code: &str, message: String) -> Self {
        Self {
            error: error(status, code.to_owned(), message),
            refusal: Refusal::Ended(status),
        }
    }

    pub(super) fn late(id: &str) -> Self {
        let limit = bounds::CALL.1.as_secs();
        let message = format!(
            "task {id} did not end within {limit} s, which is the limit here: make a task for longer work"
        );
        Self::ended(StatusCode::GATEWAY_TIMEOUT, "Timeout", message)
    }

    fn without_text(id: &str) -> Self {
        let message = format!(
            "the answer of task {id} has more than 16 KiB and is a file of its volume: ask for a shorter one, or for a file"
        );
        Self::ended(StatusCode::INTERNAL_SERVER_ERROR, "OutputTooLarge", message)
    }

    fn failed(run: &AgentRun) -> Self {
        let status = run.status.clone().unwrap_or_default();
        let reason = status.reason.clone().unwrap_or_else(|| "Failed".into());
        let http = if reason == FailedReason::DeadlineExceeded.as_str() {
            StatusCode::GATEWAY_TIMEOUT
        } else if reason == FailedReason::Invalid.as_str() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        let cause = view::message(&status).unwrap_or_else(|| reason.clone());
        let message = format!("task {} ended without an answer: {cause}", run.name_any());
        Self::ended(http, &reason, message)
    }
}

impl From<Problem> for ChatRefused {
    fn from(problem: Problem) -> Self {
        let code = serde_json::to_value(problem.code).unwrap_or_default();
        let code = code.as_str().unwrap_or_default().to_owned();
        Self {
            error: error(problem.code.status(), code, problem.message.clone()),
            refusal: Refusal::Unmade(problem),
        }
    }
}

fn error(status: StatusCode, code: String, message: String) -> ChatError {
    let kind = if status.is_client_error() {
        "invalid_request_error"
    } else {
        "api_error"
    };
    ChatError {
        message,
        kind,
        param: None,
        code,
    }
}

impl IntoResponse for ChatRefused {
    fn into_response(self) -> Response {
        match &self.refusal {
            Refusal::Ended(status) => {
                let mut response = json(*status, &self);
                // Clients ask again by themselves after 5xx: the same work would be done and paid for twice.
                let never = HeaderValue::from_static("false");
                response.headers_mut().insert("x-should-retry", never);
                response
            }
            Refusal::Unmade(problem) => problem.clone().with_body(&self),
        }
    }
}
