//! `/health`, `/ready` and `/metrics`, over plain HTTP on a port of their own.

use crate::bounds;
use crate::gateway::Gateway;
use http::{Method, Request, Response, StatusCode, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Answers one request.
pub(crate) fn answer<B>(gateway: &Gateway, request: &Request<B>) -> Response<String> {
    if request.method() != Method::GET {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n".into());
    }
    match request.uri().path() {
        "/health" => text(StatusCode::OK, "ok\n".into()),
        "/ready" => match gateway.health.not_ready() {
            None => text(StatusCode::OK, "ok\n".into()),
            Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        },
        "/metrics" => match gateway.metrics.text() {
            Ok(metrics) => text(StatusCode::OK, metrics),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        },
        path => text(
            StatusCode::NOT_FOUND,
            format!("{path} is not here, try /health, /ready or /metrics\n"),
        ),
    }
}

fn text(status: StatusCode, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Serves for ever.
pub(crate) async fn serve(listener: TcpListener, gateway: Arc<Gateway>) {
    let places = Arc::new(Semaphore::new(bounds::OPS_CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let socket = match listener.accept().await {
            Ok((socket, _)) => socket,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(bounds::ACCEPT_PAUSE).await;
                continue;
            }
        };
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                let response = answer(&gateway, &request);
                async move { Ok::<_, std::convert::Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(bounds::OPS_REQUEST)
                .serve_connection(TokioIo::new(socket), service);
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection broken");
            }
            drop(place);
        });
    }
}

#[cfg(test)]
#[path = "ops_tests.rs"]
mod tests;
