//! Length-prefixed JSON frames, without any I/O: bytes in, messages out.

use serde::{Serialize, de::DeserializeOwned};

/// The largest frame body in bytes (1 MiB). Anything longer is refused before it is read.
pub const MAX_FRAME: usize = 1 << 20;

/// The most payload bytes that fit one frame as a [`crate::Blob`], with room for the other fields.
pub const MAX_BLOB: usize = 512 * 1024;

const PREFIX: usize = 4;

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The peer announced a frame longer than [`MAX_FRAME`].
    #[error("frame of {found} bytes, at most {MAX_FRAME} are allowed")]
    TooLong {
        /// The announced length in bytes.
        found: usize,
    },
    /// The body is not a message of the expected kind.
    #[error("frame is no valid message")]
    Malformed(#[source] serde_json::Error),
}

/// Encodes one message as a frame.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, FrameError> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message).map_err(FrameError::Malformed)?;
    let length = bytes.len() - PREFIX;
    let prefix = u32::try_from(length).ok().filter(|_| length <= MAX_FRAME);
    let prefix = prefix.ok_or(FrameError::TooLong { found: length })?;
    bytes[..PREFIX].copy_from_slice(&prefix.to_be_bytes());
    Ok(bytes)
}

/// Collects bytes as they come and gives out whole messages. Memory is bounded by one frame plus
/// what one `push` brings.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    start: usize,
}

impl Decoder {
    /// Adds bytes as read from the connection; the cuts between reads do not matter.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 && self.start * 2 >= self.buffer.len() {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole message, `None` when more bytes are needed. After an error the connection is
    /// of no use any more.
    #[allow(
        clippy::should_implement_trait,
        reason = "the caller chooses the type, and errors end the connection"
    )]
    pub fn next<M: DeserializeOwned>(&mut self) -> Result<Option<M>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some((prefix, rest)) = rest.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong { found: length });
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(body).map_err(FrameError::Malformed)?;
        self.start += PREFIX + length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_message_cut_at_every_byte_is_put_together_again() {
        let first = encode(&json!({"type": "Ping"})).unwrap();
        let second = encode(&json!({"type": "Get", "sha256": "ü"})).unwrap();
        let all = [first, second].concat();
        let mut decoder = Decoder::default();
        let mut seen = Vec::new();
        for byte in all {
            decoder.push(&[byte]);
            while let Some(message) = decoder.next::<Value>().unwrap() {
                seen.push(message);
            }
        }
        assert_eq!(
            seen,
            [json!({"type": "Ping"}), json!({"type": "Get", "sha256": "ü"})]
        );
    }

    #[test]
    fn a_frame_over_the_limit_is_refused_from_its_prefix_alone() {
        let mut decoder = Decoder::default();
        decoder.push(&u32::MAX.to_be_bytes());
        assert!(matches!(decoder.next::<Value>(), Err(FrameError::TooLong { .. })));
        let long = "x".repeat(MAX_FRAME);
        assert!(matches!(encode(&long), Err(FrameError::TooLong { .. })));
    }

    #[test]
    fn a_body_that_is_no_json_is_an_error() {
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0, 0, 2, b'{', b'{']);
        assert!(matches!(decoder.next::<Value>(), Err(FrameError::Malformed(_))));
    }
}
