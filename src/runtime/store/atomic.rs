//! Whole files or none.

use std::fs::{self, OpenOptions, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What a file must live through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The end of this process. A node that is lost takes the attempt with it.
    Process,
    /// The end of the node.
    Node,
}

/// Writes `path` under a temporary name beside it and renames it, so that readers and writers in other
/// Pods see the old content or all of the new one. Makes missing folders.
pub fn write(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::from(io::ErrorKind::InvalidFilename));
    };
    fs::create_dir_all(folder)?;
    let random = RandomState::new().build_hasher().finish();
    let temporary = folder.join(format!(".{}.{random:016x}.tmp", name.to_string_lossy()));
    let written = fill(&temporary, bytes, mode, durability).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The first error is the one that counts.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn fill(path: &Path, bytes: &[u8], mode: u32, durability: Durability) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    match durability {
        Durability::Process => Ok(()),
        Durability::Node => file.sync_all(),
    }
}
