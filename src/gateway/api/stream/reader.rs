//! One reader of a feed, as the body of an answer.

use super::event::Event;
use super::feed::{Feed, Next};
use super::feeds::Place;
use super::log::{Start, wire};
use crate::api::bounds;
use bytes::Bytes;
use futures::Stream;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

struct Reader {
    feed: Arc<Feed>,
    /// What is sent before the first event.
    first: Option<Bytes>,
    /// How many events were sent.
    place: usize,
    changes: watch::Receiver<u64>,
    until: Instant,
    stop: CancellationToken,
    _place: Place,
}

/// The events from `start` on, until the run is over, `stop` is cancelled, or [`bounds::STREAM_LIFE`] has passed.
///
/// Nothing is kept for a reader: it takes the next event from the feed when its connection has room. Cutting off one that
/// takes nothing is left to its connection, since a stream that is not polled cannot notice the time.
pub(crate) fn read(
    feed: Arc<Feed>,
    start: &Start,
    place: Place,
    stop: CancellationToken,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + use<> {
    let reader = Reader {
        first: Some(greeting(start.gap)),
        place: start.place,
        changes: feed.changes(),
        until: Instant::now() + bounds::STREAM_LIFE,
        feed,
        stop,
        _place: place,
    };
    futures::stream::unfold(reader, |mut reader| async move {
        let bytes = reader.next().await?;
        Some((Ok(bytes), reader))
    })
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        let heartbeat = Instant::now() + bounds::HEARTBEAT;
        loop {
            self.changes.mark_unchanged();
            match self.feed.next(self.place) {
                Next::Event(event) => {
                    self.place += 1;
                    return Some(event);
                }
                Next::Lost(kept) => {
                    self.place = kept;
                    return Some(gap("older events of this task are not kept any more"));
                }
                Next::End => return None,
                Next::Wait => {}
            }
            tokio::select! {
                changed = self.changes.changed() => changed.ok()?,
                () = tokio::time::sleep_until(heartbeat) => return Some(Bytes::from_static(b": heartbeat\n\n")),
                () = tokio::time::sleep_until(self.until) => return None,
                () = self.stop.cancelled() => return None,
            }
        }
    }
}

/// When to come back, spread so that the readers of a gateway that went do not come all at once; then the gap, if any.
fn greeting(reason: Option<&str>) -> Bytes {
    let (shortest, longest) = bounds::RETRY_MS;
    let retry = shortest + RandomState::new().hash_one(()) % (longest - shortest);
    let mut greeting = format!("retry: {retry}\n\n").into_bytes();
    if let Some(reason) = reason {
        greeting.extend_from_slice(&gap(reason));
    }
    Bytes::from(greeting)
}

fn gap(reason: &str) -> Bytes {
    let reason = reason.to_owned();
    wire(None, &Event::Gap { reason })
}
