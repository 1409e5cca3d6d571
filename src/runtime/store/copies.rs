//! Files that are copied below `uploads` from claims which are mounted read-only beside the user data.
//!
//! A run sees one content of each file for its whole life. Where it was not known at admission, the first sub-task to
//! copy the file writes its digest down below `state`, and every further one is held to it.

use super::files::{FileError, beneath};
use super::{Durability, write};
use agentrun_protocol::work::{FileCopy, FileRef};
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const BLOCK: usize = 64 * 1024;

/// What a copy is held to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    bytes: u64,
    sha256: String,
}

/// Folders that copies touch.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Holds one folder for each mounted source.
    pub sources: &'a Path,
    /// Where copies go.
    pub uploads: &'a Path,
    /// The folder of the run below `state`.
    pub run: &'a Path,
}

/// Makes sure that the copy is there with the content that the run is held to. Blocks.
pub fn ensure(places: &Places<'_>, copy: &FileCopy) -> Result<(), FileError> {
    let target = beneath(places.uploads, &copy.path)?;
    let record = places.run.join("files").join(record_name(&copy.path));
    let known = match (&copy.sha256, copy.bytes) {
        (Some(sha256), Some(bytes)) => Some(Known {
            bytes,
            sha256: sha256.clone(),
        }),
        _ => read_record(&record).map_err(|source| written(copy, source))?,
    };
    if let Some(known) = &known
        && is_there(&target, known)
    {
        return Ok(());
    }
    let source = source(places.sources, copy).map_err(|source| FileError::Source {
        path: copy.path.clone(),
        source,
    })?;
    let folder = target.parent().unwrap_or(places.uploads);
    fs::create_dir_all(folder).map_err(|source| written(copy, source))?;
    let random = RandomState::new().build_hasher().finish();
    let temporary = folder.join(format!(".copy.{random:016x}.tmp"));
    let copied = fill(source, &temporary).map_err(|source| written(copy, source));
    let kept = copied.and_then(|found| {
        let expected = match known {
            Some(known) => known,
            None => first(&record, &found).map_err(|source| written(copy, source))?,
        };
        if found != expected {
            return Err(FileError::Digest {
                path: copy.path.clone(),
                expected: expected.sha256,
                found: found.sha256,
            });
        }
        fs::rename(&temporary, &target).map_err(|source| written(copy, source))
    });
    if kept.is_err() {
        // The first error is the one that counts.
        let _ = fs::remove_file(&temporary);
    }
    kept
}

fn written(copy: &FileCopy, source: io::Error) -> FileError {
    FileError::Write {
        path: copy.path.clone(),
        source,
    }
}

/// A path as one name of bounded length.
fn record_name(path: &str) -> String {
    format!("{}.json", super::sha256_of(path.as_bytes()))
}

fn read_record(record: &Path) -> io::Result<Option<Known>> {
    match fs::read(record) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes the record unless another sub-task was first. Gives what stands there then.
fn first(record: &Path, found: &Known) -> io::Result<Known> {
    let random = RandomState::new().build_hasher().finish();
    let draft = record.with_extension(format!("{random:016x}.tmp"));
    write(&draft, &serde_json::to_vec(found)?, 0o640, Durability::Node)?;
    // A link is made only if nothing is there, and what it names is whole.
    let linked = fs::hard_link(&draft, record);
    fs::remove_file(&draft)?;
    match linked {
        Ok(()) => Ok(found.clone()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read_record(record)?.ok_or_else(|| io::Error::other("the record of the file is gone"))
        }
        Err(error) => Err(error),
    }
}

fn is_there(target: &Path, known: &Known) -> bool {
    let file = FileRef {
        path: String::new(),
        bytes: known.bytes,
        sha256: known.sha256.clone(),
    };
    super::files::matches(target, &file)
}

/// Opens a regular file beneath its mount; user code of another run may have put links there.
fn source(sources: &Path, copy: &FileCopy) -> io::Result<File> {
    let folder = beneath(sources, &copy.folder).map_err(io::Error::other)?;
    let root = open(
        &folder,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(openat2(root, &copy.from, flags, Mode::empty(), resolve)?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    Ok(file)
}

fn fill(mut source: File, target: &Path) -> io::Result<Known> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(target)?;
    let (mut hasher, mut block, mut bytes) = (Sha256::new(), vec![0; BLOCK], 0);
    loop {
        let read = source.read(&mut block)?;
        if read == 0 {
            break;
        }
        hasher.update(&block[..read]);
        file.write_all(&block[..read])?;
        bytes += read as u64;
    }
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.sync_all()?;
    Ok(Known {
        bytes,
        sha256: hex::encode(hasher.finalize()),
    })
}

#[cfg(test)]
#[path = "copies_tests.rs"]
mod tests;
