//! Pauses between the attempts of a sub-task.

use sha2::{Digest, Sha256};
use std::time::Duration;

/// No pause is longer (docs/reference.md).
pub const MAX_PAUSE: Duration = Duration::from_mins(5);

/// The pause after the `failures`-th failure: `base`, doubled with each failure, at most [`MAX_PAUSE`], moved
/// by up to a fifth either way. The move comes from a hash of `uid` and `failures`, so that whoever computes
/// the pause gets the same one, and siblings that failed together do not come back together.
pub fn pause(base: Duration, failures: u32, uid: &str) -> Duration {
    let doubled = base.saturating_mul(1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX));
    let capped = doubled.min(MAX_PAUSE);
    let hash = Sha256::new()
        .chain_update(uid)
        .chain_update([0])
        .chain_update(failures.to_be_bytes())
        .finalize();
    let per_mille = 800 + u32::from(u16::from_be_bytes([hash[0], hash[1]])) % 401;
    capped * per_mille / 1000
}

/// When to try again what cannot be done now for a reason outside (a quota, a name that is taken) and that nothing
/// tells of when it can: a quarter of the time waited until now, between 1 s and 15 s.
pub fn try_again(waited: Duration) -> Duration {
    (waited / 4).clamp(Duration::from_secs(1), Duration::from_secs(15))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_long_is_tried_less_often() {
        let pause = |waited| try_again(Duration::from_secs(waited)).as_secs();
        assert_eq!([0, 4, 20, 60, 600].map(pause), [1, 1, 5, 15, 15]);
    }

    #[test]
    fn a_pause_doubles_up_to_five_minutes_and_moves_by_a_fifth() {
        for (failures, seconds) in [
            (1, 10.0),
            (2, 20.0),
            (3, 40.0),
            (6, 300.0),
            (31, 300.0),
            (90, 300.0),
        ] {
            let pause = pause(Duration::from_secs(10), failures, "uid").as_secs_f64();
            assert!(
                (seconds * 0.8..=seconds * 1.2).contains(&pause),
                "{failures}: {pause}"
            );
        }
    }

    #[test]
    fn siblings_do_not_come_back_together() {
        let pauses: std::collections::BTreeSet<_> = (0..20)
            .map(|uid| pause(Duration::from_secs(10), 1, &uid.to_string()))
            .collect();
        assert!(pauses.len() > 15, "{pauses:?}");
    }
}
