//! Environment variables that the platform sets. Users cannot set names with this prefix.

/// Prefix of all of them.
pub const PREFIX: &str = "AGENTRUN_";

/// In `runtime`: address and port of the gateway, `IP:8443`.
pub const GATEWAY: &str = "AGENTRUN_GATEWAY";
/// In `runtime`: the CA certificates of the gateway in PEM; two of them during a rotation.
pub const GATEWAY_CA: &str = "AGENTRUN_GATEWAY_CA";
/// In `runtime`: what the isolation probe looks at.
pub const PROBE: &str = "AGENTRUN_PROBE";

/// In user code: the file that holds the input.
pub const INPUT: &str = "AGENTRUN_INPUT";
/// In user code: the file that a command writes its output to.
pub const OUTPUT: &str = "AGENTRUN_OUTPUT";
