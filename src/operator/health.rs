//! Whether the operator still sees the cluster. A watch that fails for long makes the process unhealthy, so that it is
//! restarted instead of looking well and doing nothing; one that is only quiet does not.

use futures::{Stream, StreamExt as _};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A watch may fail for so long: an API server that restarts, or is upgraded.
const FAILING_BOUND: Duration = Duration::from_mins(5);
/// Failures further apart than this are separate ones: the watches retry at least every 30 seconds.
const ONE_OUTAGE: Duration = Duration::from_mins(2);

/// The watches of this process; clones share them.
#[derive(Clone, Debug, Default)]
pub struct Watches(Arc<Mutex<BTreeMap<String, Watch>>>);

#[derive(Clone, Copy, Debug)]
enum Watch {
    Well,
    Failing { since: Instant, last: Instant },
    Ended,
}

impl Watches {
    /// Follows a watch: every event of the stream passes through.
    pub fn follow<T, E, S>(&self, name: &str, stream: S) -> impl Stream<Item = Result<T, E>> + use<T, E, S>
    where
        S: Stream<Item = Result<T, E>>,
    {
        self.record(name, |_| Watch::Well);
        let (watches, name) = (self.clone(), name.to_owned());
        let end = EndOf {
            watches: self.clone(),
            name: name.clone(),
        };
        stream.inspect(move |event| {
            let _ = &end;
            match event {
                Ok(_) => watches.succeeded(&name),
                Err(_) => watches.failed(&name, Instant::now()),
            }
        })
    }

    /// The watch delivered something.
    pub fn succeeded(&self, name: &str) {
        self.record(name, |_| Watch::Well);
    }

    /// The watch failed, and will retry.
    pub fn failed(&self, name: &str, now: Instant) {
        self.record(name, |before| match before {
            Some(Watch::Failing { since, last }) if now.duration_since(last) < ONE_OUTAGE => {
                Watch::Failing { since, last: now }
            }
            _ => Watch::Failing {
                since: now,
                last: now,
            },
        });
    }

    /// The watches that do not work, each with what is wrong.
    pub fn faults(&self, now: Instant) -> Vec<String> {
        let watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watches
            .iter()
            .filter_map(|(name, watch)| watch.fault(now).map(|fault| format!("watch {name}: {fault}")))
            .collect()
    }

    fn record(&self, name: &str, change: impl FnOnce(Option<Watch>) -> Watch) {
        let mut watches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = watches.get(name).copied();
        watches.insert(name.to_owned(), change(before));
    }
}

impl Watch {
    fn fault(self, now: Instant) -> Option<String> {
        match self {
            Self::Well => None,
            Self::Ended => Some("has ended".to_owned()),
            Self::Failing { since, last } => {
                let recent = now.duration_since(last) < ONE_OUTAGE;
                let failing = now.duration_since(since);
                (recent && failing > FAILING_BOUND)
                    .then(|| format!("has been failing for {} s", failing.as_secs()))
            }
        }
    }
}

/// Dropped with the stream, whoever drops it.
struct EndOf {
    watches: Watches,
    name: String,
}

impl Drop for EndOf {
    fn drop(&mut self) {
        self.watches.record(&self.name, |_| Watch::Ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // F092
    #[test]
    fn a_watch_that_fails_on_and_on_is_a_fault_and_a_recovered_one_is_none() {
        let (watches, start) = (Watches::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        for seconds in (0..=330).step_by(30) {
            watches.failed("runs", at(seconds));
        }
        assert_eq!(watches.faults(at(200)), Vec::<String>::new());
        assert_eq!(
            watches.faults(at(331)),
            ["watch runs: has been failing for 331 s"]
        );
        watches.succeeded("runs");
        assert_eq!(watches.faults(at(332)), Vec::<String>::new());
    }

    #[test]
    fn single_failures_far_apart_are_no_outage() {
        let (watches, start) = (Watches::default(), Instant::now());
        for seconds in (0..=3600).step_by(290) {
            watches.failed("runs", start + Duration::from_secs(seconds));
        }
        assert_eq!(
            watches.faults(start + Duration::from_secs(3601)),
            Vec::<String>::new()
        );
    }

    #[tokio::test]
    async fn a_watch_that_ended_is_a_fault() {
        let watches = Watches::default();
        let stream = watches.follow("runs", futures::stream::iter([Ok::<(), ()>(())]));
        assert_eq!(stream.count().await, 1);
        assert_eq!(watches.faults(Instant::now()), ["watch runs: has ended"]);
    }
}
