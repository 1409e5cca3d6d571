//! Private temp folders: made with a name that nobody can guess, removed whatever is in them.

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, chmodat, mkdir, openat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::ffi::CString;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the folders that calls share may take to be emptied; all others wait meanwhile.
const SWEEP_TIME: Duration = Duration::from_secs(10);
/// Names that are listed at once: a program can make millions.
const BATCH: usize = 4096;
/// How often a folder is looked at again while its owner lives; each round takes one level of folders.
const ROUNDS: u32 = 64;

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Makes a new, empty folder below `parent` that only its owner may enter.
pub(crate) fn create(parent: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom(&mut random, GetRandomFlags::empty())?;
    let name = random.iter().fold(String::from("call-"), |mut name, byte| {
        let _ = write!(name, "{byte:02x}");
        name
    });
    let path = parent.join(name);
    mkdir(&path, Mode::RWXU)?;
    Ok(path)
}

/// Removes a folder and all that is below it, also in folders without permissions. Links are removed,
/// never followed.
///
/// Nested folders are first moved up beside their parents: no depth of nesting costs stack, descriptors or
/// the length of a path.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let root = match rustix::fs::open(path, FOLDER, Mode::empty()) {
        Ok(root) => root,
        Err(Errno::NOENT) => return Ok(()),
        // The program has put something else in its place: a file, or a link, which is not followed.
        Err(Errno::NOTDIR | Errno::LOOP) => return Ok(rustix::fs::unlink(path)?),
        Err(Errno::ACCESS) => {
            chmodat(rustix::fs::CWD, path, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::open(path, FOLDER, Mode::empty())?
        }
        Err(error) => return Err(error.into()),
    };
    rustix::fs::fchmod(&root, Mode::RWXU)?;
    let mut moved = 0;
    while !empty(&root, &root, Owner::Gone, &mut moved)? {}
    rustix::fs::rmdir(path)?;
    Ok(())
}

