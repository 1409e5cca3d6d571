//! Begins an attempt of an agent: from its journal where there is one.

use super::journal::append;
use crate::store::agents::{AgentFiles, StoredError};
use crate::store::calls::CallLog;
use crate::store::evidence::Evidence;
use crate::store::files::FileError;
use crate::store::journal::{Journal, Lines};
use agentrun_agent::{Agent, Entry, MAX_TRANSCRIPT, Setup, Transcript, TranscriptError};
use agentrun_core::redact::Secrets;
use agentrun_protocol::agent::AgentTerms;
use agentrun_protocol::tool::Session;
use agentrun_protocol::work::Assignment;
use std::io;
use std::path::Path;

/// An agent cannot begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error(transparent)]
    Path(#[from] FileError),
    /// The conversation of its parent.
    #[error("the parent's conversation cannot be used")]
    Snapshot(#[from] StoredError),
    #[error("the parent's conversation cannot be used")]
    Transcript(#[from] TranscriptError),
    /// What earlier attempts have written down.
    #[error("the journal of the attempts before cannot be read")]
    Journal(#[source] io::Error),
    #[error(transparent)]
    Volume(#[from] io::Error),
}

/// An agent at its begin.
pub(super) struct Opened {
    pub(super) agent: Agent,
    pub(super) journal: Journal,
    pub(super) calls: CallLog,
    pub(super) session: Session,
    pub(super) files: AgentFiles,
}

/// Takes up what earlier attempts have left, and writes down that this one has begun. Blocks.
pub(super) fn open(
    state: &Path,
    assignment: &Assignment,
    terms: &AgentTerms,
    secrets: &Secrets,
) -> Result<Opened, OpenError> {
    let files = AgentFiles::new(state, assignment)?;
    let mut lines = Lines::<Entry>::open(&files.journal()).map_err(journal)?;
    let mut setup = Setup {
        attempt: assignment.id.attempt,
        acceptance: assignment.acceptance.clone(),
        notes: assignment.notes.clone(),
        ..Setup::new(terms.clone())
    };
    // Later attempts have it from the journal.
    if lines.is_empty() {
        setup.snapshot = snapshot(&files, terms)?;
        setup.history = history(&files, terms)?;
    }
    let (agent, begin) = Agent::open(setup, &mut lines);
    let mut kept = lines.finish().map_err(journal)?;
    append(&mut kept, &begin, secrets)?;
    Ok(Opened {
        agent,
        journal: kept,
        calls: CallLog::open(&Evidence::new(state, assignment)?)?,
        session: files.session(),
        files,
    })
}

fn journal(error: io::Error) -> OpenError {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => OpenError::Journal(error),
        _ => OpenError::Volume(error),
    }
}

fn snapshot(files: &AgentFiles, terms: &AgentTerms) -> Result<Option<Transcript>, OpenError> {
    let Some(file) = &terms.snapshot else {
        return Ok(None);
    };
    let bytes = files.stored(file, MAX_TRANSCRIPT as u64)?;
    Ok(Some(Transcript::from_bytes(&bytes)?))
}

/// The conversation so far. One that cannot be used is none: the thread would be of no use for ever.
fn history(files: &AgentFiles, terms: &AgentTerms) -> Result<Option<Transcript>, OpenError> {
    if !terms.continues {
        return Ok(None);
    }
    let Some(bytes) = files.load_conversation(MAX_TRANSCRIPT as u64)? else {
        return Ok(None);
    };
    let history = Transcript::from_bytes(&bytes)
        .inspect_err(|error| tracing::warn!(%error, "the conversation of the thread begins anew"));
    Ok(history.ok())
}
