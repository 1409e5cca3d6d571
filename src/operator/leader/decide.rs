//! When a candidate may take the Lease; time is an argument.

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use std::time::{Duration, Instant};

/// Who stands for election, and how fast.
#[derive(Clone, Debug)]
pub struct Election {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Unique among the candidates.
    pub identity: String,
    /// Others take a Lease that was not renewed for so long.
    pub lease: Duration,
    /// The holder stops when it could not renew for so long: less than `lease` by the time that a write under way may
    /// still take.
    pub renew_deadline: Duration,
    /// Between two requests.
    pub retry: Duration,
}

impl Election {
    /// The periods of the Kubernetes controllers: 15, 10 and 2 seconds.
    pub fn new(namespace: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            identity: identity.to_owned(),
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// The Lease as it was last seen to change.
#[derive(Debug, Default)]
pub(super) struct Observed {
    last: Option<(String, Instant)>,
}

/// What a candidate does next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    Wait,
    Create(Lease),
    Take(Lease),
}

impl Election {
    /// Looks at the Lease; `now` is the candidate's monotonic clock after the answer.
    pub(super) fn step(&self, found: Option<Lease>, observed: &mut Observed, now: Instant) -> Step {
        let Some(lease) = found else {
            return Step::Create(self.taken(ObjectMeta::default(), 0));
        };
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        let since = match &observed.last {
            Some((seen, since)) if *seen == version => *since,
            _ => {
                observed.last = Some((version, now));
                now
            }
        };
        let free = Self::holder(&lease).is_none_or(|holder| holder == self.identity);
        if !free && now.duration_since(since) < self.patience(&lease) {
            return Step::Wait;
        }
        let transitions = lease.spec.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        Step::Take(self.taken(lease.metadata, transitions.saturating_add(1)))
    }

    /// The holder's name; nobody when it gave the Lease back.
    pub(super) fn holder(lease: &Lease) -> Option<&str> {
        lease
            .spec
            .as_ref()?
            .holder_identity
            .as_deref()
            .filter(|holder| !holder.is_empty())
    }

    /// The holder may have been started with a longer duration than we were.
    fn patience(&self, lease: &Lease) -> Duration {
        let theirs = lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or(0);
        self.lease
            .max(Duration::from_secs(u64::try_from(theirs).unwrap_or(0)))
    }

    /// The same Lease, renewed now. The time in it is for people; nobody compares it.
    pub(super) fn renewed(lease: &Lease) -> Lease {
        let spec = LeaseSpec {
            renew_time: Some(MicroTime(Timestamp::now())),
            ..lease.spec.clone().unwrap_or_default()
        };
        Lease {
            metadata: lease.metadata.clone(),
            spec: Some(spec),
        }
    }

    /// The same Lease, without a holder.
    pub(super) fn released(lease: &Lease) -> Lease {
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            ..lease.spec.clone().unwrap_or_default()
        };
        Lease {
            metadata: lease.metadata.clone(),
            spec: Some(spec),
        }
    }

    fn taken(&self, metadata: ObjectMeta, transitions: i32) -> Lease {
        let now = MicroTime(Timestamp::now());
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(self.lease.as_secs()).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        let metadata = ObjectMeta {
            name: Some(super::LEASE.to_owned()),
            ..metadata
        };
        Lease {
            metadata,
            spec: Some(spec),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(holder: &str, version: &str) -> Lease {
        let other = Election::new("sys", holder);
        let metadata = ObjectMeta {
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        other.taken(metadata, 3)
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_is_taken_only_after_it_was_seen_unchanged_for_its_whole_duration() {
        let (me, start, mut observed) = (Election::new("sys", "me"), Instant::now(), Observed::default());
        let mut step = |version: &str, at: u64| {
            me.step(Some(held("other", version)), &mut observed, start + seconds(at))
        };
        assert_eq!(step("1", 0), Step::Wait);
        assert_eq!(step("1", 14), Step::Wait);
        assert_eq!(step("2", 15), Step::Wait);
        assert_eq!(step("2", 29), Step::Wait);
        let Step::Take(lease) = step("2", 30) else {
            panic!("it should be taken")
        };
        assert_eq!(Election::holder(&lease), Some("me"));
        assert_eq!(lease.metadata.resource_version.as_deref(), Some("2"));
        assert_eq!(lease.spec.unwrap().lease_transitions, Some(4));
    }

    #[test]
    fn a_longer_lease_of_the_holder_is_respected() {
        let (me, start, mut observed) = (Election::new("sys", "me"), Instant::now(), Observed::default());
        let mut lease = held("other", "1");
        lease.spec.as_mut().unwrap().lease_duration_seconds = Some(60);
        assert_eq!(me.step(Some(lease.clone()), &mut observed, start), Step::Wait);
        assert_eq!(
            me.step(Some(lease.clone()), &mut observed, start + seconds(59)),
            Step::Wait
        );
        assert!(matches!(
            me.step(Some(lease), &mut observed, start + seconds(60)),
            Step::Take(_)
        ));
    }

    #[test]
    fn a_missing_or_released_lease_is_taken_at_once() {
        let (me, now) = (Election::new("sys", "me"), Instant::now());
        assert!(matches!(
            me.step(None, &mut Observed::default(), now),
            Step::Create(_)
        ));
        let released = Election::released(&held("other", "1"));
        assert!(matches!(
            me.step(Some(released), &mut Observed::default(), now),
            Step::Take(_)
        ));
    }

    #[test]
    fn the_holder_stops_before_others_may_start() {
        let election = Election::new("sys", "me");
        assert!(election.renew_deadline + election.retry < election.lease);
    }
}
