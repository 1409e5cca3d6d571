//! The whole logs of a call, as files below `state`, without the values of Secrets.

use super::judge::MAX_DOCUMENT;
use super::program::LOG_BYTES;
use crate::store::evidence::Evidence;
use agentrun_core::contract::tail::Capture;
use agentrun_core::redact::{self, Secrets};
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
    /// Bytes that were written in all, secrets included.
    total: u64,
    ends: Capture,
    clean: redact::Stream,
    /// The start as it was, where it differs from the file: an output is data, and is not changed.
    raw: Option<Vec<u8>>,
}

/// Both streams of a call.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) stdout: Log,
    pub(super) stderr: Log,
}

impl Record {
    /// New, empty logs, in which `secrets` will not show.
    pub(super) fn create(evidence: &Evidence, secrets: &Secrets) -> io::Result<Self> {
        Ok(Record {
            stdout: Log::new(evidence.log(Stream::Stdout)?, secrets),
            stderr: Log::new(evidence.log(Stream::Stderr)?, secrets),
        })
    }

    /// Appends a piece.
    pub(super) fn add(&mut self, stream: Stream, data: &[u8]) -> io::Result<()> {
        match stream {
            Stream::Stdout => self.stdout.add(data),
            Stream::Stderr => self.stderr.add(data),
        }
    }

    /// Writes down what was held back. Nothing is added after it.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.stdout.finish()?;
        self.stderr.finish()
    }
}

impl Log {
    fn new(file: File, secrets: &Secrets) -> Self {
        Log {
            file,
            kept: 0,
            total: 0,
            ends: Capture::new(ENDS, ENDS),
            clean: secrets.stream(),
            raw: (!secrets.is_empty()).then(Vec::new),
        }
    }

    fn add(&mut self, data: &[u8]) -> io::Result<()> {
        self.total += data.len() as u64;
        if let Some(raw) = &mut self.raw {
            let room = usize::try_from(MAX_DOCUMENT).unwrap_or(usize::MAX) - raw.len();
            raw.extend_from_slice(&data[..data.len().min(room)]);
        }
        let clean = self.clean.push(data);
        self.write(&clean)
    }

    fn finish(&mut self) -> io::Result<()> {
        let clean = self.clean.finish();
        self.write(&clean)
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.ends.push(data);
        let room = usize::try_from(LOG_BYTES - self.kept).unwrap_or(usize::MAX);
        let fits = &data[..data.len().min(room)];
        self.file.write_all(fits)?;
        self.kept += fits.len() as u64;
        Ok(())
    }

    /// Takes over what the executor counted, and the end of what it did not send.
    pub(super) fn end(&mut self, end: &StreamEnd) {
        let seen = self.total + end.tail.0.len() as u64;
        self.ends.skip(end.total.saturating_sub(seen));
        let mut clean = self.clean.push(&end.tail.0);
        clean.extend(self.clean.finish());
        self.ends.push(&clean);
        self.total = self.total.max(end.total);
    }

    /// The start and the end, for people.
    pub(super) fn ends(&self) -> &Capture {
        &self.ends
    }

    /// Bytes that were written in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// The first `length` bytes as they were, [`MAX_DOCUMENT`] at most where there are secrets.
    pub(super) fn head(&self, length: u64) -> io::Result<Vec<u8>> {
        if let Some(raw) = &self.raw {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            return Ok(raw[..raw.len().min(length)].to_vec());
        }
        let mut bytes = Vec::new();
        let mut file = &self.file;
        file.rewind()?;
        file.take(length).read_to_end(&mut bytes)?;
        file.seek(SeekFrom::End(0))?;
        Ok(bytes)
    }
}
