//! Frames of `agentrun-protocol` over a byte stream.

use agentrun_protocol::frame::{Decoder, FrameError};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt};

const READ: usize = 16 * 1024;

/// A frame could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The connection failed.
    #[error("reading failed")]
    Io(#[from] std::io::Error),
    /// The peer does not speak the protocol.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Reads messages one after the other.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    decoder: Decoder,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Reads from `reader`.
    pub fn new(reader: R) -> Self {
        FrameReader {
            reader,
            decoder: Decoder::default(),
            buffer: vec![0; READ],
        }
    }

    /// The next message, `None` at the end of the stream. May be dropped and called again.
    pub async fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, ReadError> {
        loop {
            if let Some(message) = self.decoder.next()? {
                return Ok(Some(message));
            }
            let read = self.reader.read(&mut self.buffer).await?;
            if read == 0 {
                return Ok(None);
            }
            self.decoder.push(&self.buffer[..read]);
        }
    }
}
