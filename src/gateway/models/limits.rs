//! Every bound of the model proxy.

use std::time::Duration;

/// Model calls of one stream at the same time.
pub(super) const CALLS: usize = 8;
/// Bytes of requests that are collected or asked in the whole gateway at the same time.
pub(super) const REQUESTS: usize = 128 << 20;
/// Text that followers get is sent when it has this many bytes...
pub(super) const TEXT: usize = 2048;
/// ... or is this old.
pub(super) const TEXT_AGE: Duration = Duration::from_millis(100);
/// Followers that are slower than the model lose text beyond this many bytes.
pub(super) const TEXT_KEPT: usize = 16 * 1024;
/// The longest body of an error that is read.
pub(super) const ERROR_BODY: usize = 64 * 1024;
/// How long the watches get to show whose call it is.
pub(super) const CALLER: Duration = Duration::from_secs(10);
/// Probes at the same time.
pub(super) const PROBES: usize = 8;
/// A Model that is not ready is looked at again after this time, and each time later by as much again ...
pub(super) const PROBE_SOON: Duration = Duration::from_secs(5);
/// ... until it is looked at this often; one that is ready and suspected, too.
pub(super) const PROBE_AGAIN: Duration = Duration::from_mins(2);
/// ... or sooner where an object that it names is missing: that costs the endpoint nothing.
pub(super) const PROBE_MISSING: Duration = Duration::from_secs(10);
/// A probe that takes longer has found nobody.
pub(super) const PROBE: Duration = Duration::from_mins(1);
/// Tries to write what a probe found.
pub(super) const PROBE_WRITES: u32 = 3;
/// Several gateways see a changed Model at once: the first to look spares the others' calls.
pub(super) const PROBE_SPREAD: Duration = Duration::from_secs(1);

/// How long to wait for a model.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    /// For a connection.
    pub(super) connect: Duration,
    /// For the first event of an answer. Small machines read a long conversation for minutes.
    pub(super) first: Duration,
    /// Between two events.
    pub(super) between: Duration,
    /// For a whole answer.
    pub(super) total: Duration,
    /// For a whole call with all its tries and models.
    pub(super) call: Duration,
    /// First and longest pause between two tries.
    pub(super) pause: (Duration, Duration),
    /// The longest that an endpoint may make us wait by `Retry-After`.
    pub(super) retry_after: Duration,
    /// Tries of the last model; those before it get half of them.
    pub(super) tries: u32,
    /// How long an idle connection is kept.
    pub(super) pooled: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first: Duration::from_mins(5),
            between: Duration::from_mins(2),
            total: Duration::from_mins(20),
            call: Duration::from_mins(30),
            pause: (Duration::from_millis(500), Duration::from_secs(30)),
            retry_after: Duration::from_mins(2),
            tries: 6,
            pooled: Duration::from_secs(30),
        }
    }
}
