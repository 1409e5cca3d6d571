//! Names of objects that several parts of AgentRun agree on.

/// ServiceAccount of every sandbox in a user's namespace: no rights, no automount.
pub const SANDBOX_SERVICE_ACCOUNT: &str = "agentrun-sandbox";
/// Secret in the operator's namespace that holds the CA's key.
pub const CA_SECRET: &str = "agentrun-ca";
/// Secret in the operator's namespace that holds the gateway's serving certificate.
pub const GATEWAY_TLS_SECRET: &str = "agentrun-gateway-tls";
/// ConfigMap in the operator's namespace that remembers how the executor is injected, per runtime image.
pub const INJECTION_CONFIG_MAP: &str = "agentrun-injection";
