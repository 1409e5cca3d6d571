//! Writes whole files: nobody ever sees half of one.

use super::roots::{Links, Roots};
use super::{Location, ResolveError};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fchmod, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Folders that are made on the way.
const FOLDER_MODE: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::ROTH).union(Mode::XOTH);

/// Permissions of a file, without the bits that give its user's rights to others.
const PERMISSIONS: Mode = Mode::RWXU.union(Mode::RWXG).union(Mode::RWXO);

impl Roots {
    /// Writes a file in an area that tools may write, see [`Roots::replace`].
    pub fn write(&self, location: &Location, data: &[u8], mode: Mode) -> Result<(), ResolveError> {
        if !location.area().is_writable() {
            return Err(ResolveError::ReadOnly {
                path: location.to_string(),
            });
        }
        self.replace(location, data, mode)
    }

    /// Puts a file in its place by a temporary name, `fsync` and `rename`, whatever area it is in; missing
    /// folders are made. Safe to do by several at once. A link or folder in its place is refused. A new file
    /// gets `mode`, one that is there keeps its own; other names of it (hard links) keep the old content.
    pub fn replace(&self, location: &Location, data: &[u8], mode: Mode) -> Result<(), ResolveError> {
        let folder_itself = || ResolveError::WrongKind {
            path: location.to_string(),
            found: "folder",
            expected: "file",
        };
        let (parent, name) = location.split_last().ok_or_else(folder_itself)?;
        let folder = self.make_folder(&parent)?;
        let kept = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Some(Mode::from_raw_mode(stat.st_mode) & PERMISSIONS),
                FileType::Directory => return Err(folder_itself()),
                _ => {
                    let path = location.to_string();
                    return Err(ResolveError::WrongKind {
                        path,
                        found: "link or special file",
                        expected: "file",
                    });
                }
            },
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed(location, error.into())),
        };
        let temporary = temporary_name().map_err(|error| failed(location, error.into()))?;
        let access = Access { new: mode, kept };
        write_and_rename(&folder, &temporary, name, data, &access).map_err(|error| {
            let _ = unlinkat(&folder, temporary.as_str(), AtFlags::empty());
            failed(location, error)
        })
    }

    /// Opens a folder, making it and those above it when they are missing.
    fn make_folder(&self, location: &Location) -> Result<OwnedFd, ResolveError> {
        let missing = match self.open_folder(location, Links::Inside) {
            Err(ResolveError::Missing { path }) => ResolveError::Missing { path },
            result => return result,
        };
        let Some((parent, name)) = location.split_last() else {
            return Err(missing);
        };
        let parent = self.make_folder(&parent)?;
        match mkdirat(&parent, name, FOLDER_MODE) {
            Ok(()) | Err(Errno::EXIST) => self.open_folder(location, Links::Inside),
            Err(error) => Err(failed(location, error.into())),
        }
    }
}

/// One that nobody can guess, and that no killed writer has left.
fn temporary_name() -> rustix::io::Result<String> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    Ok(format!(".{:016x}.new", u64::from_ne_bytes(random)))
}

/// Who may do what with a file.
struct Access {
    /// When it is made; the process's mask applies.
    new: Mode,
    /// As it was.
    kept: Option<Mode>,
}

fn write_and_rename(
    folder: &OwnedFd,
    temporary: &str,
    name: &str,
    data: &[u8],
    access: &Access,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, temporary, flags, access.new)?);
    file.write_all(data)?;
    if let Some(mode) = access.kept {
        fchmod(&file, mode)?;
    }
    file.sync_all()?;
    renameat(folder, temporary, folder, name)?;
    fsync(folder.as_fd())?;
    Ok(())
}

fn failed(location: &Location, error: io::Error) -> ResolveError {
    match Errno::from_io_error(&error) {
        Some(errno) => ResolveError::from_errno(errno, location.to_string(), location.area().to_string()),
        None => ResolveError::System {
            path: location.to_string(),
            source: error,
        },
    }
}
