//! The settle rule: what the end of an attempt means for its sub-task.
//!
//! Gateway and operator both call it, each for the ends that it sees, so that neither can write an
//! outcome while an attempt still follows.

use crate::backoff;
use agentrun_api::{Attempt, OnDisruption, Outcome, Retry, RetryOutcome, SubTaskReason, SubTaskSpec};
use jiff::Timestamp;
use std::time::Duration;

/// How often a sub-task is started anew after the platform took its sandbox away, besides the attempts
/// that `retry` allows.
pub const MAX_PLATFORM_RESTARTS: usize = 3;

/// First pause before a retry when `retry.backoff` is unset.
pub const DEFAULT_BACKOFF: Duration = Duration::from_secs(1);

/// Whether the acceptance criteria let a success stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There are no criteria, or they hold, or they are only reported.
    Accepted,
    /// Under `Require`, a criterion does not hold or is unverified.
    NotAccepted,
}

/// Why nothing may start any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing stops it.
    None,
    /// The run or the sub-task was cancelled or deleted.
    Cancelled,
    /// A sibling failed under `failurePolicy: FailFast`.
    FailedFast,
    /// The run's time is over.
    RunDeadline,
}

impl Stop {
    /// Outcome and reason of a sub-task that was stopped while nothing of it ran.
    pub fn outcome(self) -> Option<(Outcome, SubTaskReason)> {
        match self {
            Self::None => None,
            Self::Cancelled => Some((Outcome::Cancelled, SubTaskReason::Cancelled)),
            Self::FailedFast => Some((Outcome::Cancelled, SubTaskReason::RunFailedFast)),
            Self::RunDeadline => Some((Outcome::Timeout, SubTaskReason::DeadlineExceeded)),
        }
    }
}

/// What follows the end of the newest attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The sub-task is over.
    Final {
        /// Its outcome: the newest attempt's.
        outcome: Outcome,
        /// The newest attempt's reason.
        reason: String,
    },
    /// Another attempt follows, not before this time.
    Retry {
        /// Earliest start of the next attempt.
        next_attempt_time: Timestamp,
    },
}

/// Decides what follows when the newest of `attempts` has ended. `uid` is the sub-task's: it seeds the
/// jitter, so that both writers compute the same time from the same `now`.
///
/// `None` when there is no attempt, or the newest has not ended.
pub fn settle(
    spec: &SubTaskSpec,
    uid: &str,
    attempts: &[Attempt],
    verdict: Verdict,
    stop: Stop,
    now: Timestamp,
) -> Option<Settlement> {
    let last = attempts.iter().max_by_key(|attempt| attempt.number)?;
    let outcome = last.outcome?;
    let reason = last.reason.clone().unwrap_or_default();
    let retry = spec.retry.clone().unwrap_or_default();
    let end = Settlement::Final {
        outcome,
        reason: reason.clone(),
    };
    if stop != Stop::None || !may_follow(&retry, attempts, outcome, &reason, verdict) {
        return Some(end);
    }
    if is_platform_end(&reason) {
        return Some(Settlement::Retry {
            next_attempt_time: now,
        });
    }
    let base = retry
        .backoff
        .as_ref()
        .and_then(|text| text.parse().ok())
        .unwrap_or(DEFAULT_BACKOFF);
    let failures = attempts
        .iter()
        .filter(|attempt| !ended_by_platform(attempt))
        .count();
    let pause = backoff::pause(base, u32::try_from(failures).unwrap_or(u32::MAX), uid);
    Some(Settlement::Retry {
        next_attempt_time: now + pause,
    })
}

/// Whether the newest attempt's end leaves room for another one.
fn may_follow(retry: &Retry, attempts: &[Attempt], outcome: Outcome, reason: &str, verdict: Verdict) -> bool {
    if is_platform_end(reason) {
        let restarts = attempts
            .iter()
            .filter(|attempt| ended_by_platform(attempt))
            .count();
        return retry.on_disruption != Some(OnDisruption::Fail) && restarts <= MAX_PLATFORM_RESTARTS;
    }
    let cause = match (outcome, verdict) {
        (Outcome::Error, _) => RetryOutcome::Error,
        (Outcome::Timeout, _) => RetryOutcome::Timeout,
        (Outcome::ParseError, _) => RetryOutcome::ParseError,
        (Outcome::Success, Verdict::NotAccepted) => RetryOutcome::AcceptanceNotMet,
        (Outcome::Success | Outcome::Cancelled | Outcome::Skipped, _) => return false,
    };
    let own = attempts
        .iter()
        .filter(|attempt| !ended_by_platform(attempt))
        .count();
    let allowed = usize::try_from(retry.attempts.unwrap_or(1)).unwrap_or(1);
    own < allowed && (retry.outcomes.is_empty() || retry.outcomes.contains(&cause))
}

/// Ends that are the platform's doing, not the work's: counted apart from `retry.attempts`.
pub fn is_platform_end(reason: &str) -> bool {
    const PLATFORM: [SubTaskReason; 6] = [
        SubTaskReason::Evicted,
        SubTaskReason::Preempted,
        SubTaskReason::NodeLost,
        SubTaskReason::PodLost,
        SubTaskReason::RuntimeLost,
        SubTaskReason::VersionSkew,
    ];
    PLATFORM.iter().any(|platform| platform.as_str() == reason)
}

