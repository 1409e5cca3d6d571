//! Connections of the public API.

use super::bounds;
use super::stalled::{Waiting, Watched};
use crate::GatewayError;
use crate::bounds::{ACCEPT_PAUSE, HANDSHAKE, SHUTDOWN};
use crate::gateway::Gateway;
use crate::text::chain;
use crate::tls::Certificate;
use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use prometheus::IntCounter;
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// TLS 1.2 and 1.3, HTTP/1.1 only, with whatever certificate `certificate` holds at the moment.
pub(super) fn tls_config(certificate: Arc<Certificate>) -> Result<Arc<rustls::ServerConfig>, GatewayError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(GatewayError::Tls)?
        .with_no_client_auth()
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// How long a connection is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For a request's head; also how long a connection may be idle.
    pub(super) head: Duration,
    /// For a peer that takes nothing.
    pub(super) stall: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: bounds::HEAD,
            stall: bounds::STALL,
        }
    }
}

/// How a connection is served.
#[derive(Clone)]
struct Service {
    router: Router,
    tls: Option<TlsAcceptor>,
    stalled: IntCounter,
    patience: Patience,
    stop: CancellationToken,
}

/// Accepts connections until the gateway stops.
pub(super) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: Router,
    stalled: IntCounter,
    patience: Patience,
    gateway: &Gateway,
) {
    let service = Service {
        router,
        tls: tls.map(TlsAcceptor::from),
        stalled,
        patience,
        stop: gateway.stop.clone(),
    };
    let places = Arc::new(Semaphore::new(bounds::CONNECTIONS));
    loop {
        let accepting = async {
            let place = Arc::clone(&places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            accepted = accepting => accepted,
            () = gateway.stop.cancelled() => return,
        };
        match accepted {
            None => return,
            Some((Ok((socket, _)), place)) => {
                let service = service.clone();
                gateway.tasks.spawn(async move {
                    service.connection(socket).await;
                    drop(place);
                });
            }
            Some((Err(error), _)) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

impl Service {
    async fn connection(self, socket: TcpStream) {
        // Events are small and told at once.
        let _ = socket.set_nodelay(true);
        let _ = set_socket_send_buffer_size(&socket, bounds::SEND_BUFFER);
        let waiting = Waiting::default();
        let socket = Watched::new(socket, waiting.clone());
        let Some(tls) = self.tls.clone() else {
            return self.serve(socket, &waiting).await;
        };
        match tokio::time::timeout(HANDSHAKE, tls.accept(socket)).await {
            Ok(Ok(socket)) => self.serve(socket, &waiting).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
            Err(_) => tracing::debug!("the TLS handshake took too long"),
        }
    }

    async fn serve(self, socket: impl AsyncRead + AsyncWrite + Unpin, waiting: &Waiting) {
        let serving = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.patience.head)
            .max_headers(bounds::HEADERS)
            .max_buf_size(bounds::BUFFER)
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(self.router));
        tokio::pin!(serving);
        let served = tokio::select! {
            served = serving.as_mut() => served,
            () = waiting.too_long(self.patience.stall) => {
                self.stalled.inc();
                tracing::info!("a connection that takes nothing is cut off");
                return;
            }
            () = self.stop.cancelled() => {
                serving.as_mut().graceful_shutdown();
                tokio::time::timeout(SHUTDOWN, serving).await.unwrap_or(Ok(()))
            }
        };
        if let Err(error) = served {
            tracing::debug!(error = chain(&error), "connection broken");
        }
    }
}
