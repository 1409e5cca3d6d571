//! Pauses between tries.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

/// Doubling pauses with jitter: each is between half and all of its nominal length.
#[derive(Debug)]
pub(crate) struct Backoff {
    nominal: Duration,
    longest: Duration,
}

impl Backoff {
    pub(crate) fn new((first, longest): (Duration, Duration)) -> Self {
        Self {
            nominal: first,
            longest,
        }
    }

    /// Waits for the next pause.
    pub(crate) async fn pause(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    /// The length of the next pause.
    pub(crate) fn next(&mut self) -> Duration {
        let jitter = RandomState::new().hash_one(()) % 512;
        let jitter = u32::try_from(jitter).unwrap_or_default();
        let pause = self.nominal / 2 + self.nominal / 1024 * jitter;
        self.nominal = (self.nominal * 2).min(self.longest);
        pause
    }
}
