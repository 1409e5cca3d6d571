//! What goes to one runtime.

use crate::bounds;
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::frame::{self, FrameError};
use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use std::convert::Infallible;
use tokio::sync::mpsc;

/// Why a message did not go out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The runtime is gone.
    #[error("the runtime is gone")]
    Gone,
    /// The runtime takes nothing.
    #[error("the runtime took no message for {} s", bounds::SEND.as_secs())]
    Stuck,
    /// The message is longer than a frame.
    #[error("a message does not fit a frame")]
    Encode(#[from] FrameError),
}

/// Sends messages; clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    frames: mpsc::Sender<Bytes>,
}

impl Outbox {
    /// A queue, and the body that empties it. The body ends when every clone is dropped.
    pub(crate) fn new() -> (Self, impl Stream<Item = Result<Frame<Bytes>, Infallible>> + Send) {
        let (frames, mut queue) = mpsc::channel::<Bytes>(bounds::OUTBOX);
        let next = move |cx: &mut std::task::Context<'_>| {
            queue
                .poll_recv(cx)
                .map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
        };
        (Self { frames }, futures::stream::poll_fn(next))
    }

    /// Sends one message if there is room for it at once; whether it went out.
    pub(crate) fn offer(&self, message: &ToRuntime) -> bool {
        let Ok(bytes) = frame::encode(message) else {
            return false;
        };
        self.frames.try_send(bytes.into()).is_ok()
    }

    /// Sends one message, waiting while the runtime is slow.
    pub(crate) async fn send(&self, message: &ToRuntime) -> Result<(), SendError> {
        let bytes = Bytes::from(frame::encode(message)?);
        let sent = tokio::time::timeout(bounds::SEND, self.frames.send(bytes)).await;
        sent.map_err(|_| SendError::Stuck)?.map_err(|_| SendError::Gone)
    }
}