fn ended_by_platform(attempt: &Attempt) -> bool {
    attempt.reason.as_deref().is_some_and(is_platform_end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "uid";

    fn now() -> Timestamp {
        "2030-01-01T00:00:00Z".parse().unwrap()
    }

    fn attempts(ends: &[(Outcome, SubTaskReason)]) -> Vec<Attempt> {
        ends.iter()
            .zip(1..)
            .map(|((outcome, reason), number)| Attempt {
                number,
                outcome: Some(*outcome),
                reason: Some(reason.as_str().into()),
                ..Attempt::default()
            })
            .collect()
    }

    fn spec(retry: Retry) -> SubTaskSpec {
        SubTaskSpec {
            retry: Some(retry),
            ..SubTaskSpec::default()
        }
    }

    fn follows(spec: &SubTaskSpec, ends: &[(Outcome, SubTaskReason)], verdict: Verdict, stop: Stop) -> bool {
        let settled = settle(spec, UID, &attempts(ends), verdict, stop, now()).unwrap();
        matches!(settled, Settlement::Retry { .. })
    }

    const EXIT: (Outcome, SubTaskReason) = (Outcome::Error, SubTaskReason::ExitCode);
    const EVICTED: (Outcome, SubTaskReason) = (Outcome::Error, SubTaskReason::Evicted);
    const DONE: (Outcome, SubTaskReason) = (Outcome::Success, SubTaskReason::Completed);

    #[test]
    fn without_retry_the_first_end_is_final() {
        assert!(!follows(
            &SubTaskSpec::default(),
            &[EXIT],
            Verdict::Accepted,
            Stop::None
        ));
    }

    #[test]
    fn an_attempt_that_has_not_ended_settles_nothing() {
        let running = [Attempt {
            number: 1,
            ..Attempt::default()
        }];
        assert_eq!(
            settle(
                &SubTaskSpec::default(),
                UID,
                &running,
                Verdict::Accepted,
                Stop::None,
                now()
            ),
            None
        );
        assert_eq!(
            settle(
                &SubTaskSpec::default(),
                UID,
                &[],
                Verdict::Accepted,
                Stop::None,
                now()
            ),
            None
        );
    }

    #[test]
    fn attempts_are_counted_in_all() {
        let twice = spec(Retry {
            attempts: Some(2),
            ..Retry::default()
        });
        assert!(follows(&twice, &[EXIT], Verdict::Accepted, Stop::None));
        assert!(!follows(&twice, &[EXIT, EXIT], Verdict::Accepted, Stop::None));
    }

    #[test]
    fn only_the_named_outcomes_are_retried() {
        let retry = Retry {
            attempts: Some(3),
            outcomes: vec![RetryOutcome::Timeout],
            ..Retry::default()
        };
        assert!(!follows(
            &spec(retry.clone()),
            &[EXIT],
            Verdict::Accepted,
            Stop::None
        ));
        let late = (Outcome::Timeout, SubTaskReason::DeadlineExceeded);
        assert!(follows(&spec(retry), &[late], Verdict::Accepted, Stop::None));
    }

    #[test]
    fn a_success_is_final_unless_it_is_not_accepted() {
        let twice = spec(Retry {
            attempts: Some(2),
            ..Retry::default()
        });
        assert!(!follows(&twice, &[DONE], Verdict::Accepted, Stop::None));
        assert!(follows(&twice, &[DONE], Verdict::NotAccepted, Stop::None));
    }

    #[test]
    fn platform_ends_restart_three_times_besides_the_attempts() {
        let once = SubTaskSpec::default();
        assert!(follows(&once, &[EVICTED; 3], Verdict::Accepted, Stop::None));
        assert!(!follows(&once, &[EVICTED; 4], Verdict::Accepted, Stop::None));
        let twice = spec(Retry {
            attempts: Some(2),
            ..Retry::default()
        });
        assert!(follows(
            &twice,
            &[EVICTED, EVICTED, EXIT],
            Verdict::Accepted,
            Stop::None
        ));
    }

    #[test]
    fn a_disruption_is_final_where_the_user_says_so() {
        let fail = spec(Retry {
            on_disruption: Some(OnDisruption::Fail),
            ..Retry::default()
        });
        assert!(!follows(&fail, &[EVICTED], Verdict::Accepted, Stop::None));
    }

    #[test]
    fn a_stop_beats_every_retry() {
        let many = spec(Retry {
            attempts: Some(10),
            ..Retry::default()
        });
        for stop in [Stop::Cancelled, Stop::FailedFast, Stop::RunDeadline] {
            assert!(!follows(&many, &[EXIT], Verdict::Accepted, stop));
        }
    }

    #[test]
    fn the_pause_doubles_and_both_writers_compute_the_same() {
        let retry = spec(Retry {
            attempts: Some(9),
            backoff: Some("10s".into()),
            ..Retry::default()
        });
        let pause = |ends: &[_]| {
            let settle = || settle(&retry, UID, &attempts(ends), Verdict::Accepted, Stop::None, now());
            assert_eq!(settle(), settle());
            let Some(Settlement::Retry { next_attempt_time }) = settle() else {
                panic!("final")
            };
            next_attempt_time.as_second() - now().as_second()
        };
        assert!((8..=12).contains(&pause(&[EXIT])), "{}", pause(&[EXIT]));
        assert!(
            (16..=24).contains(&pause(&[EXIT, EXIT])),
            "{}",
            pause(&[EXIT, EXIT])
        );
    }
}
