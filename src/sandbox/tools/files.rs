//! What readers and writers share: opening by a virtual path, whole contents, and what a session knows of them.

use super::{Result, ToolError};
use crate::resolve::{Links, Location, Roots};
use agentrun_protocol::tool::{Seen, Session};
use rustix::fs::{Stat, fstat};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;

/// The largest file that is held in memory: read with its digest, edited, appended to (8 MiB).
pub(super) const MAX_WHOLE: u64 = 8 << 20;

/// A regular file, open for reading.
pub(super) struct Opened {
    pub(super) location: Location,
    pub(super) file: File,
    pub(super) stat: Stat,
}

/// Where a path leads; a relative one starts at the workspace.
pub(super) fn locate(path: &str) -> Result<Location> {
    Ok(Location::parse_from_workspace(path)?)
}

/// Opens a regular file for reading.
pub(super) fn open(roots: &Roots, location: Location) -> Result<Opened> {
    let file = roots.open_file(&location, Links::Inside)?;
    let stat = fstat(&file).map_err(|error| ToolError::system(&location, error))?;
    Ok(Opened { location, file, stat })
}

impl Opened {
    /// Size in bytes when it was opened.
    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// All of it, when it has at most `most` bytes. Grows it meanwhile, the surplus is an error too.
    pub(super) fn whole(&self, most: u64, advice: &'static str) -> Result<Vec<u8>> {
        let too_large = |bytes| ToolError::TooLarge {
            path: self.location.to_string(),
            bytes,
            most,
            advice,
        };
        if self.bytes() > most {
            return Err(too_large(self.bytes()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.bytes()).unwrap_or(0));
        (&self.file)
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| ToolError::system(&self.location, error))?;
        if bytes.len() as u64 > most {
            return Err(too_large(bytes.len() as u64));
        }
        Ok(bytes)
    }

    /// What a session remembers of it; with its content, when all of that was read.
    pub(super) fn seen(&self, content: Option<&[u8]>) -> Seen {
        seen(&self.location, &self.stat, content)
    }

    /// Refuses to change a file that the session has not read as it is now.
    pub(super) fn check_read(&self, session: &Session, content: Option<&[u8]>) -> Result<()> {
        if !session.guard {
            return Ok(());
        }
        let unread = |why| ToolError::Unread {
            path: self.location.to_string(),
            why,
        };
        let known = session
            .seen(&self.location.to_string())
            .ok_or_else(|| unread("exists and was not read yet"))?;
        let now = self.seen(content);
        let same = match (&known.sha256, &now.sha256) {
            (Some(known), Some(now)) => known == now,
            _ => (known.bytes, known.modified_ns) == (now.bytes, now.modified_ns),
        };
        if same {
            Ok(())
        } else {
            Err(unread("has changed since it was read"))
        }
    }
}

/// The same for a file that was just written.
pub(super) fn written(roots: &Roots, location: &Location, content: &[u8]) -> Result<Seen> {
    let stat = roots.stat(location, Links::Inside)?;
    Ok(seen(location, &stat, Some(content)))
}

fn seen(location: &Location, stat: &Stat, content: Option<&[u8]>) -> Seen {
    let nanoseconds = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
    Seen {
        path: location.to_string(),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ns: stat
            .st_mtime
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds),
        sha256: content.map(sha256),
    }
}

/// Lower-case hexadecimal SHA-256.
pub(super) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