/// Removes what is in a folder while its owner lives and may write to it. Says whether the folder was seen to be empty:
/// what its owner makes meanwhile stays, and so do folders without permissions or nested deeper than [`ROUNDS`].
pub(crate) fn clear(path: &Path) -> io::Result<bool> {
    let root = rustix::fs::open(path, FOLDER, Mode::empty())?;
    let mut moved = 0;
    for _ in 0..=ROUNDS {
        if empty(&root, &root, Owner::Alive, &mut moved)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes all that is in a folder, which itself stays. Nobody may be left who could write to it. Says whether that was
/// done within [`SWEEP_TIME`].
pub(crate) fn sweep(path: &Path) -> io::Result<bool> {
    let root = match rustix::fs::open(path, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(true),
        root => root?,
    };
    let until = Instant::now() + SWEEP_TIME;
    let mut moved = 0;
    while !empty(&root, &root, Owner::Gone, &mut moved)? {
        if Instant::now() >= until {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether somebody may change the folder meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Gone,
    Alive,
}

/// Removes the files of `folder`. A nested folder moves to `root` if it is not there already; there it is
/// emptied and removed. Returns whether nothing was left to do.
fn empty(root: &OwnedFd, folder: &OwnedFd, owner: Owner, moved: &mut u64) -> io::Result<bool> {
    let mut nothing = true;
    let at_root = std::ptr::eq(root, folder);
    for (name, is_folder) in entries(folder)? {
        nothing = false;
        if !is_folder {
            ignore_missing(unlinkat(folder, &name, AtFlags::empty()))?;
            continue;
        }
        // The name was seen as a folder; only its owner could have made it a link since, and the right of what
        // that names would change.
        if owner == Owner::Gone {
            ignore_missing(chmodat(folder, &name, Mode::RWXU, AtFlags::empty()))?;
        }
        if at_root {
            let nested = match openat(root, &name, FOLDER, Mode::empty()) {
                Err(_) if owner == Owner::Alive => continue,
                nested => nested?,
            };
            empty(root, &nested, owner, moved)?;
            match unlinkat(root, &name, AtFlags::REMOVEDIR) {
                // Longer than a list, or its owner goes on filling it: the next round sees it again.
                Err(Errno::NOTEMPTY) => {}
                result => ignore_missing(result)?,
            }
        } else {
            move_up(root, folder, &name, moved)?;
        }
    }
    Ok(nothing)
}

fn move_up(root: &OwnedFd, folder: &OwnedFd, name: &CString, moved: &mut u64) -> io::Result<()> {
    loop {
        *moved += 1;
        match renameat_with(folder, name, root, format!("{moved}"), RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            result => return ignore_missing(result),
        }
    }
}

/// Names, and whether each is a folder; the first of them, when there are many. The list is whole before anything
/// changes.
fn entries(folder: &OwnedFd) -> io::Result<Vec<(CString, bool)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        if found.len() == BATCH {
            break;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        found.push((name.to_owned(), kind == FileType::Directory));
    }
    Ok(found)
}

fn ignore_missing(result: rustix::io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_folder_is_private_and_new() {
        let parent = tempfile::tempdir().unwrap();
        let one = create(parent.path()).unwrap();
        let two = create(parent.path()).unwrap();
        assert_ne!(one, two);
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn folders_without_permissions_and_links_are_removed_and_links_are_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("keep"), "x").unwrap();
        let scratch = create(parent.path()).unwrap();
        let locked = scratch.join("a/b");
        fs::create_dir_all(&locked).unwrap();
        fs::write(locked.join("file"), "x").unwrap();
        symlink(&outside, locked.join("link")).unwrap();
        symlink("/nowhere", scratch.join("dangling")).unwrap();
        fs::set_permissions(&locked, Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(scratch.join("a"), Permissions::from_mode(0o500)).unwrap();
        fs::set_permissions(&scratch, Permissions::from_mode(0o000)).unwrap();
        remove(&scratch).unwrap();
        assert!(!scratch.exists());
        assert!(outside.join("keep").exists());
    }

    #[test]
    fn what_was_put_in_place_of_the_folder_is_removed_and_not_followed() {
        let parent = tempfile::tempdir().unwrap();
        let outside = parent.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("keep"), "x").unwrap();
        let place = parent.path().join("place");
        symlink(&outside, &place).unwrap();
        remove(&place).unwrap();
        fs::write(&place, "x").unwrap();
        remove(&place).unwrap();
        assert!(place.symlink_metadata().is_err());
        assert!(outside.join("keep").exists());
    }

    #[test]
    fn no_depth_is_too_deep() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = create(parent.path()).unwrap();
        let mut folder = rustix::fs::open(&scratch, FOLDER, Mode::empty()).unwrap();
        for _ in 0..5_000 {
            rustix::fs::mkdirat(&folder, "1", Mode::RWXU).unwrap();
            folder = openat(&folder, "1", FOLDER, Mode::empty()).unwrap();
        }
        remove(&scratch).unwrap();
        assert!(!scratch.exists());
    }

    #[test]
    fn a_folder_that_its_owner_keeps_from_being_emptied_is_told() {
        let parent = tempfile::tempdir().unwrap();
        let nested = |levels: usize| {
            let scratch = create(parent.path()).unwrap();
            fs::create_dir_all(scratch.join(vec!["d"; levels].join("/"))).unwrap();
            fs::write(scratch.join("d/file"), "x").unwrap();
            scratch
        };
        let shallow = nested(10);
        assert!(clear(&shallow).unwrap());
        assert_eq!(fs::read_dir(&shallow).unwrap().count(), 0);
        assert!(!clear(&nested(200)).unwrap());
        let locked = nested(3);
        fs::set_permissions(locked.join("d"), Permissions::from_mode(0o000)).unwrap();
        assert_eq!(clear(&locked).unwrap(), rustix::process::geteuid().is_root());
    }

    #[test]
    fn more_files_than_a_list_holds_are_removed_and_the_folder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let many = folder.path().join("many");
        fs::create_dir(&many).unwrap();
        for number in 0..=BATCH {
            fs::write(many.join(number.to_string()), "").unwrap();
        }
        fs::set_permissions(&many, Permissions::from_mode(0o000)).unwrap();
        symlink("/nowhere", folder.path().join("link")).unwrap();
        assert!(sweep(folder.path()).unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(sweep(Path::new("/nowhere/at/all")).unwrap());
    }

    #[test]
    fn a_missing_folder_counts_as_removed() {
        remove(Path::new("/nowhere/at/all")).unwrap();
    }
}
