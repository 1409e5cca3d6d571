//! TLS and HTTP/2 under the channel.

use crate::auth::Reviewer;
use crate::bounds;
use crate::channel::handle;
use crate::gateway::Gateway;
use crate::text::chain;
use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// Accepts runtimes until the gateway stops.
pub(crate) async fn serve<R: Reviewer>(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    most: usize,
    reviewer: Arc<R>,
    gateway: Arc<Gateway>,
) {
    let acceptor = TlsAcceptor::from(tls);
    let places = Arc::new(Semaphore::new(most));
    loop {
        let Some((socket, place)) = next(&listener, &places, &gateway).await else {
            return;
        };
        let (acceptor, reviewer) = (acceptor.clone(), Arc::clone(&reviewer));
        let gateway = Arc::clone(&gateway);
        let tasks = gateway.tasks.clone();
        tasks.spawn(async move {
            connection(socket, acceptor, reviewer, gateway).await;
            drop(place);
        });
    }
}

/// The next connection with its place, `None` when the gateway stops.
async fn next(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    gateway: &Gateway,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    loop {
        let accepting = async {
            let place = Arc::clone(places).acquire_owned().await.ok()?;
            Some((listener.accept().await, place))
        };
        let accepted = tokio::select! {
            accepted = accepting => accepted?,
            () = gateway.stop.cancelled() => return None,
        };
        match accepted {
            (Ok((socket, _)), place) => return Some((socket, place)),
            (Err(error), _) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(bounds::ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection<R: Reviewer>(
    socket: TcpStream,
    acceptor: TlsAcceptor,
    reviewer: Arc<R>,
    gateway: Arc<Gateway>,
) {
    // Frames are small and answered at once.
    let _ = socket.set_nodelay(true);
    let handshake = tokio::time::timeout(bounds::HANDSHAKE, acceptor.accept(socket)).await;
    let socket = match handshake {
        Ok(Ok(socket)) => socket,
        Ok(Err(error)) => return refused(&gateway, "Handshake", &error.to_string()),
        Err(_) => return refused(&gateway, "Handshake", "the handshake took too long"),
    };
    let (open, opens) = watch::channel(0_usize);
    let open = Arc::new(open);
    let service = service_fn(|request| {
        let (gateway, reviewer) = (Arc::clone(&gateway), Arc::clone(&reviewer));
        let counted = Counted::new(&open);
        async move {
            let response = handle(gateway, &*reviewer, request).await;
            // The count lives as long as the body: as the channel.
            let counting = response.map(|body| {
                body.map_frame(move |frame| {
                    let _ = &counted;
                    frame
                })
            });
            Ok::<_, std::convert::Infallible>(counting)
        }
    });
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new())
        .max_concurrent_streams(bounds::STREAMS_PER_CONNECTION);
    let serving = http.serve_connection(TokioIo::new(socket), service);
    tokio::pin!(serving);
    tokio::select! {
        served = serving.as_mut() => closed(served),
        () = idle(opens) => {
            serving.as_mut().graceful_shutdown();
            closed(tokio::time::timeout(bounds::HANDSHAKE, serving).await.unwrap_or(Ok(())));
        }
        () = gateway.stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            closed(tokio::time::timeout(bounds::SHUTDOWN, serving).await.unwrap_or(Ok(())));
        }
    }
}

fn refused(gateway: &Gateway, code: &'static str, cause: &str) {
    gateway.metrics.refusals.with_label_values(&[code]).inc();
    tracing::debug!(code, cause, "connection refused");
}

fn closed(served: hyper::Result<()>) {
    if let Err(error) = served {
        tracing::debug!(error = chain(&error), "connection broken");
    }
}

/// Counts an open stream of a connection.
struct Counted(Arc<watch::Sender<usize>>);

impl Counted {
    fn new(open: &Arc<watch::Sender<usize>>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Ends when no stream has been open for a while.
async fn idle(mut opens: watch::Receiver<usize>) {
    loop {
        if opens.wait_for(|count| *count == 0).await.is_err() {
            return;
        }
        let again = opens.wait_for(|count| *count > 0);
        if tokio::time::timeout(bounds::IDLE_CONNECTION, again)
            .await
            .is_err()
        {
            return;
        }
    }
}
