//! Names of objects, containers, audiences and ports that several parts of AgentRun agree on.

/// ServiceAccount of every sandbox in a user's namespace: no rights, no automount.
pub const SANDBOX_SERVICE_ACCOUNT: &str = "agentrun-sandbox";
/// Prefix of an egress policy's name; the hash of its rules follows.
pub const EGRESS_POLICY_PREFIX: &str = "agentrun-egress-";
/// Secret in the operator's namespace that holds the CA's key.
pub const CA_SECRET: &str = "agentrun-ca";
/// Secret in the operator's namespace that holds the gateway's serving certificate.
pub const GATEWAY_TLS_SECRET: &str = "agentrun-gateway-tls";
/// ConfigMap in the operator's namespace that remembers how the executor is injected, per runtime image.
pub const INJECTION_CONFIG_MAP: &str = "agentrun-injection";

/// Name of the trusted container of a sandbox Pod.
pub const RUNTIME_CONTAINER: &str = "runtime";
/// Name of the untrusted container of a sandbox Pod.
pub const SANDBOX_CONTAINER: &str = "sandbox";

/// TLS name of the gateway, whatever address it is reached at.
pub const GATEWAY_TLS_NAME: &str = "agentrun-gateway";
/// Audience of the token with which a runtime proves who it is.
pub const CHANNEL_AUDIENCE: &str = "agentrun-gateway";
/// Audience of tokens for the public API.
pub const API_AUDIENCE: &str = "agentrun-api";
/// Port of the channel.
pub const CHANNEL_PORT: u16 = 8443;
/// Port of the gateway that must be closed for sandboxes.
pub const CANARY_PORT: u16 = 8444;
