//! How one attempt ended, as the runtime saw it.

use crate::agent::AgentFacts;
use crate::probe::Isolation;
use crate::work::FileRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How the work ended, by the runtime's own record first and the exit code second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The contract was kept.
    Success,
    /// The runtime ended it at its deadline.
    Timeout,
    /// stdout was not exactly one JSON document.
    ParseError,
    /// Anything else: exit code, signal, refused start.
    Error,
    /// The gateway asked the runtime to end it.
    Cancelled,
}

/// The result of one attempt: posted until it is acknowledged, stored first under `state`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptResult {
    /// How it ended.
    pub ending: Ending,
    /// A reason from the documented list (`agentrun_api::names::reasons`), such as `ExitCode`.
    pub reason: String,
    /// One sentence for a person: what was found and what to do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Exit code of the work, when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The output, when it is small and survives the API server unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Else the file with its exact bytes, `state/runs/…`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<FileRef>,
    /// The end of stdout (2 KiB at most).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout_tail: String,
    /// Head and end of stderr (2 KiB at most).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr_tail: String,
    /// Regular files below `outputs` that this attempt made or changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// What each criterion of the assignment says; only after a success.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<CriterionVerdict>,
    /// Where the time went.
    pub timing: Timing,
    /// What it used.
    pub usage: Usage,
    /// How an agent went.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentFacts>,
    /// What the isolation probe of this Pod found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// The executor saw no descendant of the call any more, twice.
    pub process_tree_empty: bool,
}

/// What one criterion says about what was delivered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriterionVerdict {
    /// As it was assigned.
    pub criterion: String,
    /// Its kind, such as `file` or `unknown`.
    pub family: String,
    /// Whether it could be decided. False means unverified.
    pub checked: bool,
    /// Whether it holds; false when it could not be decided.
    pub holds: bool,
    /// What was found, in one line of at most 160 characters.
    pub detail: String,
}

/// A file below `outputs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactRef {
    /// Virtual path, `/mnt/user-data/outputs/…`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Lower-case hexadecimal SHA-256.
    pub sha256: String,
    /// Media type by content, `application/octet-stream` when unknown.
    pub media_type: String,
}

/// Milliseconds by the runtime's monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Timing {
    /// From the assignment to the start of the work: files, skills, isolation probe.
    pub start_ms: i64,
    /// From the start of the work to its end.
    pub run_ms: i64,
}

/// What the work used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Peak resident memory of the call's largest process, in bytes.
    pub peak_memory_bytes: i64,
    /// User and system time of the call's processes, in milliseconds.
    pub cpu_ms: i64,
}
