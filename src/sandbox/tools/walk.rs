//! Walks the files below a folder by several threads.
//!
//! The walk itself goes by names, and links are not followed. What a name means may change meanwhile: content is
//! only ever read through [`Start::open`], which opens beneath the folder where the walk began.

use super::Result;
use super::files::locate;
use crate::resolve::{Area, Links, Location, ResolveError, Roots, beneath};
use ignore::{DirEntry, WalkBuilder, WalkState};
use rustix::fs::{FileType, Mode, OFlags, Stat, fstat};
use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a walk may take.
const TIME: Duration = Duration::from_secs(30);
/// The most entries that are looked at.
const MAX_ENTRIES: u64 = 1_000_000;
/// The deepest folder.
const MAX_DEPTH: usize = 128;
/// More threads wait for one disk.
const MAX_THREADS: usize = 4;

/// Files that say what a walk leaves out, in each folder.
const FILTERS: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];
/// The longest of them that is read (64 KiB).
const MAX_FILTER: u64 = 64 * 1024;

/// The folder that holds all of a run's files.
const USER_DATA: &str = "/mnt/user-data";
/// The folder that holds all skills.
const SKILLS: &str = "/mnt/skills";

/// Where a walk begins: a folder, or one file.
pub(super) struct Start {
    location: Location,
    fd: OwnedFd,
    stat: Stat,
    /// As this process sees it.
    path: PathBuf,
}

/// What a path names: one place, or all areas of a folder that has several.
pub(super) fn locations(path: Option<&str>, roots: &Roots) -> Result<Vec<Location>> {
    let path = path.unwrap_or(".");
    let areas: Vec<Area> = match path.trim_end_matches('/') {
        USER_DATA => vec![Area::Uploads, Area::Workspace, Area::Outputs],
        SKILLS => roots.skills().into_iter().map(Area::Skill).collect(),
        _ => return Ok(vec![locate(path)?]),
    };
    let locations = areas.into_iter().map(|area| Location::in_area(area, ""));
    Ok(locations.collect::<std::result::Result<_, _>>()?)
}

/// Opens what a path names. Areas that are not there are left out.
pub(super) fn starts(path: Option<&str>, roots: &Roots) -> Result<Vec<Start>> {
    let locations = locations(path, roots)?;
    if let [location] = locations.as_slice() {
        return Ok(vec![Start::open_at(roots, location)?]);
    }
    Ok(locations
        .iter()
        .filter_map(|location| Start::open_at(roots, location).ok())
        .collect())
}

impl Start {
    fn open_at(roots: &Roots, location: &Location) -> Result<Start> {
        let system = |error: rustix::io::Errno| ResolveError::System {
            path: location.to_string(),
            source: error.into(),
        };
        let fd = roots.open(location, OFlags::RDONLY, Mode::empty(), Links::Inside)?;
        let stat = fstat(&fd).map_err(system)?;
        let path =
            rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new()).map_err(system)?;
        Ok(Start {
            location: location.clone(),
            fd,
            stat,
            path: path_of(path.into_bytes()),
        })
    }

    /// The file itself, when it is one and no folder.
    pub(super) fn as_file(&self) -> Option<std::io::Result<File>> {
        match FileType::from_raw_mode(self.stat.st_mode) {
            FileType::Directory => None,
            FileType::RegularFile => Some(self.fd.try_clone().map(File::from)),
            _ => Some(Err(std::io::Error::other("it is neither a file nor a folder"))),
        }
    }

    /// Opens a regular file below. `None` when it is something else by now, or not to be read.
    pub(super) fn open(&self, relative: &Path) -> Option<(File, u64)> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = beneath(&self.fd, relative, flags, Mode::empty(), Links::Refuse).ok()?;
        let stat = fstat(&fd).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| (File::from(fd), u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Virtual path of what is below, on one line.
    pub(super) fn shown(&self, relative: &Path) -> String {
        let base = self.location.to_string();
        if relative.as_os_str().is_empty() {
            return super::names::shown(&base);
        }
        format!(
            "{}/{}",
            super::names::shown(&base),
            super::names::shown_path(relative)
        )
    }

    /// Shows everything below to visitors, one for each thread, in any order, until one says that this is enough.
    /// Returns whether all was seen, or a visitor ended it.
    pub(super) fn walk<V>(&self, include_ignored: bool, visitor: impl Fn() -> V) -> bool
    where
        V: FnMut(&Path, &DirEntry) -> WalkState + Send,
    {
        let filters = !include_ignored && !self.path.ancestors().any(has_odd_filter);
        let complete = Arc::new(AtomicBool::new(true));
        let left_out = Arc::clone(&complete);
        let walk = WalkBuilder::new(&self.path)
            .hidden(false)
            .ignore(filters)
            .git_ignore(filters)
            .git_exclude(filters)
            .parents(filters)
            .git_global(false)
            .require_git(false)
            .follow_links(false)
            .max_depth(Some(MAX_DEPTH))
            .threads(threads())
            .filter_entry(move |entry| {
                let is_below = entry.depth() > 0;
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                if is_below && is_folder && filters && has_odd_filter(entry.path()) {
                    left_out.store(false, Ordering::Relaxed);
                    return false;
                }
                !is_below || entry.file_name() != ".git"
            })
            .build_parallel();
        let until = Instant::now() + TIME;
        let seen = AtomicU64::new(0);
        let (seen, complete_yet, root) = (&seen, &*complete, &self.path);
        walk.run(|| {
            let mut visit = visitor();
            Box::new(move |entry| {
                // Gone, or not ours to see.
                let Ok(entry) = entry else {
                    return WalkState::Continue;
                };
                if seen.fetch_add(1, Ordering::Relaxed) > MAX_ENTRIES || Instant::now() > until {
                    complete_yet.store(false, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                match entry.path().strip_prefix(root) {
                    Ok(relative) if entry.depth() > 0 => visit(relative, &entry),
                    _ => WalkState::Continue,
                }
            })
        });
        complete.load(Ordering::Relaxed)
    }
}

/// Whether a folder has a file of [`FILTERS`] that must not be read: a pipe would never end, and what a huge one says
/// would take all memory.
fn has_odd_filter(folder: &Path) -> bool {
    let found = FILTERS
        .iter()
        .filter_map(|name| std::fs::metadata(folder.join(name)).ok());
    found
        .into_iter()
        .any(|file| !file.is_file() || file.len() > MAX_FILTER)
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt as _;
    std::ffi::OsString::from_vec(bytes).into()
}

fn threads() -> usize {
    rustix::thread::sched_getaffinity(None)
        .map_or(1, |set| set.count() as usize)
        .clamp(1, MAX_THREADS)
}
