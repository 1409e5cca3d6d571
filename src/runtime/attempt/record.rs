//! The whole logs of a call, as files below `state`.

use super::program::LOG_BYTES;
use crate::store::evidence::Evidence;
use agentrun_core::contract::tail::Capture;
use agentrun_protocol::executor::{Stream, StreamEnd};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

/// Bytes of each end of a stream that stay at hand.
pub(super) const ENDS: usize = 8 * 1024;

/// One stream's log. Of what comes beyond [`LOG_BYTES`] only the end is kept, in memory.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    kept: u64,
    ends: Capture,
}

/// Both streams of a call.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) stdout: Log,
    pub(super) stderr: Log,
}

impl Record {
    /// New, empty logs.
    pub(super) fn create(evidence: &Evidence) -> io::Result<Self> {
        Ok(Record {
            stdout: Log::new(evidence.log(Stream::Stdout)?),
            stderr: Log::new(evidence.log(Stream::Stderr)?),
        })
    }

    /// Appends a piece.
    pub(super) fn add(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stdout => self.stdout.add(data),
            Stream::Stderr => self.stderr.add(data),
        }
    }
}

impl Log {
    fn new(file: File) -> Self {
        Log {
            file,
            kept: 0,
            ends: Capture::new(ENDS, ENDS),
        }
    }

    fn add(&mut self, data: &[u8]) -> io::Result<()> {
        self.ends.push(data);
        let room = usize::try_from(LOG_BYTES - self.kept).unwrap_or(usize::MAX);
        let fits = &data[..data.len().min(room)];
        self.file.write_all(fits)?;
        self.kept += fits.len() as u64;
        Ok(())
    }

    /// Takes over what the executor counted, and the end of what it did not send.
    pub(super) fn end(&mut self, end: &StreamEnd) {
        let seen = self.ends.total() + end.tail.0.len() as u64;
        self.ends.skip(end.total.saturating_sub(seen));
        self.ends.push(&end.tail.0);
    }

    /// The start and the end, for people.
    pub(super) fn ends(&self) -> &Capture {
        &self.ends
    }

    /// Bytes that were written in all.
    pub(super) fn total(&self) -> u64 {
        self.ends.total()
    }

    /// The first `length` bytes.
    pub(super) fn head(&self, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.rewind()?;
        file.take(length).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(bytes)
    }
}
