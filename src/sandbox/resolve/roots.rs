//! Opens locations.

use super::location::names_of;
use super::{Area, Location, ResolveError};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat2, readlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The kernel's own bound of links on one way.
const MAX_LINKS: usize = 40;
/// How long one way is tried. `openat2` gives up with `EAGAIN` at every `..` when anything was renamed meanwhile, on
/// whatever disk and by whomever: the kernel counts all renames of the machine together. Beside three processes that do
/// nothing else, two tries in a hundred fail.
const RENAMED_TIME: Duration = Duration::from_secs(2);

/// Whether links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Those that stay in their area.
    Inside,
    /// None.
    Refuse,
}

/// Where the areas lie in the file system of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    user_data: PathBuf,
    skills: PathBuf,
}

impl Default for Roots {
    /// As they are mounted in a sandbox.
    fn default() -> Self {
        Roots::new("/mnt/user-data", "/mnt/skills")
    }
}

impl Roots {
    /// `user_data` holds `uploads`, `workspace` and `outputs`; `skills` holds one folder per skill.
    pub fn new(user_data: impl Into<PathBuf>, skills: impl Into<PathBuf>) -> Roots {
        Roots {
            user_data: user_data.into(),
            skills: skills.into(),
        }
    }

    /// The folder of an area, as this process sees it; never for a message to anybody.
    pub fn folder(&self, area: &Area) -> PathBuf {
        match area {
            Area::Uploads => self.user_data.join("uploads"),
            Area::Workspace => self.user_data.join("workspace"),
            Area::Outputs => self.user_data.join("outputs"),
            Area::Skill(name) => self.skills.join(name),
        }
    }

    /// Names of the skills that are there, sorted; those that are no UTF-8 cannot be named.
    pub fn skills(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.skills).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The virtual path of a path of this process, when it lies in an area.
    pub fn virtual_path(&self, path: &Path) -> Option<String> {
        let below = |root: &Path, shown: &str| {
            let names = path.strip_prefix(root).ok()?.to_str()?;
            let shown = format!("{shown}/{names}");
            Location::parse(&shown).ok().map(|location| location.to_string())
        };
        below(&self.user_data, "/mnt/user-data").or_else(|| below(&self.skills, "/mnt/skills"))
    }

    /// The folders that hold all areas, as this process sees them.
    pub(crate) fn folders(&self) -> [&Path; 2] {
        [&self.user_data, &self.skills]
    }

    /// Opens whatever lies there. `O_CLOEXEC` and `O_NOCTTY` are added, and `O_NONBLOCK`, so that no FIFO
    /// that user code planted holds up its reader.
    pub fn open(
        &self,
        location: &Location,
        flags: OFlags,
        mode: Mode,
        links: Links,
    ) -> Result<OwnedFd, ResolveError> {
        let fail = |error| ResolveError::from_errno(error, location.to_string(), location.area().to_string());
        let root = self.root(location.area()).map_err(fail)?;
        let mut flags = flags | OFlags::CLOEXEC;
        // `openat2` refuses the others where nothing is opened for reading or writing.
        if !flags.contains(OFlags::PATH) {
            flags |= OFlags::NOCTTY | OFlags::NONBLOCK;
        }
        let relative = location.relative();
        let first = beneath(&root, relative.as_str(), flags, mode, links);
        if first.as_ref().err() != Some(&Errno::XDEV) {
            return first.map_err(fail);
        }
        // The kernel refuses absolute links, also those that stay inside.
        let plain = without_links(location, &root).map_err(fail)?;
        beneath(&root, plain.as_str(), flags, mode, links).map_err(fail)
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, location: &Location, links: Links) -> Result<File, ResolveError> {
        let file = self.open(location, OFlags::RDONLY, Mode::empty(), links)?;
        expect(location, &file, FileType::RegularFile)?;
        Ok(File::from(file))
    }

    /// Opens a folder, to list it.
    pub fn open_folder(&self, location: &Location, links: Links) -> Result<OwnedFd, ResolveError> {
        let folder = self.open(location, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty(), links)?;
        expect(location, &folder, FileType::Directory)?;
        Ok(folder)
    }

    /// Describes what lies there, without opening it for reading.
    pub fn stat(&self, location: &Location, links: Links) -> Result<Stat, ResolveError> {
        let fd = self.open(location, OFlags::PATH, Mode::empty(), links)?;
        fstat(&fd).map_err(|error| ResolveError::System {
            path: location.to_string(),
            source: error.into(),
        })
    }

    /// The folder of an area. It is ours or the operator's; only what is below is user code's.
    fn root(&self, area: &Area) -> Result<OwnedFd, Errno> {
        open(
            self.folder(area),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
    }
}

fn expect(location: &Location, fd: &OwnedFd, expected: FileType) -> Result<(), ResolveError> {
    let stat = fstat(fd).map_err(|error| ResolveError::System {
        path: location.to_string(),
        source: error.into(),
    })?;
    let found = FileType::from_raw_mode(stat.st_mode);
    if found == expected {
        return Ok(());
    }
    Err(ResolveError::WrongKind {
        path: location.to_string(),
        found: kind(found),
        expected: kind(expected),
    })
}

/// Writes out every link on the way, left to right, as long as each stays in the area. The result is
/// only a proposal: it is opened beneath the same root.
fn without_links(location: &Location, root: &OwnedFd) -> Result<String, Errno> {
    let mut names = names_of(&location.relative());
    let mut done = 0;
    let mut links = 0;
    while done < names.len() {
        let prefix = names[..=done].join("/");
        let Some(target) = link_target(root, &prefix)? else {
            done += 1;
            continue;
        };
        links += 1;
        if links > MAX_LINKS {
            return Err(Errno::LOOP);
        }
        let rest = names.split_off(done + 1);
        names.pop();
        if target.starts_with('/') {
            names = location.area().way_to(&target).ok_or(Errno::XDEV)?;
            done = 0;
        } else {
            names.extend(names_of(&target));
        }
        names.extend(rest);
    }
    Ok(if names.is_empty() {
        ".".to_owned()
    } else {
        names.join("/")
    })
}

/// The only call of `openat2` here: nothing outside of the folder `root` is ever opened.
pub(crate) fn beneath(
    root: &OwnedFd,
    relative: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
    links: Links,
) -> Result<OwnedFd, Errno> {
    let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    resolve.set(ResolveFlags::NO_SYMLINKS, links == Links::Refuse);
    until_still(RENAMED_TIME, || openat2(root, relative, flags, mode, resolve))
}

/// Tries again what renames disturb, for as long as `within`; then its error is `EAGAIN`.
pub(super) fn until_still<T>(
    within: Duration,
    mut attempt: impl FnMut() -> Result<T, Errno>,
) -> Result<T, Errno> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if began.elapsed() < within => std::thread::yield_now(),
            result => return result,
        }
    }
}

/// Where the last name of the way points, if that is a link.
fn link_target(root: &OwnedFd, relative: &str) -> Result<Option<String>, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = beneath(root, relative, flags, Mode::empty(), Links::Inside)?;
    if FileType::from_raw_mode(fstat(&fd)?.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    let target = readlinkat(&fd, "", Vec::new())?;
    target.into_string().map(Some).map_err(|_| Errno::ILSEQ)
}

fn kind(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "file",
        FileType::Directory => "folder",
        FileType::Symlink => "link",
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "device",
    }
}
