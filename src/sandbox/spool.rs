//! Stdin of a call: kept in a file until the program reads it, so that a slow reader holds up neither the
//! connection nor our memory.

use agentrun_protocol::executor::MAX_STDIN;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, pread, pwrite, write};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const CHUNK: usize = 64 * 1024;

/// Bytes on their way to stdin.
#[derive(Debug)]
pub(crate) struct Spool {
    file: OwnedFd,
    written: u64,
    read: u64,
    complete: bool,
}

/// Stdin could not be kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    /// Too much of it.
    #[error("stdin is longer than {MAX_STDIN} bytes; pass large data as a file below /mnt/user-data")]
    TooLong,
    /// No room.
    #[error("stdin could not be kept in {folder:?}; give the sandbox a larger /tmp or more memory")]
    Store {
        /// The private temp folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Spool {
    /// A new file. It has no name when `name` is `None`.
    pub(crate) fn create(folder: &Path, name: Option<&str>) -> io::Result<Spool> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let path = folder.join(name.unwrap_or(".stdin"));
        let file = open(&path, flags, Mode::RUSR | Mode::WUSR)?;
        if name.is_none() {
            rustix::fs::unlink(&path)?;
        }
        Ok(Spool {
            file,
            written: 0,
            read: 0,
            complete: false,
        })
    }

    /// Adds bytes; after the `last` nothing is added any more.
    pub(crate) fn add(&mut self, mut bytes: &[u8], last: bool, folder: &Path) -> Result<(), SpoolError> {
        if self.complete {
            return Ok(());
        }
        if self.written + bytes.len() as u64 > MAX_STDIN {
            return Err(SpoolError::TooLong);
        }
        while !bytes.is_empty() {
            let count = pwrite(&self.file, bytes, self.written).map_err(|error| SpoolError::Store {
                folder: folder.into(),
                source: error.into(),
            })?;
            bytes = &bytes[count..];
            self.written += count as u64;
        }
        self.complete = last;
        Ok(())
    }

    /// Whether the last byte is there.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether bytes wait for the reader.
    pub(crate) fn has_more(&self) -> bool {
        self.read < self.written
    }

    /// Whether everything was handed over.
    pub(crate) fn is_drained(&self) -> bool {
        self.complete && !self.has_more()
    }

    /// Hands over what the non-blocking pipe takes. Fails when nobody reads it any more.
    pub(crate) fn feed(&mut self, pipe: &OwnedFd) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK];
        while self.has_more() {
            let count = pread(&self.file, &mut buffer, self.read)?;
            if count == 0 {
                // Only the program itself can have cut its input file short.
                self.read = self.written;
                break;
            }
            match write(pipe, &buffer[..count]) {
                Ok(count) => self.read += count as u64,
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
