//! `/metrics`, `/healthz` and `/readyz`, for the kubelet and Prometheus.

use crate::health::Watches;
use crate::metrics::Metrics;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A client must have sent its request by then, and gone by then after the answer.
const HEADER_BOUND: Duration = Duration::from_secs(10);
/// Connections at once: a kubelet and a Prometheus need two.
const MAX_CONNECTIONS: usize = 64;

/// What the routes answer from; clones share it.
#[derive(Clone)]
pub struct Probes {
    metrics: Metrics,
    watches: Watches,
    ready: Arc<AtomicBool>,
}

impl Probes {
    /// Not ready yet.
    pub fn new(metrics: Metrics, watches: Watches) -> Self {
        Self {
            metrics,
            watches,
            ready: Arc::default(),
        }
    }

    /// The process can lead, or does.
    pub fn ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// The answer to a path.
    fn answer(&self, path: &str, now: Instant) -> (StatusCode, String) {
        match path {
            "/metrics" => match self.metrics.text() {
                Ok(text) => (StatusCode::OK, text),
                Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
            },
            "/healthz" => match self.watches.faults(now) {
                faults if faults.is_empty() => (StatusCode::OK, "ok\n".to_owned()),
                faults => (StatusCode::SERVICE_UNAVAILABLE, faults.join("\n") + "\n"),
            },
            "/readyz" if self.ready.load(Ordering::Acquire) => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
            _ => (
                StatusCode::NOT_FOUND,
                "there is /metrics, /healthz and /readyz\n".to_owned(),
            ),
        }
    }
}

/// Serves until `stop`.
pub async fn serve(listener: TcpListener, probes: Probes, stop: CancellationToken) {
    let permits = Arc::new(tokio::sync::Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors: waiting frees some, spinning does not.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&permits).try_acquire_owned() else {
            continue;
        };
        let (probes, stop) = (probes.clone(), stop.clone());
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| {
                let answer = respond(&probes, request.uri().path());
                async move { Ok::<_, Infallible>(answer) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_BOUND)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                () = stop.cancelled() => {}
                result = connection => if let Err(error) = result {
                    tracing::debug!(%error, "a probe's connection ended");
                },
            }
            drop(permit);
        });
    }
}

fn respond(probes: &Probes, path: &str) -> Response<Full<Bytes>> {
    let (status, text) = probes.answer(path, Instant::now());
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let plain = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, plain);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes() -> Probes {
        Probes::new(Metrics::new().unwrap(), Watches::default())
    }

    #[test]
    fn readiness_follows_the_start() {
        let probes = probes();
        assert_eq!(
            probes.answer("/readyz", Instant::now()).0,
            StatusCode::SERVICE_UNAVAILABLE
        );
        probes.ready();
        assert_eq!(probes.answer("/readyz", Instant::now()).0, StatusCode::OK);
    }

    // F092
    #[test]
    fn liveness_names_the_watch_that_is_broken() {
        let probes = probes();
        drop(
            probes
                .watches
                .follow("subtasks", futures::stream::empty::<Result<(), ()>>()),
        );
        let (status, text) = probes.answer("/healthz", Instant::now());
        assert_eq!(
            (status, text.as_str()),
            (StatusCode::SERVICE_UNAVAILABLE, "watch subtasks: has ended\n")
        );
    }

    #[test]
    fn unknown_paths_say_what_there_is() {
        assert_eq!(probes().answer("/", Instant::now()).0, StatusCode::NOT_FOUND);
    }
}
