//! Puts files that the assignment names below a folder, fetching what is not there yet.

use super::{Durability, hash_of, sha256_of, write};
use crate::channel::{FetchError, Outbox};
use agentrun_protocol::work::FileRef;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// How a file is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Permission bits.
    pub mode: u32,
    /// What it must live through.
    pub durability: Durability,
}

/// A file cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path leaves its folder.
    #[error("{0:?} is no relative path without `..`")]
    Path(String),
    /// The gateway does not have it as it was.
    #[error("{path}")]
    Fetch {
        /// Which file.
        path: String,
        /// Why.
        source: FetchError,
    },
    /// The content is another one.
    #[error("{path} has digest {found}, expected {expected}; it changed after the run was admitted")]
    Digest {
        /// Which file.
        path: String,
        /// Digest by the assignment.
        expected: String,
        /// Digest of what came.
        found: String,
    },
    /// A skill that is a mount cannot be read.
    #[error("skill {skill} cannot be read")]
    Mounted {
        /// Which skill.
        skill: String,
        /// Why.
        source: io::Error,
    },
    /// The file of a claim or of another run that it is copied from cannot be read.
    #[error("the source of {path} cannot be read")]
    Source {
        /// Which file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// It cannot be written.
    #[error("{path} cannot be written")]
    Write {
        /// Which file.
        path: String,
        /// What the volume said.
        source: io::Error,
    },
}

/// `folder/path`, if `path` is made of plain names.
pub fn beneath(folder: &Path, path: &str) -> Result<PathBuf, FileError> {
    let plain = Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !plain {
        return Err(FileError::Path(path.to_owned()));
    }
    Ok(folder.join(path))
}

/// Makes sure that `file` is below `folder` with the size and digest that it names.
pub async fn ensure(folder: &Path, file: &FileRef, manner: Manner, outbox: &Outbox) -> Result<(), FileError> {
    let target = beneath(folder, &file.path)?;
    if has(&target, file).await {
        return Ok(());
    }
    let bytes = outbox.fetch(file).await.map_err(|source| FileError::Fetch {
        path: file.path.clone(),
        source,
    })?;
    let found = sha256_of(&bytes);
    if found != file.sha256 {
        return Err(FileError::Digest {
            path: file.path.clone(),
            expected: file.sha256.clone(),
            found,
        });
    }
    crate::blocking(move || write(&target, &bytes, manner.mode, manner.durability))
        .await
        .map_err(|source| FileError::Write {
            path: file.path.clone(),
            source,
        })
}

async fn has(target: &Path, file: &FileRef) -> bool {
    let (target, file) = (target.to_owned(), file.clone());
    crate::blocking(move || Ok(matches(&target, &file)))
        .await
        .unwrap_or(false)
}

pub(super) fn matches(target: &Path, file: &FileRef) -> bool {
    let regular = target
        .symlink_metadata()
        .is_ok_and(|data| data.is_file() && data.len() == file.bytes);
    let hash = || hash_of(File::open(target)?, || true);
    regular && matches!(hash(), Ok(Some((sha256, _))) if sha256 == file.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    // F068
    #[test]
    fn only_plain_relative_paths_are_taken() {
        let folder = Path::new("/uploads");
        assert_eq!(beneath(folder, "a/b.csv").unwrap(), Path::new("/uploads/a/b.csv"));
        for path in ["", "/etc/passwd", "../a", "a/../../b", ".", "./a"] {
            assert!(beneath(folder, path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_file_matches_by_size_and_digest() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a");
        std::fs::write(&target, "abc").unwrap();
        let file = |bytes, text: &[u8]| FileRef {
            path: "a".to_owned(),
            bytes,
            sha256: sha256_of(text),
        };
        assert!(matches(&target, &file(3, b"abc")));
        assert!(!matches(&target, &file(3, b"abd")));
        assert!(!matches(&target, &file(4, b"abc")));
        assert!(!matches(&folder.path().join("b"), &file(3, b"abc")));
    }
}
