//! What an agent keeps below `state` besides its evidence, where user code cannot reach it:
//!
//! - `conversation.json`: the conversation of the thread, from which its next run goes on;
//! - `runs/RUN_UID/snapshots/SUBTASK_UID-TURN.json`: what its delegates get to see of its conversation;
//! - `runs/RUN_UID/tasks/SUBTASK_UID/journal.jsonl`: all that happened in all its attempts;
//! - `runs/RUN_UID/tasks/SUBTASK_UID/session.json`: the files that its tools have seen.

use super::evidence::STATE_PREFIX;
use super::files::{FileError, beneath};
use super::{Durability, sha256_of, write};
use agentrun_protocol::executor::MAX_OUTPUT_FILE;
use agentrun_protocol::tool::Session;
use agentrun_protocol::work::{Assignment, FileRef};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The largest output of another sub-task that is read (1 MiB): no more of one is kept.
pub const MAX_OUTPUT: u64 = MAX_OUTPUT_FILE;

const MODE: u32 = 0o640;

/// A file that another sub-task of the run has left cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// It is none of this run.
    #[error("{0:?} is not below {STATE_PREFIX}runs of this run")]
    Elsewhere(String),
    /// It cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// Which.
        path: String,
        /// What the volume said.
        source: io::Error,
    },
    /// It is another one.
    #[error("{path} has digest {found}, expected {expected}")]
    Changed {
        /// Which.
        path: String,
        /// Digest that was told.
        expected: String,
        /// Digest of what is there.
        found: String,
    },
}

/// Where the files of one agent are.
#[derive(Clone, Debug)]
pub struct AgentFiles {
    state: PathBuf,
    /// The folder of the run, relative to `state`.
    run: String,
    /// UID of the sub-task.
    uid: String,
}

impl AgentFiles {
    /// Of the agent that works on `assignment`. Nothing is written yet.
    pub fn new(state: &Path, assignment: &Assignment) -> Result<AgentFiles, FileError> {
        let files = AgentFiles {
            state: state.to_owned(),
            run: format!("runs/{}", assignment.run_uid),
            uid: assignment.id.uid.clone(),
        };
        beneath(state, &files.task())?;
        Ok(files)
    }

    fn task(&self) -> String {
        format!("{}/tasks/{}", self.run, self.uid)
    }

    fn of_task(&self, name: &str) -> PathBuf {
        self.state.join(self.task()).join(name)
    }

    fn conversation(&self) -> PathBuf {
        self.state.join("conversation.json")
    }

    /// Where the journal is.
    pub fn journal(&self) -> PathBuf {
        self.of_task("journal.jsonl")
    }

    /// Keeps the conversation as it is in `turn`, for the delegates of that turn. What an earlier attempt has kept
    /// stays: a delegate may have been told its digest. Blocks.
    pub fn store_snapshot(&self, turn: u32, bytes: &[u8]) -> io::Result<FileRef> {
        let relative = format!("{}/snapshots/{}-{turn}.json", self.run, self.uid);
        let target = self.state.join(&relative);
        let kept = match read(&target, MAX_OUTPUT) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                write(&target, bytes, MODE, Durability::Node)?;
                None
            }
            kept => Some(kept?),
        };
        let bytes = kept.as_deref().unwrap_or(bytes);
        Ok(FileRef {
            path: format!("{STATE_PREFIX}{relative}"),
            bytes: bytes.len() as u64,
            sha256: sha256_of(bytes),
        })
    }

    /// A file that another sub-task of this run has left, of at most `most` bytes. Blocks.
    pub fn stored(&self, file: &FileRef, most: u64) -> Result<Vec<u8>, StoredError> {
        let path = file.path.clone();
        let inside = path.strip_prefix(STATE_PREFIX);
        let own = inside.filter(|inside| inside.starts_with(&format!("{}/", self.run)));
        let target = own.and_then(|own| beneath(&self.state, own).ok());
        let Some(target) = target else {
            return Err(StoredError::Elsewhere(path));
        };
        let bytes = match read(&target, most) {
            Ok(bytes) => bytes,
            Err(source) => return Err(StoredError::Unreadable { path, source }),
        };
        let found = sha256_of(&bytes);
        if found != file.sha256 {
            let expected = file.sha256.clone();
            return Err(StoredError::Changed {
                path,
                expected,
                found,
            });
        }
        Ok(bytes)
    }

    /// The conversation that the run before on this thread has left, of at most `most` bytes. Blocks.
    pub fn load_conversation(&self, most: u64) -> io::Result<Option<Vec<u8>>> {
        match read(&self.conversation(), most) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Keeps the conversation for the next run on this thread. Blocks.
    pub fn store_conversation(&self, bytes: &[u8]) -> io::Result<()> {
        write(&self.conversation(), bytes, MODE, Durability::Node)
    }

    /// What the tools of the attempt before had seen; nothing when that is not known. Blocks.
    pub fn session(&self) -> Session {
        let kept = read(&self.of_task("session.json"), MAX_OUTPUT).ok();
        let session = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        session.unwrap_or_else(Session::guarded)
    }

    /// Keeps what the tools have seen. Blocks.
    pub fn store_session(&self, session: &Session) -> io::Result<()> {
        let bytes = serde_json::to_vec(session)?;
        write(&self.of_task("session.json"), &bytes, MODE, Durability::Process)
    }
}

/// The regular file `path`, of at most `most` bytes.
fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("it has more than the {most} bytes that are allowed");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "agents_tests.rs"]
mod tests;
