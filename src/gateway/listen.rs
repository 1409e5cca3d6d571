//! Listening sockets.

use crate::GatewayError;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;

/// Listens on `address`; where the kernel has no IPv6, `[::]` means all IPv4 addresses.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, GatewayError> {
    let listener = TcpListener::bind(address).await;
    let fallback = address.is_ipv6() && address.ip().is_unspecified();
    match listener {
        Err(error) if fallback && no_ipv6(&error) => {
            let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            TcpListener::bind(address)
                .await
                .map_err(|source| GatewayError::Listen { address, source })
        }
        other => other.map_err(|source| GatewayError::Listen { address, source }),
    }
}

fn no_ipv6(error: &std::io::Error) -> bool {
    // EAFNOSUPPORT: no IPv6 in the kernel. EADDRNOTAVAIL: switched off by sysctl.
    matches!(error.raw_os_error(), Some(97 | 99))
}
