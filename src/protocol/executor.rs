//! Runtime ↔ executor: frames over the one connection that the executor makes to the runtime's
//! socket before any user code runs.

use crate::Blob;
use crate::work::{FileAccess, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where the runtime listens; an emptyDir that the `sandbox` container mounts read-only.
pub const SOCKET: &str = "/run/agentrun/executor.sock";

/// Names a call on this connection.
pub type CallId = u64;

/// What the runtime tells the executor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToExecutor {
    /// First message: what the container's mount table must look like.
    #[serde(rename_all = "camelCase")]
    Expect {
        /// Every mount that may exist besides the container runtime's own.
        mounts: Vec<ExpectedMount>,
        /// Refuse to run anything when the kernel has no Landlock.
        landlock_required: bool,
        /// Where the kubelet put values that nobody may see.
        #[serde(default)]
        secrets: SecretPlaces,
    },
    /// Run a program.
    Exec(Box<Exec>),
    /// Bytes for stdin; the pipe is closed after `last`.
    Stdin {
        /// The call.
        id: CallId,
        /// At most [`crate::frame::MAX_BLOB`] bytes.
        data: Blob,
        /// No more follows.
        last: bool,
    },
    /// End a call: SIGTERM to its processes, SIGKILL after the grace. Zero grace kills at once.
    #[serde(rename_all = "camelCase")]
    Kill {
        /// The call.
        id: CallId,
        /// Milliseconds between the two signals.
        grace_ms: u64,
    },
    /// A program that serves one request after another has answered: its processes are stopped, all that its pipes
    /// hold is sent, its private temp folder is emptied, and [`ToRuntime::Rested`] follows. The next `Stdin` lets it
    /// go on.
    Rest {
        /// The call.
        id: CallId,
    },
    /// An attempt is over: what it left in the folders that all calls share, `/tmp` and `/dev/shm`, is removed if no call
    /// runs any more, and [`ToRuntime::Cleared`] follows.
    Clear,
}

/// Where the values of Secrets are in the `sandbox` container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretPlaces {
    /// Names of environment variables.
    pub env: Vec<String>,
    /// Folders of files.
    pub folders: Vec<String>,
}

/// One mount that the executor expects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpectedMount {
    /// Mount point.
    pub path: String,
    /// Whether it must be read-only.
    pub read_only: bool,
}

/// A program to run under limits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exec {
    /// Names the call.
    pub id: CallId,
    /// Program and arguments. A program without `/` is looked up in `PATH` of `env`.
    pub argv: Vec<String>,
    /// Absolute working folder.
    pub cwd: String,
    /// Variables to set. `TMPDIR`, `TMP`, `TEMP` and `HOME` name the call's private temp folder instead.
    pub env: BTreeMap<String, String>,
    /// Names of variables to take from the executor's own environment besides its allow-list: those
    /// that the kubelet filled from Secrets which this task names.
    pub inherit_env: Vec<String>,
    /// Access to the user data, enforced by Landlock.
    pub access: FileAccess,
    /// Whether TCP connections are allowed (egress was asked for).
    pub tcp: bool,
    /// Resource bounds.
    pub limits: Limits,
    /// Bytes of each stream that are sent as `Output`; the rest is counted, and its end sent in `Ended`.
    pub output_bytes: u64,
    /// Whether the call gets an input and an output file in its private temp folder, named by
    /// [`INPUT_VARIABLE`] and [`OUTPUT_VARIABLE`]. The input file holds what stdin holds, whole, before
    /// the program starts; the output file comes back as `OutputFile` if it was written.
    #[serde(default)]
    pub io_files: bool,
}

/// Variable that names the input file of a call with `io_files`.
pub const INPUT_VARIABLE: &str = "AGENTRUN_INPUT";
/// Variable that names the file where a call with `io_files` may leave its JSON output.
pub const OUTPUT_VARIABLE: &str = "AGENTRUN_OUTPUT";
/// The most bytes of an output file that are sent; more is counted only.
pub const MAX_OUTPUT_FILE: u64 = 1 << 20;
/// The most bytes of stdin of one call (64 MiB): until they are read they lie in the sandbox's `/tmp`.
pub const MAX_STDIN: u64 = 64 << 20;

