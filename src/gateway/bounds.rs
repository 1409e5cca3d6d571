//! Every bound of this room.

use std::time::Duration;

/// A TLS handshake that takes longer is given up.
pub(crate) const HANDSHAKE: Duration = Duration::from_secs(10);
/// A runtime that has not said hello after this time is given up. It says it when its sandbox container runs, so this
/// is longer than the default `startTimeout` of 10 minutes.
pub(crate) const HELLO: Duration = Duration::from_mins(15);
/// A connection on which no channel is open for this long is closed.
pub(crate) const IDLE_CONNECTION: Duration = Duration::from_secs(15);
/// One message that the peer does not take for this long ends the stream.
pub(crate) const SEND: Duration = Duration::from_secs(30);
/// How often the certificate's files are looked at. The kubelet itself brings a changed Secret after up to a minute.
pub(crate) const CERTIFICATE_POLL: Duration = Duration::from_secs(10);
/// How often a missing certificate is looked for at start.
pub(crate) const CERTIFICATE_WAIT: Duration = Duration::from_millis(500);
/// Channels on one connection. A runtime needs one, and a second while it replaces the first.
pub(crate) const STREAMS_PER_CONNECTION: u32 = 4;
/// Frames that wait for one slow runtime before the sender waits.
pub(crate) const OUTBOX: usize = 4;
/// Digests that one runtime may ask for before the first is sent.
pub(crate) const GETS: usize = 1024;
/// Longest bearer token in bytes; projected tokens have about 1,200.
pub(crate) const TOKEN: usize = 16 * 1024;
/// Token reviews at the same time.
pub(crate) const REVIEWS: usize = 32;
/// Connections to `/health`, `/ready` and `/metrics` at the same time.
pub(crate) const OPS_CONNECTIONS: usize = 64;
/// A scrape or probe that takes longer is given up.
pub(crate) const OPS_REQUEST: Duration = Duration::from_secs(10);
/// After a failed `accept` (no descriptors left), how long until the next.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long the API server keeps a watch open, below the idle limits of proxies and of the client.
pub(crate) const WATCH_SECONDS: u32 = 290;
/// A watch that has failed for this long makes the gateway unready.
pub(crate) const WATCH_FAILING: Duration = Duration::from_mins(1);
/// First and longest pause between two tries of a status write.
pub(crate) const STORE_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// A result that could not be stored in this time is left to the runtime, which posts it again.
pub(crate) const STORE: Duration = Duration::from_mins(10);
/// At shutdown, how long writes that are under way may take.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(10);
/// Between SIGTERM and SIGKILL of work that is cancelled, in milliseconds.
pub(crate) const CANCEL_GRACE_MS: u64 = 5_000;
/// How long an assignment waits for an object that it names before it ends as an error.
pub(crate) const REFERENCE: Duration = Duration::from_secs(30);
/// Objects per page of a list.
pub(crate) const PAGE: u32 = 500;
/// How long a ConfigMap is kept after it was read.
pub(crate) const CONFIG_MAP_AGE: Duration = Duration::from_secs(5);
/// How long a Secret is. A key that is not taken is read again at once.
pub(crate) const SECRET_AGE: Duration = Duration::from_secs(30);
/// ConfigMaps that are kept at a time, and Secrets.
pub(crate) const RECENT_OBJECTS: usize = 64;
/// File lists of skills that are kept.
pub(crate) const SKILL_FOLDERS: usize = 256;
/// An assignment that waits for something is tried again after this time at the latest.
pub(crate) const RETRY: Duration = Duration::from_secs(1);
/// Delegates of one run that are made at all, those that the operator refuses included: twice of what a run may have.
pub(crate) const DELEGATES: usize = 100;
/// Delegations of one message.
pub(crate) const DELEGATIONS: usize = 256;
