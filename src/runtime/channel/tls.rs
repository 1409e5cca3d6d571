//! TLS 1.3 towards the gateway, trusting the given authorities alone.

use agentrun_protocol::channel::TLS_NAME;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio_rustls::TlsConnector;

/// The given authorities are of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM.
    #[error("the gateway's authority is no PEM certificate")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// No certificate in it.
    #[error("the gateway's authority holds no certificate")]
    Empty,
    /// A certificate is not accepted.
    #[error("the gateway's authority is not accepted")]
    Rustls(#[from] rustls::Error),
}

/// Whom to trust, and by which name.
#[derive(Clone)]
pub struct Trust {
    pub(super) connector: TlsConnector,
    pub(super) name: ServerName<'static>,
}

/// Trusts the certificates of `pem`.
pub fn trust(pem: &str) -> Result<Trust, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate?)?;
    }
    if roots.is_empty() {
        return Err(TlsError::Empty);
    }
    let name =
        ServerName::try_from(TLS_NAME).map_err(|_| TlsError::Rustls(rustls::Error::UnsupportedNameType))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Trust {
        connector: TlsConnector::from(Arc::new(config)),
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_without_a_certificate_is_refused_at_the_start() {
        assert!(matches!(trust("no PEM"), Err(TlsError::Empty)));
    }
}
