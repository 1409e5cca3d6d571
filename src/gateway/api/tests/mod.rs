//! The API over a scripted API server that keeps what it is given.

mod calls;
mod chat;
mod door;
mod fake;
mod load;
mod making;
mod openapi;
mod reading;
mod sockets;
mod streams;

use super::{Api, router, server};
use crate::gateway::Gateway;
use crate::health::Watch;
use crate::metrics::Metrics;
use crate::models::{Models, Patience};
use axum::body::Body;
use axum::response::Response;
use fake::Fake;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("not in time")
}

/// Waits until something holds.
async fn until(holds: impl Fn() -> bool) {
    within(async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A gateway that has seen nothing yet.
fn gateway(fake: &Fake) -> Arc<Gateway> {
    let models = Models::new(Patience::default(), None);
    Gateway::new(fake.client(), Metrics::new().unwrap(), models)
}

/// One gateway on an API server.
struct Stage {
    fake: Fake,
    gateway: Arc<Gateway>,
    api: Arc<Api>,
}

/// An answer that was read to its end.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Value,
}

impl Stage {
    fn new() -> Self {
        Self::on(&Fake::default())
    }

    /// A gateway on an API server that others use, too.
    fn on(fake: &Fake) -> Self {
        let gateway = gateway(fake);
        gateway.health.certificate_loaded();
        for watch in Watch::ALL {
            gateway.health.watch_synced(watch);
        }
        let api = Api::new(fake.client(), Arc::clone(&gateway), Some("team-a".into())).unwrap();
        Self {
            fake: fake.clone(),
            gateway,
            api,
        }
    }

    async fn send(&self, request: Request<Body>) -> Response {
        within(router::router(Arc::clone(&self.api)).oneshot(request))
            .await
            .unwrap()
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let response = self.send(request).await;
        let (parts, body) = response.into_parts();
        let bytes = within(body.collect()).await.unwrap().to_bytes();
        Answer {
            status: parts.status,
            headers: parts.headers,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.answer(request("GET", path, "lena", &[], "")).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        self.answer(request("POST", path, "lena", &[], body.to_string()))
            .await
    }

    /// Stores a run or sub-task, and tells of it as the watch does.
    fn see(&self, object: &Value) {
        self.fake.put(object);
        if object["kind"] == "AgentRun" {
            self.gateway
                .sightings
                .run(&serde_json::from_value(object.clone()).unwrap());
        } else {
            self.gateway
                .sightings
                .subtask(&serde_json::from_value(object.clone()).unwrap());
        }
    }

    /// Serves over loopback.
    async fn listen(&self, patience: server::Patience) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (router, gateway) = (router::router(Arc::clone(&self.api)), Arc::clone(&self.gateway));
        let stalled = self.api.metrics.stalled.clone();
        tokio::spawn(async move { server::serve(listener, None, router, stalled, patience, &gateway).await });
        address
    }
}

fn request(
    method: &str,
    path: &str,
    token: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.into()).unwrap()
}
