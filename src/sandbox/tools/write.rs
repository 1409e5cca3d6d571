//! `write_file`.

use super::arguments::WriteFile;
use super::encoding::{Encoding, decode};
use super::files::{MAX_WHOLE, Opened, locate, open, sha256, written};
use super::read::not_text;
use super::{Answer, Result, ToolError};
use crate::resolve::{Location, ResolveError, Roots};
use agentrun_protocol::tool::{Facts, Session};
use rustix::fs::Mode;

/// The longest text of one call (1 MiB).
const MAX_CONTENT: usize = 1 << 20;
/// Mode of a new file; an existing one keeps its own.
pub(super) const NEW: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

pub(super) fn run(arguments: &WriteFile, session: &Session, roots: &Roots) -> Result<Answer> {
    let location = locate(&arguments.path)?;
    if !location.area().is_writable() {
        return Err(ResolveError::ReadOnly {
            path: location.to_string(),
        }
        .into());
    }
    if arguments.content.len() > MAX_CONTENT {
        return Err(ToolError::TooLarge {
            path: location.to_string(),
            bytes: arguments.content.len() as u64,
            most: MAX_CONTENT as u64,
            advice: "write the first part, then add the others with append",
        });
    }
    let existing = existing(roots, &location)?;
    let created = existing.is_none();
    let data = match &existing {
        Some(existing) if arguments.append => appended(existing, &arguments.content)?,
        Some(existing) => {
            check(existing, session)?;
            arguments.content.clone().into_bytes()
        }
        None => arguments.content.clone().into_bytes(),
    };
    roots.write(&location, &data, NEW)?;
    let text = match (created, arguments.append) {
        (true, _) => format!("wrote {} bytes to the new file {location}", data.len()),
        (false, true) => format!(
            "added {} bytes to {location}, which has {} bytes now",
            arguments.content.len(),
            data.len()
        ),
        (false, false) => format!("replaced {location}, which has {} bytes now", data.len()),
    };
    answer(roots, &location, &data, text, created, 0)
}

/// What all writers answer.
pub(super) fn answer(
    roots: &Roots,
    location: &Location,
    data: &[u8],
    text: String,
    created: bool,
    replaced: u64,
) -> Result<Answer> {
    let facts = Facts::Written {
        path: location.to_string(),
        bytes: data.len() as u64,
        sha256: sha256(data),
        created,
        replaced,
    };
    let mut answer = Answer::new(text, facts);
    answer.seen = vec![written(roots, location, data)?];
    Ok(answer)
}

fn existing(roots: &Roots, location: &Location) -> Result<Option<Opened>> {
    match open(roots, location.clone()) {
        Ok(opened) => Ok(Some(opened)),
        Err(ToolError::Path(ResolveError::Missing { .. })) => Ok(None),
        Err(error) => Err(error),
    }
}

fn check(existing: &Opened, session: &Session) -> Result<()> {
    if !session.guard {
        return Ok(());
    }
    let content = if existing.bytes() <= MAX_WHOLE {
        Some(existing.whole(MAX_WHOLE, "it grows while it is read")?)
    } else {
        None
    };
    existing.check_read(session, content.as_deref())
}

/// The whole file with the text at its end, in the encoding that it has.
fn appended(existing: &Opened, content: &str) -> Result<Vec<u8>> {
    let mut bytes = existing.whole(MAX_WHOLE, "add to it with bash and >>")?;
    match Encoding::of(&bytes) {
        Encoding::Utf8 | Encoding::Utf8WithMark => bytes.extend_from_slice(content.as_bytes()),
        _ => {
            let (encoding, text) = decode(&bytes).map_err(|error| not_text(existing, &bytes, error))?;
            bytes = encoding.encode(&format!("{text}{content}"));
        }
    }
    Ok(bytes)
}
