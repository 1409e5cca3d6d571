//! Stdin of a call: kept in a file until the program reads it, so that a slow reader holds up neither the
//! connection nor our memory.

use agentrun_protocol::executor::MAX_STDIN;
use rustix::fs::{Mode, OFlags, ftruncate, open};
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
    /// It has a name that the program may open.
    named: bool,
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
            named: name.is_some(),
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
        self.forget()
    }

    /// Begins anew when all was read, so that one request after another takes no more room than the largest.
    fn forget(&mut self) -> io::Result<()> {
        if self.has_more() || self.complete || self.named || self.written == 0 {
            return Ok(());
        }
        ftruncate(&self.file, 0)?;
        (self.written, self.read) = (0, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    #[test]
    fn a_request_that_was_read_makes_room_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (_reader, writer) = pipe().unwrap();
        let mut spool = Spool::create(folder.path(), None).unwrap();
        for _ in 0..3 {
            spool.add(b"one\n", false, folder.path()).unwrap();
            spool.feed(&writer).unwrap();
            assert_eq!(
                (spool.written, spool.has_more(), spool.is_drained()),
                (0, false, false)
            );
        }
        spool.add(b"", true, folder.path()).unwrap();
        assert!(spool.is_drained());
    }

    #[test]
    fn an_input_file_is_kept_when_it_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let (_reader, writer) = pipe().unwrap();
        let mut spool = Spool::create(folder.path(), Some("input")).unwrap();
        spool.add(b"one", false, folder.path()).unwrap();
        spool.feed(&writer).unwrap();
        assert_eq!(std::fs::read(folder.path().join("input")).unwrap(), b"one");
    }
}
