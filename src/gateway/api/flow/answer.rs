//! What a call is answered with; pure.

use crate::api::call::End;
use crate::api::problem::{Problem, json};
use crate::api::view;
use agentrun_api::{AgentRun, FailedReason, Outcome, SubTask, SubTaskReason, SubTaskStatus};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The answer to a function call.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct FlowAnswer {
    /// Whether the function did what it should.
    pub(crate) success: bool,
    /// Its output; absent without success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<FlowError>,
    /// All that is known of the call, with `?envelope=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) envelope: Option<Envelope>,
    #[serde(skip)]
    status: StatusCode,
}

/// Why a call has no output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FlowError {
    /// One word: a reason of a SubTask, of a run, or a code of this API.
    pub(crate) code: String,
    /// A sentence.
    pub(crate) message: String,
}

/// All that is known of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Envelope {
    /// Name of the AgentRun, which goes a minute after its end.
    pub(crate) task_id: String,
    /// How the function ended: `success`, `timeout`, `parse_error` or `error`.
    pub(crate) status: &'static str,
    /// How long it ran, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<i64>,
    /// Most memory at one time, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) peak_memory_bytes: Option<i64>,
    /// Exit code of its program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) exit_code: Option<i32>,
    /// The end of its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stdout_tail: Option<String>,
    /// Head and end of its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stderr_tail: Option<String>,
}

impl FlowAnswer {
    /// The answer to a call that ended.
    pub(super) fn of(end: &End, task_id: &str, limit: Duration) -> Self {
        let mut answer = match end {
            End::SubTask(subtask) => of_subtask(subtask),
            End::Run(run) => of_run(run, limit),
            End::Late => failed(StatusCode::GATEWAY_TIMEOUT, "Timeout", late(limit)),
        };
        let envelope = answer.envelope.get_or_insert_default();
        task_id.clone_into(&mut envelope.task_id);
        if envelope.status.is_empty() {
            envelope.status = if answer.status == StatusCode::GATEWAY_TIMEOUT {
                "timeout"
            } else {
                "error"
            };
        }
        answer
    }

    /// The answer to a call that was not made.
    pub(super) fn refused(problem: Problem) -> Response {
        let code = serde_json::to_value(problem.code).unwrap_or_default();
        let code = code.as_str().unwrap_or_default().to_owned();
        let status = problem.code.status();
        let mut answer = failed(status, &code, problem.message.clone());
        answer.envelope = None;
        problem.with_body(&answer)
    }

    /// The response, with all that is known if that was asked for.
    pub(super) fn response(mut self, envelope: bool) -> Response {
        if !envelope {
            self.envelope = None;
        }
        json(self.status, &self)
    }
}

fn late(limit: Duration) -> String {
    let limit = limit.as_millis();
    format!("the call did not end within {limit} ms: raise ?timeout=, or make a task and follow it")
}

fn failed(status: StatusCode, code: &str, message: String) -> FlowAnswer {
    FlowAnswer {
        success: false,
        data: None,
        error: Some(FlowError {
            code: code.to_owned(),
            message,
        }),
        envelope: None,
        status,
    }
}

fn of_subtask(subtask: &SubTask) -> FlowAnswer {
    let status = subtask.status.clone().unwrap_or_default();
    let mut answer = match status.outcome {
        Some(Outcome::Success) => delivered(&status),
        outcome => undelivered(outcome, &status),
    };
    answer.envelope = Some(Envelope {
        task_id: String::new(),
        status: match status.outcome {
            Some(Outcome::Success) => "success",
            Some(Outcome::Timeout) => "timeout",
            Some(Outcome::ParseError) => "parse_error",
            _ => "error",
        },
        duration_ms: status.timing.and_then(|timing| timing.run_ms),
        peak_memory_bytes: status.usage.and_then(|usage| usage.peak_memory),
        exit_code: status.exit_code,
        stdout_tail: status.stdout_tail,
        stderr_tail: status.stderr_tail,
    });
    answer
}

fn delivered(status: &SubTaskStatus) -> FlowAnswer {
    if let (None, Some(file)) = (&status.output, &status.output_ref) {
        let message = format!(
            "the output has {} bytes or is JSON that the API server would change, so that it is a file: make a task for it, with what it delivers in outputs",
            file.bytes
        );
        let code = SubTaskReason::OutputTooLarge.as_str();
        return failed(StatusCode::INTERNAL_SERVER_ERROR, code, message);
    }
    FlowAnswer {
        success: true,
        data: Some(status.output.clone().map_or(Value::Null, |output| output.0)),
        error: None,
        envelope: None,
        status: StatusCode::OK,
    }
}

fn undelivered(outcome: Option<Outcome>, status: &SubTaskStatus) -> FlowAnswer {
    let reason = status.reason.clone().unwrap_or_default();
    let http = match outcome {
        Some(Outcome::Timeout) => StatusCode::GATEWAY_TIMEOUT,
        Some(Outcome::ParseError) => StatusCode::UNPROCESSABLE_ENTITY,
        _ if reason == SubTaskReason::InvalidInput.as_str() => StatusCode::UNPROCESSABLE_ENTITY,
        _ if reason == SubTaskReason::DeadlineExceeded.as_str() => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let message = status
        .message
        .clone()
        .unwrap_or_else(|| format!("the function ended with {reason}"));
    failed(http, &reason, message)
}

fn of_run(run: &AgentRun, limit: Duration) -> FlowAnswer {
    let status = run.status.clone().unwrap_or_default();
    let reason = status.reason.clone().unwrap_or_else(|| "Failed".into());
    let timed_out = [FailedReason::DeadlineExceeded, FailedReason::StartTimeout];
    if timed_out.iter().any(|it| it.as_str() == reason) {
        let waited = view::message(&status).unwrap_or_default();
        let message = format!("{}; {waited}", late(limit));
        return failed(StatusCode::GATEWAY_TIMEOUT, &reason, message);
    }
    let http = if reason == FailedReason::Invalid.as_str() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    };
    let message = view::message(&status).unwrap_or_else(|| format!("the call ended with {reason}"));
    failed(http, &reason, message)
}
