//! What can stop a gateway.

use std::{io, net::SocketAddr, path::PathBuf};

/// Why the gateway could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address could not be listened on.
    #[error("cannot listen on {address}, is another process there?")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// No Kubernetes API is configured.
    #[error("no Kubernetes API server is configured, run in a Pod or set KUBECONFIG")]
    Configuration(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The Kubernetes client could not be built.
    #[error("cannot build the Kubernetes client")]
    Client(#[source] Box<kube::Error>),
    /// A metric is registered twice or badly named.
    #[error("cannot register the metrics")]
    Metrics(#[from] prometheus::Error),
    /// TLS 1.3 is not available.
    #[error("cannot configure TLS 1.3")]
    Tls(#[source] rustls::Error),
    /// The certificate cannot be used.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// Why a certificate could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file is missing or cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file holds no PEM of the expected kind.
    #[error("{path} holds no usable PEM")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// Certificate and key cannot be used together, as happens for a moment while both are replaced.
    #[error("certificate and key do not belong together or are not supported")]
    Key(#[source] rustls::Error),
}
