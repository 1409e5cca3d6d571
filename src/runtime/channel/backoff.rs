//! How long to wait before the next connection.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from 100 ms to 5 s; the wait is a random part of that, so that a restarted gateway is not
/// met by all runtimes at once.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(super) fn next(&mut self) -> Duration {
        let bound = bound(self.failures);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(random_part())
    }
}

fn bound(failures: u32) -> Duration {
    FIRST.saturating_mul(1 << failures.min(10)).min(LONGEST)
}

/// Between a tenth and one. The standard library's hash keys are random enough for jitter.
fn random_part() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    let part = u32::try_from(random >> 32).unwrap_or_default();
    0.1 + 0.9 * f64::from(part) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_the_longest_and_start_again_after_success() {
        let mut backoff = Backoff::default();
        for _ in 0..100 {
            assert!(backoff.next() <= LONGEST);
        }
        assert_eq!(bound(backoff.failures), LONGEST);
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }

    #[test]
    fn waits_differ() {
        let waits: std::collections::HashSet<_> = (0..20).map(|_| Backoff { failures: 9 }.next()).collect();
        assert!(waits.len() > 10);
    }
}
