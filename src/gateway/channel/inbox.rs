//! What comes from one runtime.

use agentrun_protocol::channel::ToGateway;
use agentrun_protocol::frame::{Decoder, FrameError};
use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt as _;

/// Why a stream cannot be read any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReceiveError {
    /// The runtime does not keep to the protocol.
    #[error("the runtime sent what is no message")]
    Frame(#[from] FrameError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(String),
}

/// Reads messages.
#[derive(Debug)]
pub(crate) struct Inbox<B> {
    body: B,
    decoder: Decoder,
}

impl<B> Inbox<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    pub(crate) fn new(body: B) -> Self {
        Self {
            body,
            decoder: Decoder::default(),
        }
    }

    /// The next message, `None` at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<ToGateway>, ReceiveError> {
        loop {
            if let Some(message) = self.decoder.next()? {
                return Ok(Some(message));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(ReceiveError::Broken(error.to_string())),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.decoder.push(bytes);
                    }
                }
            }
        }
    }
}
