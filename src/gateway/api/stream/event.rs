//! What a reader is told.

use crate::api::view::{File, Step, TaskStatus};
use agentrun_api::Outcome;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// An event of a task's stream.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Event {
    /// The plan; the first event of a stream.
    Plan {
        /// Its steps in the order in which they may start.
        steps: Vec<Step>,
    },
    /// A piece of work came to a new state.
    Subagent(Subagent),
    /// A file was delivered, or delivered anew with other content.
    Artifact {
        /// The file.
        #[serde(flatten)]
        file: File,
        /// The piece of work that delivered it.
        #[serde(skip_serializing_if = "Option::is_none")]
        subagent: Option<String>,
    },
    /// The task did not end well.
    Error {
        /// Why, in one word.
        code: String,
        /// Why, as a sentence.
        message: String,
    },
    /// Events may have been missed. What follows tells everything again, or all that is still known; an event that was
    /// told before means the same again. It has no id.
    Gap {
        /// Why.
        reason: String,
    },
    /// The task is over. Nothing follows.
    Done {
        /// How it ended.
        status: TaskStatus,
        /// Its output, null where it has none.
        outputs: Value,
        /// The file that holds its output instead.
        #[serde(skip_serializing_if = "Option::is_none")]
        output_ref: Option<File>,
    },
}

/// A piece of work in a new state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Subagent {
    /// Its step, with the key or index of its item in brackets.
    pub(crate) name: String,
    /// Its state.
    pub(crate) status: SubagentStatus,
    /// Name of its SubTask.
    pub(crate) id: String,
    /// Which attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<i32>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Why, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// The states of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum SubagentStatus {
    /// It may start, and waits for its sandbox.
    #[serde(rename = "task_started")]
    Started,
    /// An attempt runs in its sandbox.
    #[serde(rename = "task_running")]
    Running,
    /// It ended with Success.
    #[serde(rename = "task_completed")]
    Completed,
    /// It ended with Error or ParseError.
    #[serde(rename = "task_failed")]
    Failed,
    /// It was cancelled, or skipped (then `outcome` says so).
    #[serde(rename = "task_cancelled")]
    Cancelled,
    /// Its time was up.
    #[serde(rename = "task_timed_out")]
    TimedOut,
}

impl SubagentStatus {
    pub(crate) const fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Success => Self::Completed,
            Outcome::Timeout => Self::TimedOut,
            Outcome::ParseError | Outcome::Error => Self::Failed,
            Outcome::Cancelled | Outcome::Skipped => Self::Cancelled,
        }
    }
}
