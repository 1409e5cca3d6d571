//! What is kept of an attempt below `state`, where user code cannot reach it:
//! `runs/RUN_UID/tasks/SUBTASK_UID/ATTEMPT/{result.json, output.json, stdout, stderr, calls.jsonl}`, and beside the
//! attempts `before.json` and, of an agent, `outputs.before`.

use super::files::{FileError, beneath};
use super::{Durability, sha256_of, write};
use agentrun_protocol::executor::Stream;
use agentrun_protocol::result::AttemptResult;
use agentrun_protocol::work::{Assignment, FileRef};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// How paths below the state folder begin for everyone else.
pub const STATE_PREFIX: &str = "state/";

/// Only our own user reads evidence.
const MODE: u32 = 0o640;

/// The folder of one attempt.
#[derive(Clone, Debug)]
pub struct Evidence {
    folder: PathBuf,
    relative: String,
}

impl Evidence {
    /// The folder of `assignment` below `state`. Nothing is written yet.
    pub fn new(state: &Path, assignment: &Assignment) -> Result<Self, FileError> {
        let id = &assignment.id;
        let relative = format!("runs/{}/tasks/{}/{}", assignment.run_uid, id.uid, id.attempt);
        let folder = beneath(state, &relative)?;
        Ok(Evidence { folder, relative })
    }

    /// The same of another attempt of the sub-task.
    #[must_use]
    pub fn of_attempt(&self, attempt: i32) -> Self {
        let relative = self.relative.rsplit_once('/').map_or("", |(tasks, _)| tasks);
        Evidence {
            folder: self.folder.with_file_name(attempt.to_string()),
            relative: format!("{relative}/{attempt}"),
        }
    }

    /// The result of this attempt, if it has already ended. One that cannot be read counts as none.
    pub fn result(&self) -> Option<AttemptResult> {
        let bytes = std::fs::read(self.folder.join("result.json")).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Stores the result.
    pub fn store_result(&self, result: &AttemptResult) -> io::Result<()> {
        let bytes = serde_json::to_vec(result)?;
        write(
            &self.folder.join("result.json"),
            &bytes,
            MODE,
            Durability::Process,
        )
    }

    /// Stores an output byte for byte and names it.
    pub fn store_output(&self, bytes: &[u8]) -> io::Result<FileRef> {
        write(&self.folder.join("output.json"), bytes, MODE, Durability::Process)?;
        Ok(FileRef {
            path: format!("{STATE_PREFIX}{}/output.json", self.relative),
            bytes: bytes.len() as u64,
            sha256: sha256_of(bytes),
        })
    }

    /// What an earlier attempt kept of the time before the sub-task.
    pub(crate) fn before(&self) -> Option<Vec<u8>> {
        std::fs::read(self.before_path()).ok()
    }

    /// Keeps what was there before the sub-task, for this attempt and later ones.
    pub(crate) fn store_before(&self, bytes: &[u8]) -> io::Result<()> {
        write(&self.before_path(), bytes, MODE, Durability::Process)
    }

    /// What an earlier attempt kept of `outputs` as it was before the sub-task.
    pub(crate) fn outputs_before(&self) -> Option<Vec<u8>> {
        std::fs::read(self.outputs_before_path()).ok()
    }

    /// Keeps what `outputs` was like before the sub-task, for later attempts.
    pub(crate) fn store_outputs_before(&self, bytes: &[u8]) -> io::Result<()> {
        write(&self.outputs_before_path(), bytes, MODE, Durability::Node)
    }

    fn outputs_before_path(&self) -> PathBuf {
        self.folder.with_file_name("outputs.before")
    }

    fn before_path(&self) -> PathBuf {
        self.folder.with_file_name("before.json")
    }

    /// A new, empty log.
    pub fn log(&self, stream: Stream) -> io::Result<File> {
        std::fs::create_dir_all(&self.folder)?;
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(self.log_path(stream))
    }

    /// Where the record of its tool calls is.
    pub fn calls_path(&self) -> PathBuf {
        self.folder.join("calls.jsonl")
    }

    /// Where the log is.
    pub fn log_path(&self, stream: Stream) -> PathBuf {
        self.folder.join(match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        })
    }
}
