//! The command line of `agentrun gateway`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Arguments of `agentrun gateway`.
#[derive(Clone, Debug, clap::Args)]
pub struct Settings {
    /// Address of the channel that the runtimes connect to (TLS). On a machine without IPv6 an unspecified
    /// IPv6 address means all IPv4 addresses.
    #[arg(long, env = "AGENTRUN_CHANNEL_ADDRESS", default_value_t = everywhere(8443))]
    pub channel_address: SocketAddr,
    /// Address of the canary: it accepts and closes. Sandboxes must not reach it.
    #[arg(long, env = "AGENTRUN_CANARY_ADDRESS", default_value_t = everywhere(8444))]
    pub canary_address: SocketAddr,
    /// Address of `/health`, `/ready` and `/metrics` (plain HTTP).
    #[arg(long, env = "AGENTRUN_OPS_ADDRESS", default_value_t = everywhere(9090))]
    pub ops_address: SocketAddr,
    /// Folder with `tls.crt` and `tls.key`: the mounted Secret `agentrun-gateway-tls`. It is waited for, and
    /// read again when it changes.
    #[arg(long, env = "AGENTRUN_TLS_DIR", default_value = "/etc/agentrun/tls")]
    pub tls_dir: PathBuf,
    /// Most connections of runtimes at the same time; further ones wait.
    #[arg(long, env = "AGENTRUN_MAX_CONNECTIONS", default_value_t = 4096)]
    pub max_connections: usize,
    /// Most tokens that the models answer the runs of one namespace with in one day (UTC), requests included, as far as this
    /// gateway has seen since its start. Without it there are the runs' own limits alone.
    #[arg(long, env = "AGENTRUN_DAILY_TOKENS")]
    pub daily_tokens: Option<u64>,
    /// The public API.
    #[command(flatten)]
    pub api: crate::ApiSettings,
}

const fn everywhere(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port)
}
