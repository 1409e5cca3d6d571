//! The public API on the command line of `agentrun gateway`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Where the public API is, if anywhere.
#[derive(Clone, Debug, clap::Args)]
pub struct ApiSettings {
    /// Whether the public HTTP API is served.
    #[arg(long, env = "AGENTRUN_API", default_value_t = true, action = clap::ArgAction::Set)]
    pub api: bool,
    /// Address of the public HTTP API.
    #[arg(long, env = "AGENTRUN_API_ADDRESS", default_value_t = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 8080))]
    pub api_address: SocketAddr,
    /// Folder with `tls.crt` and `tls.key` for the public API: a mounted Secret of type kubernetes.io/tls, read again when
    /// it changes. Without it the API speaks plain HTTP, for use behind an Ingress or a port-forward.
    #[arg(long, env = "AGENTRUN_API_TLS_DIR")]
    pub api_tls_dir: Option<PathBuf>,
    /// The namespace of the short form `/api/tasks`. Without it only `/api/namespaces/NAMESPACE/…` is there.
    #[arg(long, env = "AGENTRUN_API_NAMESPACE")]
    pub api_namespace: Option<String>,
}
