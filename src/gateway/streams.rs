//! Which Pod is connected, and how to wake its stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// What a stream is told from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Counts the times at which something changed for this Pod.
    pub(crate) wakes: u64,
    /// A newer connection of the same Pod took over.
    pub(crate) superseded: bool,
}

/// The streams of this gateway by Pod UID. At most one stream serves a Pod.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    by_pod: HashMap<String, Stream>,
}

#[derive(Debug)]
struct Stream {
    id: u64,
    signal: watch::Sender<Signal>,
}

impl Streams {
    /// Makes a new stream the one that serves `pod_uid`; the one before is told that it is superseded.
    pub(crate) fn register(self: &Arc<Self>, pod_uid: &str) -> Registration {
        let (signal, signals) = watch::channel(Signal::default());
        let mut inner = self.lock();
        inner.next += 1;
        let id = inner.next;
        if let Some(older) = inner.by_pod.insert(pod_uid.to_owned(), Stream { id, signal }) {
            older.signal.send_modify(|signal| signal.superseded = true);
        }
        Registration {
            streams: Arc::clone(self),
            pod_uid: pod_uid.to_owned(),
            id,
            signals,
        }
    }

    /// Tells the stream of a Pod, if it is here, to look at the board again.
    pub(crate) fn wake(&self, pod_uid: &str) {
        if let Some(stream) = self.lock().by_pod.get(pod_uid) {
            stream.signal.send_modify(|signal| signal.wakes += 1);
        }
    }

    /// Tells every stream to look at the board again.
    pub(crate) fn wake_all(&self) {
        for stream in self.lock().by_pod.values() {
            stream.signal.send_modify(|signal| signal.wakes += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to serve a Pod; given back when dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    streams: Arc<Streams>,
    pod_uid: String,
    id: u64,
    /// What happens outside.
    pub(crate) signals: watch::Receiver<Signal>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut inner = self.streams.lock();
        if inner
            .by_pod
            .get(&self.pod_uid)
            .is_some_and(|stream| stream.id == self.id)
        {
            inner.by_pod.remove(&self.pod_uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_stream_supersedes_and_outlives_the_older() {
        let streams = Arc::new(Streams::default());
        let older = streams.register("pod");
        let newer = streams.register("pod");
        assert!(older.signals.borrow().superseded);
        drop(older);
        streams.wake("pod");
        assert_eq!(
            *newer.signals.borrow(),
            Signal {
                wakes: 1,
                superseded: false
            }
        );
        drop(newer);
        assert!(streams.lock().by_pod.is_empty());
    }

    #[test]
    fn only_the_streams_of_the_pod_are_woken() {
        let streams = Arc::new(Streams::default());
        let (one, two) = (streams.register("one"), streams.register("two"));
        streams.wake("one");
        streams.wake_all();
        assert_eq!(one.signals.borrow().wakes, 2);
        assert_eq!(two.signals.borrow().wakes, 1);
    }
}
