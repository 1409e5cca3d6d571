//! HTTP clients of model endpoints, one for each set of authorities.

use super::fault::{Fault, Next};
use super::limits::Patience;
use agentrun_protocol::chat::ModelFailureCode;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::{io, vec};
use tower::Service;

/// Clients that are kept; beyond that the oldest are made anew when they are needed.
const MAX_CLIENTS: usize = 64;
/// Idle connections to one endpoint that are kept.
const IDLE_CONNECTIONS: usize = 8;

/// A client; clones share its connections.
pub(super) type Client =
    hyper_util::client::legacy::Client<HttpsConnector<HttpConnector<Resolver>>, Full<Bytes>>;

/// The clients by the PEM of their authorities.
#[derive(Debug, Default)]
pub(super) struct Clients {
    known: Mutex<HashMap<Option<Vec<u8>>, Client>>,
}

impl Clients {
    /// The client that trusts these authorities, the system's when there are none.
    pub(super) fn client(&self, authorities: Option<&[u8]>, patience: &Patience) -> Result<Client, Fault> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = authorities.map(<[u8]>::to_vec);
        if let Some(client) = known.get(&key) {
            return Ok(client.clone());
        }
        let client = build(authorities, patience)?;
        if known.len() >= MAX_CLIENTS {
            known.clear();
        }
        known.insert(key, client.clone());
        Ok(client)
    }
}

fn build(authorities: Option<&[u8]>, patience: &Patience) -> Result<Client, Fault> {
    let roots = match authorities {
        Some(pem) => given(pem)?,
        None => systems(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(&format!("TLS cannot be configured: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut connector = HttpConnector::new_with_resolver(Resolver(GaiResolver::new()));
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(patience.connect));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(connector);
    Ok(hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(patience.pooled)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .build(connector))
}

fn given(pem: &[u8]) -> Result<RootCertStore, Fault> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let added = certificate.map(|certificate| roots.add(certificate));
        if !matches!(added, Ok(Ok(()))) {
            return Err(invalid("`caBundleRef` holds what is no certificate"));
        }
    }
    match roots.is_empty() {
        true => Err(invalid("`caBundleRef` holds no certificate in PEM")),
        false => Ok(roots),
    }
}

fn systems() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    for error in &found.errors {
        tracing::warn!(%error, "some certificates of the system cannot be read");
    }
    roots.add_parsable_certificates(found.certs);
    roots
}

fn invalid(message: &str) -> Fault {
    Fault::new(ModelFailureCode::Unreachable, Next::Elsewhere, message)
}

/// Resolves names, but to no link-local address: on clouds the credentials of the node are there.
#[derive(Clone, Debug)]
pub(super) struct Resolver(GaiResolver);

impl Service<Name> for Resolver {
    type Response = vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Response>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolving = self.0.call(name);
        async move {
            let found: Vec<SocketAddr> = resolving.await?.filter(|found| is_allowed(found.ip())).collect();
            match found.is_empty() {
                true => Err(io::Error::other("the name has no address that may be asked")),
                false => Ok(found.into_iter()),
            }
        }
        .boxed()
    }
}

/// Whether models may be at this address.
pub(super) fn is_allowed(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_link_local() && !address.is_unspecified(),
        IpAddr::V6(address) => match translated(address) {
            Some(inner) => is_allowed(IpAddr::V4(inner)),
            None => !address.is_unicast_link_local() && !address.is_unspecified(),
        },
    }
}

/// The IPv4 address that is reached by an IPv6 one: mapped, by NAT64 (RFC 6052) or by 6to4 (RFC 3056).
fn translated(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => address.to_ipv4_mapped(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_clouds_is_no_model() {
        for denied in [
            "169.254.169.254",
            "fe80::1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:a9fe:a9fe::1",
            "0.0.0.0",
            "::",
        ] {
            assert!(!is_allowed(denied.parse().unwrap()), "{denied}");
        }
        for allowed in ["10.0.0.1", "127.0.0.1", "2001:db8::1", "192.0.2.1"] {
            assert!(is_allowed(allowed.parse().unwrap()), "{allowed}");
        }
    }

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        let clients = Clients::default();
        let fault = clients.client(Some(b"no pem"), &Patience::default()).unwrap_err();
        assert!(fault.message.contains("caBundleRef"), "{}", fault.message);
        assert!(clients.client(None, &Patience::default()).is_ok());
    }
}
