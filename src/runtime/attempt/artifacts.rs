//! Files below `outputs` that an attempt made or changed. User code may change that folder at any time, so
//! nothing here follows a link or leaves the folder, and all is bounded.

use super::media::{HEAD, media_type};
use crate::settings::USER_DATA;
use crate::store::hash_of;
use agentrun_protocol::result::ArtifactRef;
use rustix::fs::{self, Dir, FileType, Mode, OFlags, ResolveFlags};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// The most artifacts of one attempt; the first by path are kept.
pub(super) const MAX_ARTIFACTS: usize = 256;
/// How long hashing may take; what is not hashed by then is left out, and the result says so.
pub(super) const HASH_TIME: Duration = Duration::from_secs(20);
/// The most files that a listing holds.
const MAX_LISTED: usize = 100_000;
/// The deepest folder that is listed.
const MAX_DEPTH: usize = 32;

/// What tells that a file changed. User code can set the modification time, but not the change time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The regular files below a folder, by relative path.
#[derive(Debug, Default)]
pub(super) struct Listing {
    files: BTreeMap<String, Stamp>,
}

/// What was found, and whether something was left out.
#[derive(Debug, Default)]
pub(super) struct Artifacts {
    pub(super) files: Vec<ArtifactRef>,
    pub(super) left_out: usize,
}

/// Lists `outputs`. A missing folder is an empty one.
pub(super) fn list(outputs: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let folder = match open_folder(fs::CWD, outputs) {
        Ok(folder) => folder,
        Err(rustix::io::Errno::NOENT) => return Ok(listing),
        Err(error) => return Err(error.into()),
    };
    listing.add(&folder, "", 0)?;
    Ok(listing)
}

impl Listing {
    fn add(&mut self, folder: &OwnedFd, prefix: &str, depth: usize) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            // Names that are no UTF-8 cannot stand in a result.
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            if name == "." || name == ".." || self.files.len() >= MAX_LISTED {
                continue;
            }
            // Gone meanwhile, or not ours to see: not an artifact.
            let Ok(stat) = fs::statat(folder, name, fs::AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let path = format!("{prefix}{name}");
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {
                    self.files.insert(path, Stamp::of(&stat));
                }
                FileType::Directory if depth < MAX_DEPTH => {
                    if let Ok(inner) = open_folder(folder.as_fd(), Path::new(name)) {
                        self.add(&inner, &format!("{path}/"), depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Stamp {
    // The widths of these fields differ between machines.
    #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
    fn of(stat: &fs::Stat) -> Self {
        Stamp {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime, stat.st_ctime_nsec as i64),
        }
    }
}

/// Hashes what is new or different in `outputs` since `before`, until `until`.
pub(super) fn changed(outputs: &Path, before: &Listing, until: Instant) -> io::Result<Artifacts> {
    let after = list(outputs)?;
    let mut artifacts = Artifacts::default();
    let changed = after
        .files
        .iter()
        .filter(|(path, stamp)| before.files.get(*path) != Some(*stamp));
    let root = match open_folder(fs::CWD, outputs) {
        Ok(root) => root,
        Err(_) => return Ok(artifacts),
    };
    for (path, _) in changed {
        if artifacts.files.len() >= MAX_ARTIFACTS {
            artifacts.left_out += 1;
            continue;
        }
        match artifact(&root, path, until) {
            Ok(Some(artifact)) => artifacts.files.push(artifact),
            Ok(None) => artifacts.left_out += 1,
            // Gone or replaced since it was listed.
            Err(error) => tracing::debug!(path, %error, "no artifact"),
        }
    }
    Ok(artifacts)
}

fn artifact(root: &OwnedFd, path: &str, until: Instant) -> io::Result<Option<ArtifactRef>> {
    let mut file = open_regular(root, path)?;
    let mut head = Vec::with_capacity(HEAD);
    (&mut file).take(HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    let hashed = hash_of(file, || Instant::now() < until)?;
    Ok(hashed.map(|(sha256, bytes)| ArtifactRef {
        path: format!("{USER_DATA}/outputs/{path}"),
        bytes,
        sha256,
        media_type: media_type(path, &head).to_owned(),
    }))
}

fn open_folder(parent: impl AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(parent, path, flags, Mode::empty())
}

/// Opens a regular file beneath `root` without following any link and without waiting for a pipe's writer.
pub(super) fn open_regular(root: impl AsFd, path: &str) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(fs::openat2(root, path, flags, Mode::empty(), resolve)?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
