//! The JSON on the work's stdin.

use crate::executor::{Lost, Stdin};
use crate::settings::{Folders, USER_DATA};
use crate::store::evidence::STATE_PREFIX;
use crate::store::files::{FileError, beneath};
use crate::store::hash_of;
use agentrun_protocol::executor::MAX_STDIN;
use agentrun_protocol::work::{FileRef, Input, Work};
use agentrun_sandbox::resolve::{Area, Links, Location, ResolveError};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;

/// Bytes of one piece of stdin.
const PIECE: usize = 256 * 1024;

/// The input cannot be given.
#[derive(Debug, thiserror::Error)]
pub(super) enum InputError {
    #[error("input {0:?} is not below {USER_DATA}/uploads, /workspace or /outputs")]
    Elsewhere(String),
    #[error("input {path} cannot be read")]
    Unreadable { path: String, source: io::Error },
    #[error(
        "input {path} has {found} bytes, at most {MAX_STDIN} are allowed; let the work read the file itself"
    )]
    TooLarge { path: String, found: u64 },
    #[error("input {path} has digest {found}, expected {expected}")]
    Changed {
        path: String,
        expected: String,
        found: String,
    },
    #[error(transparent)]
    Path(#[from] FileError),
    #[error("the input cannot be opened")]
    Resolve(#[from] ResolveError),
    #[error("the input cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// Where the bytes come from.
#[derive(Debug)]
pub(super) enum Source {
    Bytes(Vec<u8>),
    File(File),
}

/// Opens the input of `work`. Blocks.
pub(super) fn open(work: &Work, input: Option<&Input>, folders: &Folders) -> Result<Source, InputError> {
    match (input, work) {
        (None, Work::Function { .. }) => Ok(Source::Bytes(b"null".to_vec())),
        (None, Work::Command { .. } | Work::Agent(_)) => Ok(Source::Bytes(Vec::new())),
        (Some(Input::Inline { value }), _) => Ok(Source::Bytes(serde_json::to_vec(value)?)),
        (Some(Input::File { path }), _) => user_file(path, folders).map(Source::File),
        (Some(Input::Stored { file }), _) => stored(file, &folders.state).map(Source::File),
    }
}

fn user_file(path: &str, folders: &Folders) -> Result<File, InputError> {
    let location = Location::parse(path)?;
    if matches!(location.area(), Area::Skill(_)) {
        return Err(InputError::Elsewhere(path.to_owned()));
    }
    bounded(path, folders.roots().open_file(&location, Links::Inside)?)
}

fn stored(file: &FileRef, state: &Path) -> Result<File, InputError> {
    let path = file.path.as_str();
    let inside = path
        .strip_prefix(STATE_PREFIX)
        .ok_or_else(|| InputError::Elsewhere(path.to_owned()))?;
    let target = beneath(state, inside)?;
    let mut opened = bounded(
        path,
        File::open(target).map_err(|source| unreadable(path, source))?,
    )?;
    let hash = hash_of(&opened, || true).map_err(|source| unreadable(path, source))?;
    let found = hash.map(|(sha256, _)| sha256).unwrap_or_default();
    if found != file.sha256 {
        return Err(InputError::Changed {
            path: path.to_owned(),
            expected: file.sha256.clone(),
            found,
        });
    }
    opened.rewind().map_err(|source| unreadable(path, source))?;
    Ok(opened)
}

fn bounded(path: &str, file: File) -> Result<File, InputError> {
    let found = file.metadata().map_err(|source| unreadable(path, source))?.len();
    if found > MAX_STDIN {
        let path = path.to_owned();
        return Err(InputError::TooLarge { path, found });
    }
    Ok(file)
}

fn unreadable(path: &str, source: io::Error) -> InputError {
    InputError::Unreadable {
        path: path.to_owned(),
        source,
    }
}

/// Writes all of `source` to `stdin` and closes it.
pub(super) async fn feed(stdin: Stdin, source: Source) -> Result<(), Lost> {
    let mut pieces = Pieces(source);
    loop {
        let piece = pieces.next().await.unwrap_or_default();
        let last = piece.len() < PIECE;
        stdin.write(piece, last).await?;
        if last {
            return Ok(());
        }
    }
}

/// Writes all of `source` to `stdin` as one line, which stays open. Returns whether all of it could be read.
pub(super) async fn feed_line(stdin: Stdin, source: Source) -> Result<bool, Lost> {
    let mut pieces = Pieces(source);
    loop {
        let Some(mut piece) = pieces.next().await else {
            return Ok(false);
        };
        let last = piece.len() < PIECE;
        // In JSON a line break is white space between values, and nothing else.
        for byte in piece.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        piece.extend(last.then_some(b'\n'));
        stdin.write(piece, false).await?;
        if last {
            return Ok(true);
        }
    }
}

/// A source in pieces of [`PIECE`] bytes; the last one is shorter.
struct Pieces(Source);

impl Pieces {
    /// The next piece; `None` when it cannot be read.
    async fn next(&mut self) -> Option<Vec<u8>> {
        let file = match &mut self.0 {
            Source::Bytes(bytes) => {
                let rest = bytes.split_off(bytes.len().min(PIECE));
                return Some(std::mem::replace(bytes, rest));
            }
            Source::File(file) => file.try_clone(),
        };
        let piece = crate::blocking(move || {
            let mut piece = Vec::with_capacity(PIECE);
            file?.take(PIECE as u64).read_to_end(&mut piece)?;
            Ok(piece)
        });
        let piece = piece.await;
        piece
            .inspect_err(|error| tracing::warn!(%error, "the input broke off"))
            .ok()
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