/// Which stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What the executor tells the runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum ToRuntime {
    /// The container is as expected.
    #[serde(rename_all = "camelCase")]
    Ready {
        /// Landlock ABI of the kernel; 0 when there is none.
        landlock_abi: u32,
        /// The values of the Secrets that were named, for keeping them out of what is written down.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        secrets: Vec<Blob>,
    },
    /// The container is not as expected; nothing will run.
    Refused {
        /// What was found, what is allowed.
        message: String,
    },
    /// A piece of output.
    Output {
        /// The call.
        id: CallId,
        /// Which stream.
        stream: Stream,
        /// The bytes.
        data: Blob,
    },
    /// A piece of the output file of a call with `io_files`, in order, before its `Ended`. Not sent when
    /// the file was not written.
    OutputFile {
        /// The call.
        id: CallId,
        /// The bytes, at most [`crate::frame::MAX_BLOB`].
        data: Blob,
        /// No piece follows.
        last: bool,
        /// Size of the whole file; more than was sent when it is above [`MAX_OUTPUT_FILE`].
        total: u64,
    },
    /// What a program wrote before it was told to `Rest` was sent.
    #[serde(rename_all = "camelCase")]
    Rested {
        /// The call.
        id: CallId,
        /// Largest resident size of any of its processes since it last rested, in bytes.
        peak_memory_bytes: u64,
        /// User and system time of all its processes since they were started, in milliseconds.
        cpu_ms: u64,
        /// All its processes were seen to be stopped, and its private temp folder to be empty. Else something of this
        /// request would meet the next one.
        clean: bool,
    },
    /// The answer to `Clear`.
    Cleared {
        /// The shared folders are empty. They are left alone while a call runs.
        clean: bool,
    },
    /// A call is over and nothing of it runs any more.
    Ended(Box<Ended>),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// The call.
    pub id: CallId,
    /// How its first process ended.
    pub end: ProcessEnd,
    /// Wall time in milliseconds from fork to the end of the whole tree.
    pub duration_ms: u64,
    /// Largest resident size of any process of the call, in bytes.
    pub peak_memory_bytes: u64,
    /// User and system time of all its processes, in milliseconds.
    pub cpu_ms: u64,
    /// What stdout held in all.
    pub stdout: StreamEnd,
    /// What stderr held in all.
    pub stderr: StreamEnd,
    /// Descendants that were still alive when the first process had ended, and were killed.
    pub killed_descendants: u32,
    /// No descendant was seen, twice, after the last kill.
    pub tree_empty: bool,
    /// More processes than allowed existed at once; the tree was killed for it.
    pub too_many_processes: bool,
    /// While it ran, the kernel killed a process of the sandbox because its memory was used up.
    #[serde(default)]
    pub killed_for_memory: bool,
    /// The container was being stopped when the call ended: the executor had told it to end.
    #[serde(default)]
    pub stopped: bool,
    /// The call read from stdin, but nobody had closed it yet when it was killed.
    pub blocked_on_stdin: bool,
}

impl Ended {
    /// The end of a call of which nothing ever ran, or nothing is known.
    pub fn without_work(id: CallId, end: ProcessEnd, duration_ms: u64) -> Self {
        Ended {
            id,
            end,
            duration_ms,
            peak_memory_bytes: 0,
            cpu_ms: 0,
            stdout: StreamEnd::default(),
            stderr: StreamEnd::default(),
            killed_descendants: 0,
            tree_empty: true,
            too_many_processes: false,
            killed_for_memory: false,
            stopped: false,
            blocked_on_stdin: false,
        }
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how")]
pub enum ProcessEnd {
    /// It exited.
    Exited {
        /// Exit code.
        code: i32,
    },
    /// A signal ended it.
    Signalled {
        /// Signal number.
        signal: i32,
    },
    /// It could not be started.
    NotStarted {
        /// Which step failed.
        error: StartError,
        /// What was found and what to do.
        message: String,
    },
    /// The supervisor of the call died; everything in the sandbox but the executor was killed.
    SandboxReset,
}

/// Why a program could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartError {
    /// The program, or the interpreter that its first line names, does not exist.
    NotFound,
    /// It exists but may not be executed.
    PermissionDenied,
    /// It is neither a program of this machine nor a script with a first line.
    NotExecutable,
    /// The working folder is missing.
    NoWorkingDir,
    /// A limit or a confinement layer could not be applied; nothing ran.
    NotConfined,
    /// The kernel has no process or memory left.
    NoResources,
    /// Its command line and variables are longer than a message may be; the executor never saw it.
    TooLong,
}

/// Totals of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamEnd {
    /// Bytes written in all.
    pub total: u64,
    /// The last bytes beyond `output_bytes` (64 KiB at most); empty when all was sent as `Output`.
    pub tail: Blob,
}
