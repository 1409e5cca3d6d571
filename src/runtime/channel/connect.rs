//! Opens one connection: TCP, TLS, HTTP/2, one request whose two bodies stay open.

use super::tls::{self, TlsError};
use crate::settings::Gateway;
use agentrun_protocol::channel::{PATH, TLS_NAME};
use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For each of: reaching the gateway, and its answer.
const CONNECT: Duration = Duration::from_secs(10);
/// Frames that wait for the network.
const FRAMES: usize = 8;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the gateway did not answer within {CONNECT:?}")]
    Late,
    #[error("the connection failed")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("HTTP failed")]
    Http(#[from] hyper::Error),
    #[error("the request could not be built")]
    Request(#[from] http::Error),
    #[error("the gateway answered {0}")]
    Status(StatusCode),
}

/// Both directions of an open connection.
pub(super) struct Connection {
    /// Bytes for the gateway.
    pub(super) frames: mpsc::Sender<Bytes>,
    /// Bytes from the gateway.
    pub(super) body: Incoming,
}

/// Connects to `address`.
pub(super) async fn connect(
    gateway: &Gateway,
    address: SocketAddr,
    connector: &TlsConnector,
) -> Result<Connection, ConnectError> {
    timeout(CONNECT, open(gateway, address, connector))
        .await
        .unwrap_or(Err(ConnectError::Late))
}

async fn open(
    gateway: &Gateway,
    address: SocketAddr,
    connector: &TlsConnector,
) -> Result<Connection, ConnectError> {
    let token = tokio::fs::read_to_string(&gateway.token_file).await?;
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let stream = connector.connect(tls::server_name()?, tcp).await?;
    let (mut requests, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "the connection to the gateway ended");
        }
    });
    let (frames, queue) = mpsc::channel(FRAMES);
    let request = Request::post(format!("https://{TLS_NAME}{PATH}"))
        .header(header::AUTHORIZATION, format!("Bearer {}", token.trim()))
        .body(Outgoing(queue))?;
    let response = requests.send_request(request).await?;
    if response.status() != StatusCode::OK {
        return Err(ConnectError::Status(response.status()));
    }
    Ok(Connection {
        frames,
        body: response.into_body(),
    })
}

/// A body that gives out what arrives on a queue and ends with it.
struct Outgoing(mpsc::Receiver<Bytes>);

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0
            .poll_recv(context)
            .map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
