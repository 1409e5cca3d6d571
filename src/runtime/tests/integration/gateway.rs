//! A gateway that says what a test tells it to.

use agentrun_protocol::channel::{PATH, TLS_NAME, ToGateway, ToRuntime};
use agentrun_protocol::frame::{Decoder, encode};
use agentrun_protocol::version;
use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

pub(crate) const DEADLINE: Duration = Duration::from_mins(1);
pub(crate) const TOKEN: &str = "token-of-this-pod";

/// Waits for something that must happen.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(DEADLINE, future)
        .await
        .unwrap_or_else(|_| panic!("{what} did not happen within {DEADLINE:?}"))
}

pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    peers: mpsc::UnboundedReceiver<Peer>,
    _listener: AbortOnDrop,
}

/// One connection.
pub(crate) struct Peer {
    frames: mpsc::Sender<Bytes>,
    messages: mpsc::UnboundedReceiver<ToGateway>,
    connection: AbortOnDrop,
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Gateway {
    pub(crate) async fn start() -> Gateway {
        let certified = rcgen::generate_simple_self_signed([TLS_NAME.to_owned()]).unwrap();
        let key = certified.signing_key.serialize_der().try_into().unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, peers) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(acceptor.clone(), stream, sender.clone()));
            }
        });
        Gateway {
            address,
            authority: certified.cert.pem(),
            peers,
            _listener: AbortOnDrop(listening),
        }
    }

    /// The next connection, after hello and welcome.
    pub(crate) async fn peer(&mut self) -> Peer {
        let mut peer = self.stranger().await;
        assert!(matches!(peer.next().await, ToGateway::Hello { .. }));
        peer.say(ToRuntime::Welcome {
            protocol: version::CURRENT,
        })
        .await;
        peer
    }

    /// The next connection, before any message.
    pub(crate) async fn stranger(&mut self) -> Peer {
        soon("a connection", self.peers.recv()).await.unwrap()
    }
}

impl Peer {
    /// The next message that is no ping.
    pub(crate) async fn next(&mut self) -> ToGateway {
        loop {
            match soon("a message", self.messages.recv())
                .await
                .expect("the runtime closed the stream")
            {
                ToGateway::Ping => self.say(ToRuntime::Pong).await,
                message => return message,
            }
        }
    }

    /// Whether the runtime closes the stream without another word.
    pub(crate) async fn closes(&mut self) -> bool {
        soon("the end of the stream", self.messages.recv())
            .await
            .is_none()
    }

    pub(crate) async fn say(&self, message: ToRuntime) {
        self.frames.send(encode(&message).unwrap().into()).await.unwrap();
    }

    /// Breaks the connection without a word.
    pub(crate) fn kill(self) {
        self.connection.0.abort();
    }
}

async fn serve(acceptor: TlsAcceptor, stream: TcpStream, peers: mpsc::UnboundedSender<Peer>) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let (start, started) = tokio::sync::oneshot::channel();
    let connection = tokio::spawn(async move {
        let start = std::sync::Mutex::new(Some(start));
        let service = service_fn(|request| {
            let (response, parts) = answer(request);
            if let (Some(parts), Some(start)) = (parts, start.lock().unwrap().take()) {
                start.send(parts).ok();
            }
            std::future::ready(Ok::<_, Infallible>(response))
        });
        let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        server.serve_connection(TokioIo::new(stream), service).await.ok();
    });
    let connection = AbortOnDrop(connection);
    let Ok((frames, messages)) = started.await else {
        return;
    };
    peers
        .send(Peer {
            frames,
            messages,
            connection,
        })
        .ok();
}

type Parts = (mpsc::Sender<Bytes>, mpsc::UnboundedReceiver<ToGateway>);

fn answer(request: Request<Incoming>) -> (Response<Outgoing>, Option<Parts>) {
    let (frames, queue) = mpsc::channel(64);
    let mut response = Response::new(Outgoing(queue));
    let authorized = request
        .headers()
        .get(header::AUTHORIZATION)
        .is_some_and(|v| v == &format!("Bearer {TOKEN}"));
    if !authorized || request.uri().path() != PATH {
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return (response, None);
    }
    let (sender, messages) = mpsc::unbounded_channel();
    tokio::spawn(read(request.into_body(), sender));
    (response, Some((frames, messages)))
}

async fn read(mut body: Incoming, messages: mpsc::UnboundedSender<ToGateway>) {
    let mut decoder = Decoder::default();
    while let Some(Ok(frame)) = body.frame().await {
        decoder.push(frame.data_ref().unwrap());
        while let Some(message) = decoder.next().unwrap() {
            messages.send(message).ok();
        }
    }
}

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
