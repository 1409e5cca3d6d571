//! When a failed try is worth another one; pure but for its jitter.

use super::fault::Next;
use super::limits::Patience;
use crate::backoff::Backoff;
use std::time::Duration;

/// The tries of one model.
#[derive(Debug)]
pub(super) struct Tries {
    left: u32,
    backoff: Backoff,
    longest_wait: Duration,
}

impl Tries {
    /// As many as `patience` has, or half of them if another model follows.
    pub(super) fn new(patience: &Patience, another_follows: bool) -> Self {
        let all = patience.tries.max(1);
        Self {
            left: if another_follows { all.div_ceil(2) } else { all } - 1,
            backoff: Backoff::new(patience.pause),
            longest_wait: patience.retry_after,
        }
    }

    /// How long to wait before the same is tried again; `None` when it is not worth it, or would take longer than `left`.
    pub(super) fn again(&mut self, next: Next, left: Duration) -> Option<Duration> {
        let Next::Again(after) = next else { return None };
        self.left = self.left.checked_sub(1)?;
        let pause = self.backoff.next();
        let pause = match after {
            Some(after) if after > self.longest_wait => return None,
            // Whoever was told the same time does not come at the same moment.
            Some(after) => after + pause / 4,
            None => pause,
        };
        (pause < left).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    fn tries(another_follows: bool) -> Tries {
        Tries::new(&Patience::default(), another_follows)
    }

    #[test]
    fn pauses_double_with_jitter_until_the_tries_are_used_up() {
        let mut tries = tries(false);
        let pauses: Vec<_> = std::iter::from_fn(|| tries.again(Next::Again(None), LONG)).collect();
        assert_eq!(pauses.len(), 5);
        let mut nominal = Duration::from_millis(500);
        for pause in pauses {
            assert!(pause >= nominal / 2 && pause <= nominal, "{pause:?}");
            nominal *= 2;
        }
    }

    #[test]
    fn another_model_is_reached_sooner() {
        let mut tries = tries(true);
        assert_eq!(
            std::iter::from_fn(|| tries.again(Next::Again(None), LONG)).count(),
            2
        );
    }

    #[test]
    fn the_endpoints_own_word_is_kept_unless_it_is_too_long() {
        let word = |seconds| Next::Again(Some(Duration::from_secs(seconds)));
        assert!(tries(false).again(word(20), LONG).unwrap() >= Duration::from_secs(20));
        assert_eq!(tries(false).again(word(600), LONG), None);
        assert_eq!(tries(false).again(word(20), Duration::from_secs(10)), None);
    }

    #[test]
    fn what_would_fail_again_is_not_tried_again() {
        for next in [Next::Elsewhere, Next::Nowhere, Next::OtherKey] {
            assert_eq!(tries(false).again(next, LONG), None);
        }
    }
}
