//! Whether this process may write, by its own clock at the moment of the write.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Open until a moment; closed before it was opened for the first time. Clones share it.
#[derive(Clone, Debug)]
pub struct Fence {
    start: Instant,
    /// Milliseconds after `start`.
    until: Arc<AtomicU64>,
}

/// A write was asked for by a process that does not lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead any more, nothing was written")]
pub struct NotLeading;

impl Default for Fence {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            until: Arc::default(),
        }
    }
}

impl Fence {
    /// Opens it, or extends the time.
    pub fn open_until(&self, moment: Instant) {
        let millis = moment.saturating_duration_since(self.start).as_millis();
        self.until
            .store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Closes it now.
    pub fn close(&self) {
        self.until.store(0, Ordering::Release);
    }

    /// How long it stays open.
    pub fn left(&self, now: Instant) -> Duration {
        let until = Duration::from_millis(self.until.load(Ordering::Acquire));
        until.saturating_sub(now.saturating_duration_since(self.start))
    }

    /// Whether a write may begin now.
    pub fn check(&self) -> Result<(), NotLeading> {
        if self.left(Instant::now()).is_zero() {
            Err(NotLeading)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_closes_by_itself() {
        let fence = Fence::default();
        assert_eq!(fence.check(), Err(NotLeading));
        let opened = Instant::now();
        fence.open_until(opened + Duration::from_secs(10));
        assert_eq!(fence.check(), Ok(()));
        assert!(fence.left(opened + Duration::from_secs(9)) > Duration::ZERO);
        assert_eq!(fence.left(opened + Duration::from_secs(10)), Duration::ZERO);
        fence.close();
        assert_eq!(fence.check(), Err(NotLeading));
    }
}
