//! Opens one connection: TCP, TLS, HTTP/2, one request whose two bodies stay open.

use super::tls::Trust;
use crate::settings::Gateway;
use crate::task::Task;
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
    /// Moves the bytes. A peer that is gone without a word would keep it for ever.
    pub(super) driver: Task<()>,
}

/// Connects to `address`.
pub(super) async fn connect(
    gateway: &Gateway,
    address: SocketAddr,
    trust: &Trust,
) -> Result<Connection, ConnectError> {
    timeout(CONNECT, open(gateway, address, trust))
        .await
        .unwrap_or(Err(ConnectError::Late))
}

async fn open(gateway: &Gateway, address: SocketAddr, trust: &Trust) -> Result<Connection, ConnectError> {
    let token = tokio::fs::read_to_string(&gateway.token_file).await?;
    let tcp = TcpStream::connect(address).await?;
    tcp.set_nodelay(true)?;
    let stream = trust.connector.connect(trust.name.clone(), tcp).await?;
    let (mut requests, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    let driver = Task::spawn(async move {
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
        driver,
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
