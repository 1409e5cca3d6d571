//! What a sandbox must not be able to reach; made by the operator, passed as JSON in `AGENTRUN_PROBE`.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Targets of the isolation probe, which runs before any user code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProbeTargets {
    /// Whether work is refused when a target stays open.
    pub required: bool,
    /// Must be closed: a completed TCP handshake within 200 ms means that nothing isolates this Pod.
    pub closed: Vec<SocketAddr>,
    /// Count only when they connect, since nothing may live there (metadata service, outside).
    pub closed_if_there: Vec<SocketAddr>,
}

/// What the probe found; rides in the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Isolation {
    /// All that must be closed was closed, two rounds running.
    Verified,
    /// A target stayed open for ten seconds; no user code ran.
    NotIsolated,
    /// A target stayed open, and the installation allows work all the same.
    NotRequired,
}
