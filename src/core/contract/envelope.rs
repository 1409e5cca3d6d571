//! The envelope that a caller of a function gets.

use agentrun_protocol::result::Ending;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::judge::Judgement;

/// How a call ended, in the words of the function contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// One JSON document and exit code 0.
    Success,
    /// Its time was over.
    Timeout,
    /// The output is not exactly one JSON document.
    ParseError,
    /// Everything else, a cancel included.
    Error,
}

impl From<Ending> for Status {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Success => Self::Success,
            Ending::Timeout => Self::Timeout,
            Ending::ParseError => Self::ParseError,
            Ending::Error | Ending::Cancelled => Self::Error,
        }
    }
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// From its start to the end of all its processes, in milliseconds.
    pub duration_ms: u64,
    /// The largest resident size of any of its processes, in bytes.
    pub peak_memory_bytes: u64,
}

/// The answer to a call. Every key is always there; `output` is null unless it is a success, `error` if it is one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// How it ended.
    pub status: Status,
    /// The function's JSON.
    pub output: Value,
    /// Why it did not succeed.
    pub error: Option<EnvelopeError>,
    /// See [`Usage`].
    pub duration_ms: u64,
    /// See [`Usage`].
    pub peak_memory_bytes: u64,
    /// The end of stdout; of a timeout, too.
    pub stdout_tail: String,
    /// Head and end of stderr.
    pub stderr_tail: String,
}

/// Why a call did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvelopeError {
    /// The code of the program's own structured error, else the reason, such as `ModuleNotFound`.
    pub code: String,
    /// What was found and what to do.
    pub message: String,
}

impl Envelope {
    /// Puts together what is known of a call.
    pub fn new(judgement: &Judgement<'_>, usage: Usage, stdout_tail: String, stderr_tail: String) -> Self {
        let error = (judgement.ending != Ending::Success).then(|| EnvelopeError {
            code: judgement
                .code
                .clone()
                .unwrap_or_else(|| judgement.reason.to_string()),
            message: judgement.message.clone(),
        });
        Self {
            status: judgement.ending.into(),
            output: judgement
                .output
                .as_ref()
                .map_or(Value::Null, |output| output.value().clone()),
            error,
            duration_ms: usage.duration_ms,
            peak_memory_bytes: usage.peak_memory_bytes,
            stdout_tail,
            stderr_tail,
        }
    }
}
