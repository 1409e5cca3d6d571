//! Whether the volume can be written at all, tested before any work.

use super::{Durability, write};
use std::io;
use std::path::Path;

/// The claim cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("the volume ({volume}) cannot be written as UID {uid}; {fix}")]
pub struct VolumeError {
    /// Kind of volume and driver.
    pub volume: String,
    uid: u32,
    fix: &'static str,
    /// What the volume said.
    pub source: io::Error,
}

impl VolumeError {
    /// Names `volume`, our user and what to do about `source`.
    pub fn new(volume: &str, source: io::Error) -> Self {
        let fix = match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "it is full: give it more space",
            io::ErrorKind::ReadOnlyFilesystem => "it is mounted read-only",
            io::ErrorKind::PermissionDenied => "it must honour fsGroup or belong to this user",
            _ => "look at its driver's events",
        };
        VolumeError {
            volume: if volume.is_empty() {
                "unknown class"
            } else {
                volume
            }
            .to_owned(),
            uid: rustix::process::geteuid().as_raw(),
            fix,
            source,
        }
    }
}

/// Writes and removes a small file in each of `folders`.
pub fn test(folders: &[&Path]) -> io::Result<()> {
    for folder in folders {
        let probe = folder.join(format!(".write-test-{}", std::process::id()));
        write(&probe, b"agentrun\n", 0o600, Durability::Process)?;
        match std::fs::remove_file(&probe) {
            // Another Pod on the same claim may have used the same name at the same time.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_takes_a_file_passes_and_keeps_nothing() {
        let folder = tempfile::tempdir().unwrap();
        test(&[folder.path()]).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    // F079, F082
    #[test]
    fn the_message_names_class_user_and_fix() {
        let error = VolumeError::new(
            "class slow, driver nfs",
            io::Error::from(io::ErrorKind::PermissionDenied),
        );
        let text = error.to_string();
        assert!(
            text.starts_with("the volume (class slow, driver nfs) cannot be written as UID "),
            "{text}"
        );
        assert!(
            text.ends_with("it must honour fsGroup or belong to this user"),
            "{text}"
        );
        let full = VolumeError::new("", io::Error::from(io::ErrorKind::StorageFull));
        assert!(full.to_string().contains("it is full"));
    }
}
