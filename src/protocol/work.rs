//! What the gateway hands to a runtime: one attempt of one sub-task.

use crate::agent::AgentTerms;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Identity of one attempt. Everything that a runtime says about work carries it; the Pod UID is
/// bound to the connection and never claimed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptId {
    /// UID of the SubTask.
    pub uid: String,
    /// Number of the attempt, from 1.
    pub attempt: i32,
}

/// One attempt, resolved: nothing is left to look up or to decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Assignment {
    /// Which attempt this is.
    #[serde(flatten)]
    pub id: AttemptId,
    /// `NAMESPACE/NAME` of the SubTask, for logs.
    pub subtask: String,
    /// UID of the AgentRun: the folder of this run below `state/runs`.
    pub run_uid: String,
    /// Name of the task in the plan.
    pub task: String,
    /// What to run.
    pub work: Work,
    /// The JSON on stdin. Absent means `null` for a function and an empty stdin for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// Files that must be below `uploads` before the work starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Files that must be there too, copied from claims that are mounted beside the user data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<FileCopy>,
    /// Skills of the work, each in its folder.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillFiles>,
    /// Environment of the work besides the executor's own allow-listed variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Names of variables that the kubelet set in the sandbox container for this task.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherit_env: Vec<String>,
    /// The work may open TCP connections (egress was asked for).
    #[serde(default)]
    pub tcp: bool,
    /// Milliseconds until the attempt must have ended, counted from now by the monotonic clock.
    pub remaining_ms: u64,
    /// Bounds of the work.
    pub limits: Limits,
    /// What must hold of what the work delivers, as the user wrote it; at most 20 texts of 500 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// What the attempt before did not meet, one sentence each, for the work to read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Take the result of an earlier function call with the same key, and keep this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheKey>,
}

/// What the key of a cached result covers besides skill, function, input, environment and image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheKey {
    /// Absolute virtual paths of the files that the function reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
}

/// The variable in which commands and functions find the notes of an assignment: a JSON array of strings. Unset where
/// there are none.
pub const NOTES_VARIABLE: &str = "AGENTRUN_NOTES";

/// What to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Work {
    /// A function of a skill: one JSON on stdin, one JSON on stdout.
    #[serde(rename_all = "camelCase")]
    Function {
        /// Name of the Skill: the folder below `/mnt/skills`.
        skill: String,
        /// Name of the function.
        name: String,
        /// Path of the program below the skill's folder.
        file: String,
        /// Which user data the function sees.
        files: FileAccess,
        /// Its processes stay and serve one call after another; between two they are stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warm: Option<Warm>,
    },
    /// A command, without a shell unless it names one.
    #[serde(rename_all = "camelCase")]
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// Absolute virtual path; the workspace when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        working_dir: Option<String>,
    },
    /// An agent: a model that works in a loop with tools.
    Agent(Box<AgentTerms>),
}

/// Processes that serve many calls: one JSON line in, one JSON line out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Warm {
    /// How many there may be at once.
    pub instances: u32,
    /// After how many calls one is replaced; never when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u32>,
}

/// Variable that is `1` in a warm process.
pub const WARM_VARIABLE: &str = "AGENTRUN_WARM";
/// The first line of a warm process on stdout, when it can take calls.
pub const WARM_READY: &str = r#"{"ready":true}"#;

/// Access of the work to the user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileAccess {
    /// stdin and the private temp folder only.
    #[default]
    None,
    /// Reads uploads, workspace and outputs.
    Read,
    /// Also writes workspace and outputs.
    Write,
}

/// Where the input comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "from")]
pub enum Input {
    /// The JSON itself (at most 64 KiB).
    Inline {
        /// Any JSON value.
        value: Value,
    },
    /// A file by its virtual path below `/mnt/user-data`.
    File {
        /// Absolute virtual path.
        path: String,
    },
    /// The stored output of another sub-task, `state/…`; checked by digest.
    Stored {
        /// Path, bytes and digest.
        #[serde(flatten)]
        file: FileRef,
    },
}

/// A file by content.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// Path relative to the folder that the context names (`uploads` or a skill), or `state/…`.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Lower-case hexadecimal SHA-256 of the content.
    pub sha256: String,
}

/// A file of a mounted claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCopy {
    /// Path below `uploads`.
    pub path: String,
    /// Folder below [`crate::environment::SOURCES`] where the claim is mounted.
    pub folder: String,
    /// Path below that folder.
    pub from: String,
    /// Size in bytes, where it was fixed at admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Lower-case hexadecimal SHA-256, where it was fixed at admission. Else the first copy of the run fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A skill whose files the runtime fetches by digest, or compares with it where they are mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFiles {
    /// Folder name below `/mnt/skills`.
    pub name: String,
    /// Digest of the whole skill; equal digests need no second fetch.
    pub digest: String,
    /// Its files.
    pub files: Vec<SkillFile>,
    /// It is a mount and travels not: its digest is compared, its files are not listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mounted: bool,
}

/// One file of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// Path, size and digest.
    #[serde(flatten)]
    pub file: FileRef,
    /// Whether it gets the executable bit.
    #[serde(default)]
    pub executable: bool,
}

/// Bounds of one call inside the sandbox. The container's cgroup bounds the whole besides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Address space or heap in bytes; `None` leaves it to the cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// CPU seconds; `None` leaves it to the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<u64>,
    /// Largest file that the work may write, in bytes.
    pub file_bytes: u64,
    /// Open descriptors.
    pub open_files: u64,
    /// Processes of one call, counted by its supervisor.
    pub processes: u32,
}

/// The most processes of one call.
pub const MAX_PROCESSES: u32 = 256;

impl Limits {
    /// Defaults of a function: 1 MB files, 32 descriptors.
    pub const FUNCTION: Limits = Limits {
        memory_bytes: None,
        cpu_seconds: None,
        file_bytes: 1_000_000,
        open_files: 32,
        processes: MAX_PROCESSES,
    };
    /// Defaults of commands and tools: 1 GiB files, 1,024 descriptors.
    pub const COMMAND: Limits = Limits {
        memory_bytes: None,
        cpu_seconds: None,
        file_bytes: 1 << 30,
        open_files: 1024,
        processes: MAX_PROCESSES,
    };
}
