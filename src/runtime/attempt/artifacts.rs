//! Files below `outputs` that an attempt made or changed. User code may change that folder at any time, so
//! nothing here follows a link or leaves the folder, and all is bounded.

use crate::store::evidence::Evidence;
use crate::store::hash_of;
use agentrun_protocol::result::ArtifactRef;
use agentrun_sandbox::resolve::{Area, Links, Location, ResolveError, Roots};
use agentrun_sandbox::tools::media::{HEAD, media_type};
use rustix::fs::{self, Dir, FileType, Mode, OFlags};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeSet, HashSet};
use std::io::{self, Read as _, Seek as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The most artifacts of one attempt; the first by path are kept.
pub(super) const MAX_ARTIFACTS: usize = 256;
/// How long hashing may take; what is not hashed by then is left out, and the result says so.
pub(super) const HASH_TIME: Duration = Duration::from_secs(20);
/// The most entries of the folder, files or not, that are looked at.
const MAX_ENTRIES: usize = 100_000;
/// The deepest folder that is looked at.
const MAX_DEPTH: usize = 32;
/// The longest virtual path of an artifact, in bytes as JSON writes it. An object holds 1,024 characters, and a control
/// character takes six bytes: all paths of a result have to fit one frame.
const MAX_PATH: usize = 1024;

/// How folders are opened: a link in the place of one is none.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// What tells that a file changed. User code can set the modification time, but not the change time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

/// Stands for a file's path and stamp: the first half of their SHA-256.
type Mark = [u8; MARK];
const MARK: usize = 16;

/// The regular files below a folder, each as its mark: user code chooses how many and how long the paths are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    known: HashSet<Mark>,
}

/// What was found, and whether something was left out.
#[derive(Debug)]
pub(super) struct Artifacts {
    pub(super) files: Vec<ArtifactRef>,
    pub(super) left_out: usize,
    /// Time and bounds were enough to look at every name.
    pub(super) whole: bool,
}

impl Default for Artifacts {
    fn default() -> Self {
        Artifacts {
            files: Vec::new(),
            left_out: 0,
            whole: true,
        }
    }
}

impl Artifacts {
    /// The time was over before anything was found.
    pub(super) fn unseen() -> Self {
        Artifacts {
            whole: false,
            ..Artifacts::default()
        }
    }
}

/// Lists `outputs`. A missing folder is an empty one.
pub(super) fn list(roots: &Roots) -> io::Result<Listing> {
    let mut listing = Listing::default();
    // What is beyond the bound counts as new, should the walk afterwards come to it.
    let _ = walk(roots, &mut |path, stamp| {
        listing.known.insert(stamp.mark(path));
        ControlFlow::Continue(())
    })?;
    Ok(listing)
}

/// Lists `outputs` as it was before the first attempt of an agent: a later attempt goes on with the same work, and what
/// the one before has made belongs to it.
pub(super) fn list_before_first(roots: &Roots, evidence: &Evidence) -> io::Result<Listing> {
    if let Some(kept) = evidence.outputs_before() {
        return Ok(Listing::from_bytes(&kept));
    }
    let listing = list(roots)?;
    evidence.store_outputs_before(&listing.to_bytes())?;
    Ok(listing)
}

/// Takes a path below `outputs`, and says whether to go on.
type See<'a> = &'a mut dyn FnMut(&str, &Stamp) -> ControlFlow<()>;

impl Listing {
    fn has(&self, path: &str, stamp: &Stamp) -> bool {
        self.known.contains(&stamp.mark(path))
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.known.iter().flatten().copied().collect()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let (marks, _) = bytes.as_chunks::<MARK>();
        Self {
            known: marks.iter().copied().collect(),
        }
    }
}

/// Shows each regular file of `outputs` to `see`, by its relative path, until that has seen enough.
fn walk(roots: &Roots, see: See<'_>) -> io::Result<ControlFlow<()>> {
    let mut left = MAX_ENTRIES;
    match fs::open(roots.folder(&Area::Outputs), FOLDER, Mode::empty()) {
        Ok(folder) => walk_folder(&folder, "", 0, &mut left, see),
        Err(rustix::io::Errno::NOENT) => Ok(ControlFlow::Continue(())),
        Err(error) => Err(error.into()),
    }
}

