//! The serving certificate: waited for at start, reloaded when it changes.

use crate::error::CertificateError;
use crate::text::chain;
use crate::{GatewayError, bounds};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// TLS 1.3 only, HTTP/2 only, with whatever certificate `certificate` holds at the moment.
pub(crate) fn server_config(certificate: Arc<Certificate>) -> Result<ServerConfig, GatewayError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(GatewayError::Tls)?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// The certificate and key of a folder.
#[derive(Debug)]
pub(crate) struct Certificate {
    folder: PathBuf,
    current: RwLock<Loaded>,
}

#[derive(Clone, Debug)]
struct Loaded {
    pem: Pem,
    key: Arc<CertifiedKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Pem {
    certificates: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Loads the folder's files, waiting until they are there and belong together.
    pub(crate) async fn wait_for(folder: PathBuf) -> Arc<Self> {
        let mut told = false;
        loop {
            match load(&folder).await {
                Ok(loaded) => {
                    tracing::info!(folder = %folder.display(), "serving certificate loaded");
                    let current = RwLock::new(loaded);
                    return Arc::new(Self { folder, current });
                }
                Err(error) if !told => {
                    told = true;
                    tracing::warn!(error = chain(&error), folder = %folder.display(), "waiting for the serving certificate");
                }
                Err(_) => {}
            }
            tokio::time::sleep(bounds::CERTIFICATE_WAIT).await;
        }
    }

    /// Looks at the files again; true if another certificate is served from now on.
    pub(crate) async fn reload(&self) -> Result<bool, CertificateError> {
        let pem = read(&self.folder).await?;
        if pem == self.loaded().pem {
            return Ok(false);
        }
        let loaded = parse(&self.folder, pem)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(true)
    }

    /// Reloads at an interval, for ever. A certificate that cannot be used leaves the one before in place.
    pub(crate) async fn keep_fresh(self: Arc<Self>) {
        let mut interval = tokio::time::interval(bounds::CERTIFICATE_POLL);
        loop {
            interval.tick().await;
            match self.reload().await {
                Ok(false) => {}
                Ok(true) => tracing::info!("serving certificate reloaded"),
                Err(error) => {
                    tracing::warn!(
                        error = chain(&error),
                        "serving certificate not reloaded, the one before stays"
                    );
                }
            }
        }
    }

    fn loaded(&self) -> Loaded {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.loaded().key)
    }
}

async fn load(folder: &Path) -> Result<Loaded, CertificateError> {
    parse(folder, read(folder).await?)
}

async fn read(folder: &Path) -> Result<Pem, CertificateError> {
    let file = async |name: &str| {
        let path = folder.join(name);
        let bytes = tokio::fs::read(&path).await;
        bytes.map_err(|source| CertificateError::Read { path, source })
    };
    Ok(Pem {
        certificates: file("tls.crt").await?,
        key: file("tls.key").await?,
    })
}

fn parse(folder: &Path, pem: Pem) -> Result<Loaded, CertificateError> {
    let bad = |name: &str| {
        let path = folder.join(name);
        move |source| CertificateError::Pem { path, source }
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem.certificates).collect();
    let chain = chain.map_err(bad("tls.crt"))?;
    let key = PrivateKeyDer::from_pem_slice(&pem.key).map_err(bad("tls.key"))?;
    let provider = rustls::crypto::ring::default_provider();
    let key = CertifiedKey::from_der(chain, key, &provider).map_err(CertificateError::Key)?;
    Ok(Loaded {
        pem,
        key: Arc::new(key),
    })
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
