//! How a call ended: our own record first, the exit code second, the output third.

use agentrun_api::SubTaskReason;
use agentrun_protocol::executor::ProcessEnd;
use agentrun_protocol::result::Ending;
use agentrun_protocol::work::WARM_READY;
use serde_json::{Value, json};

use super::diagnose::{Diagnosis, diagnose};
use super::document::{ContractError, Document, parse};
use super::tail::prefix;

/// Bytes of stdout that a message shows.
const SAID: usize = 80;

/// What we did to the call ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// Nothing: its process ended by itself, or could not start.
    Itself,
    /// We ended it at its deadline, after this many milliseconds.
    Timeout {
        /// The time it had.
        limit_ms: u64,
    },
    /// We ended it because it was cancelled.
    Cancel,
    /// We ended it because it had written its one document and did not exit: the document counts.
    Lingering,
    /// We ended it because it is to serve calls and did not say that it can, within so many milliseconds.
    NotReady {
        /// The time it had.
        limit_ms: u64,
    },
}

/// Where the output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery<'a> {
    /// A function's: its stdout.
    Stdout {
        /// The bytes that were kept, from the first.
        kept: &'a [u8],
        /// All bytes that were written.
        total: u64,
    },
    /// A command's: its output file if it wrote one, else `{stdout_tail}`.
    File {
        /// The bytes that were kept and how many were written.
        file: Option<(&'a [u8], u64)>,
        /// The end of stdout.
        stdout_tail: &'a str,
    },
}

/// Everything known of a call that is over.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// What we did to it.
    pub ended_by: EndedBy,
    /// How its first process ended.
    pub process: &'a ProcessEnd,
    /// It was killed because it had more processes than it may.
    pub too_many_processes: bool,
    /// While it ran, the kernel killed a process of the sandbox because its memory was used up.
    pub killed_for_memory: bool,
    /// It was waiting for input when we ended it.
    pub blocked_on_stdin: bool,
    /// Where its output is.
    pub delivery: Delivery<'a>,
    /// The end of its stderr.
    pub stderr: &'a str,
}

/// What is told of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement<'a> {
    /// How it ended.
    pub ending: Ending,
    /// The word for the object's status.
    pub reason: SubTaskReason,
    /// What was found and what to do; empty for a success.
    pub message: String,
    /// The code of the program's own structured error.
    pub code: Option<String>,
    /// The exit code of its process, if it exited by itself.
    pub exit_code: Option<i32>,
    /// The output of a success.
    pub output: Option<Output<'a>>,
}

/// The output of a success.
#[derive(Debug, Clone, PartialEq)]
pub enum Output<'a> {
    /// What the program wrote, byte by byte.
    Document(Document<'a>),
    /// What stands for the output of a command that wrote none.
    Made(Value),
}

impl Output<'_> {
    /// Its value.
    pub fn value(&self) -> &Value {
        match self {
            Self::Document(document) => &document.value,
            Self::Made(value) => value,
        }
    }
}

/// Judges a call. Pure: the same facts always give the same answer.
pub fn judge<'a>(call: &Call<'a>) -> Judgement<'a> {
    let exit_code = match call.process {
        ProcessEnd::Exited { code } => Some(*code),
        _ => None,
    };
    Judgement {
        exit_code,
        ..without_exit_code(call)
    }
}

fn without_exit_code<'a>(call: &Call<'a>) -> Judgement<'a> {
    match call.ended_by {
        EndedBy::Timeout { limit_ms } => return timeout(limit_ms, call.blocked_on_stdin),
        EndedBy::Cancel => {
            return ended(
                Ending::Cancelled,
                SubTaskReason::Cancelled,
                "it was cancelled".to_owned(),
            );
        }
        EndedBy::NotReady { limit_ms } => return not_ready(limit_ms, call.delivery),
        EndedBy::Itself | EndedBy::Lingering => {}
    }
    if call.too_many_processes {
        let message = "it had more processes at once than it may and was killed; start fewer".to_owned();
        return ended(Ending::Error, SubTaskReason::TooManyProcesses, message);
    }
    if call.killed_for_memory && was_killed(call.process) {
        let message =
            "the kernel ended it because the sandbox's memory was used up; raise resources.memory".to_owned();
        return ended(Ending::Error, SubTaskReason::OOMKilled, message);
    }
    let lingered =
        call.ended_by == EndedBy::Lingering && matches!(call.process, ProcessEnd::Signalled { .. });
    if *call.process != (ProcessEnd::Exited { code: 0 }) && !lingered {
        // A document on stdout does not make up for it: F029.
        let Diagnosis {
            reason,
            message,
            code,
        } = diagnose(call.process, call.stderr);
        return Judgement {
            code,
            ..ended(Ending::Error, reason, message)
        };
    }
    match output(call.delivery) {
        Ok(output) => Judgement {
            output: Some(output),
            ..ended(Ending::Success, SubTaskReason::Completed, String::new())
        },
        Err(error) => ended(Ending::ParseError, error.reason(), error.to_string()),
    }
}

/// Killed itself, or by what its shell says of a child.
fn was_killed(end: &ProcessEnd) -> bool {
    matches!(
        end,
        ProcessEnd::Signalled { signal: 9 } | ProcessEnd::Exited { code: 137 }
    )
}

fn not_ready<'a>(limit_ms: u64, delivery: Delivery<'_>) -> Judgement<'a> {
    let said = match delivery {
        Delivery::Stdout { kept, .. } if !kept.is_empty() => {
            format!(", it begins with `{}`", prefix(kept, SAID).escape_ascii())
        }
        _ => ", it is empty".to_owned(),
    };
    let message = format!(
        "its warm process did not say that it is ready within {}: the first line on stdout must be {WARM_READY}{said}; \
         write that line when it can take calls, or leave out warm",
        seconds(limit_ms)
    );
    ended(Ending::Error, SubTaskReason::StartFailed, message)
}

fn seconds(milliseconds: u64) -> String {
    format!("{}.{:03} s", milliseconds / 1000, milliseconds % 1000)
}

fn timeout<'a>(limit_ms: u64, blocked_on_stdin: bool) -> Judgement<'a> {
    let seconds = seconds(limit_ms);
    if blocked_on_stdin {
        let message =
            format!("it was still waiting for input when its {seconds} were over; read stdin to its end");
        return ended(Ending::Timeout, SubTaskReason::BlockedOnStdin, message);
    }
    let message = format!("it was ended when its {seconds} were over");
    ended(Ending::Timeout, SubTaskReason::DeadlineExceeded, message)
}

fn output(delivery: Delivery<'_>) -> Result<Output<'_>, ContractError> {
    let (source, kept, total) = match delivery {
        Delivery::Stdout { kept, total } => ("stdout", kept, total),
        Delivery::File {
            file: Some((kept, total)),
            ..
        } => ("$AGENTRUN_OUTPUT", kept, total),
        Delivery::File {
            file: None,
            stdout_tail,
        } => return Ok(Output::Made(json!({"stdout_tail": stdout_tail}))),
    };
    if total > kept.len() as u64 {
        return Err(ContractError::too_large(source, kept, total));
    }
    parse(source, kept).map(Output::Document)
}

fn ended<'a>(ending: Ending, reason: SubTaskReason, message: String) -> Judgement<'a> {
    Judgement {
        ending,
        reason,
        message,
        code: None,
        exit_code: None,
        output: None,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