fn walk_folder(
    folder: &OwnedFd,
    prefix: &str,
    depth: usize,
    left: &mut usize,
    see: See<'_>,
) -> io::Result<ControlFlow<()>> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if *left == 0 {
            return Ok(ControlFlow::Break(()));
        }
        *left -= 1;
        // Names that are no UTF-8 cannot stand in a result.
        let Ok(name) = name.to_str() else {
            continue;
        };
        // Gone meanwhile, or not ours to see: not an artifact.
        let Ok(stat) = fs::statat(folder, name, fs::AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        let path = format!("{prefix}{name}");
        let seen = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => see(&path, &Stamp::of(&stat)),
            FileType::Directory if depth < MAX_DEPTH => {
                match fs::openat(folder, name, FOLDER, Mode::empty()) {
                    Ok(inner) => walk_folder(&inner, &format!("{path}/"), depth + 1, left, see)?,
                    Err(_) => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        };
        if seen.is_break() {
            return Ok(seen);
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl Stamp {
    fn mark(&self, path: &str) -> Mark {
        let mut hasher = Sha256::new();
        hasher.update(self.inode.to_be_bytes());
        hasher.update(self.size.to_be_bytes());
        for (seconds, nanoseconds) in [self.modified, self.changed] {
            hasher.update(seconds.to_be_bytes());
            hasher.update(nanoseconds.to_be_bytes());
        }
        hasher.update(path);
        let digest = hasher.finalize();
        std::array::from_fn(|place| digest[place])
    }

    fn of(stat: &fs::Stat) -> Self {
        Stamp {
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// Hashes what is new or different in `outputs` since `before`, until `until`.
pub(super) fn changed(roots: &Roots, before: &Listing, until: Instant) -> io::Result<Artifacts> {
    let mut artifacts = Artifacts::default();
    let mut first = BTreeSet::new();
    let end = walk(roots, &mut |path, stamp| {
        if Instant::now() >= until {
            return ControlFlow::Break(());
        }
        if before.has(path, stamp) {
            return ControlFlow::Continue(());
        }
        if !fits(path) {
            artifacts.left_out += 1;
            return ControlFlow::Continue(());
        }
        first.insert(path.to_owned());
        if first.len() > MAX_ARTIFACTS {
            first.pop_last();
            artifacts.left_out += 1;
        }
        ControlFlow::Continue(())
    })?;
    artifacts.whole = end.is_continue();
    for path in first {
        match artifact(roots, &path, until) {
            Ok(artifact) => artifacts.files.extend(artifact),
            Err(error) => {
                tracing::debug!(path, %error, "no artifact");
                artifacts.left_out += 1;
            }
        }
    }
    Ok(artifacts)
}

/// Whether the virtual path of a file can stand in a result.
fn fits(path: &str) -> bool {
    let quotes = 2;
    let written = Value::from(format!("{}/{path}", Area::Outputs)).to_string();
    written.len() - quotes <= MAX_PATH
}

/// Describes a file; nothing when it is gone or was replaced since it was listed.
fn artifact(roots: &Roots, path: &str, until: Instant) -> io::Result<Option<ArtifactRef>> {
    let in_time = || Instant::now() < until;
    // Opening alone may take long.
    if !in_time() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let location = Location::in_area(Area::Outputs, path).map_err(io::Error::other)?;
    let opened = roots.open_file(&location, Links::Refuse);
    let is_gone = |error: &ResolveError| {
        use ResolveError::{Leaves, Missing, WrongKind};
        matches!(error, Missing { .. } | WrongKind { .. } | Leaves { .. })
    };
    if opened.as_ref().is_err_and(is_gone) {
        return Ok(None);
    }
    let mut file = opened.map_err(io::Error::other)?;
    let mut head = Vec::with_capacity(HEAD);
    (&mut file).take(HEAD as u64).read_to_end(&mut head)?;
    file.rewind()?;
    let (sha256, bytes) = hash_of(file, in_time)?.ok_or(io::ErrorKind::TimedOut)?;
    Ok(Some(ArtifactRef {
        path: location.to_string(),
        bytes,
        sha256,
        media_type: media_type(path, &head).to_owned(),
    }))
}

#[cfg(test)]
#[path = "artifacts_tests.rs"]
mod tests;
