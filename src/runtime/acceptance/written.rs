//! Who wrote a file: what `file_written` criteria name is looked at before the first attempt of a sub-task begins.
//!
//! The change time counts too, which user code cannot set. Another sub-task that writes the same file on the same
//! volume at the same time cannot be told apart.

use super::look::locate;
use crate::store::evidence::Evidence;
use agentrun_core::acceptance::{Criterion, Scope, parse};
use agentrun_sandbox::resolve::{Links, ResolveError, Roots};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;

/// What tells that a file changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Stamp {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// The regular files that criteria name, as they were before the sub-task, by the path in the criterion. `None` where
/// there was none. Paths that could not be looked at are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Before(BTreeMap<String, Option<Stamp>>);

impl Before {
    /// What was there before the first attempt: from the evidence of an earlier one, or else looked at now and kept.
    /// Blocks.
    pub(crate) fn of(criteria: &[String], roots: &Roots, evidence: &Evidence) -> io::Result<Self> {
        let paths: Vec<_> = criteria
            .iter()
            .filter_map(|text| match parse(text) {
                Ok(Criterion::FileWritten { path }) => Some(path),
                _ => None,
            })
            .collect();
        if paths.is_empty() {
            return Ok(Self::default());
        }
        if let Some(known) = evidence
            .before()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        {
            return Ok(known);
        }
        let looked = paths
            .into_iter()
            .filter_map(|path| stamp(roots, &path).ok().map(|stamp| (path, stamp)));
        let before = Self(looked.collect());
        evidence.store_before(&serde_json::to_vec(&before)?)?;
        Ok(before)
    }

    /// Whether the file is new or changed since then; `None` when that is not known.
    pub(super) fn was_written(&self, roots: &Roots, path: &str) -> Option<bool> {
        let before = self.0.get(path)?;
        let now = stamp(roots, path).ok()??;
        Some(before.as_ref() != Some(&now))
    }
}

fn stamp(roots: &Roots, path: &str) -> Result<Option<Stamp>, ResolveError> {
    let stat = match roots.stat(&locate(path, Scope::Delivery)?, Links::Inside) {
        Ok(stat) => stat,
        Err(ResolveError::Missing { .. } | ResolveError::WrongKind { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| Stamp::of(&stat)))
}
