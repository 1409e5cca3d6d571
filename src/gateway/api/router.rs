//! Which path does what.

use super::problem::{Code, Problem};
use super::{Api, bounds, chat, create, flow, tasks};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use http::{HeaderValue, StatusCode, Uri, header};
use std::sync::Arc;

/// The description of this API, which a test compares with the code.
const OPENAPI: &str = include_str!("../../../docs/openapi.json");

/// Everything that is served, without a socket.
pub(super) fn router(api: Arc<Api>) -> Router {
    Router::new()
        .route("/health", get(async || "ok\n"))
        .route("/ready", get(ready))
        .route("/openapi.json", get(openapi))
        .nest("/api", tenant())
        .nest("/api/namespaces/{namespace}", tenant())
        .fallback(async |uri: Uri| {
            let message = format!("{} is not here, /openapi.json says what is", uri.path());
            Problem::new(Code::NotFound, message)
        })
        .method_not_allowed_fallback(async |uri: Uri| {
            let message = format!("{} takes other methods, /openapi.json says which", uri.path());
            Problem::new(Code::MethodNotAllowed, message)
        })
        .layer(from_fn_with_state(Arc::clone(&api), counted))
        .with_state(api)
}

/// What there is in a namespace.
fn tenant() -> Router<Arc<Api>> {
    Router::new()
        .route("/tasks", get(tasks::list).post(create::create))
        .route("/tasks/{id}", get(tasks::get))
        .route("/tasks/{id}/stream", get(tasks::events))
        .route("/tasks/{id}/cancel", post(tasks::cancel))
        .route("/tasks/{id}/answer", post(tasks::no_input))
        .route("/tasks/{id}/approve", post(tasks::no_input))
        .route("/v1/models", get(chat::models))
        .route("/v1/chat/completions", post(chat::complete))
        .route("/flow/{function}", post(flow::call))
        .route("/flow/{skill}/{function}", post(flow::call))
}

async fn ready(State(api): State<Arc<Api>>) -> Response {
    match api.ready() {
        Ok(()) => "ok\n".into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn openapi() -> Response {
    let json = HeaderValue::from_static("application/json");
    (StatusCode::OK, [(header::CONTENT_TYPE, json)], OPENAPI).into_response()
}

/// Bounds the requests that are worked on together, and counts the answers.
async fn counted(State(api): State<Arc<Api>>, request: Request, next: Next) -> Response {
    let method = request.method().to_string();
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "none".to_owned(), |route| route.as_str().to_owned());
    let response = if let Ok(_place) = api.requests.try_acquire() {
        next.run(request).await
    } else {
        let most = bounds::REQUESTS;
        let message = format!("{most} requests are worked on, which is the limit: come back");
        Problem::new(Code::TooManyRequests, message).into_response()
    };
    let status = response.status();
    // A method of a stranger's making would be a label of its own.
    let known = ["GET", "POST", "HEAD"].contains(&method.as_str());
    let method = if known { method.as_str() } else { "other" };
    api.metrics
        .requests
        .with_label_values(&[method, &route, status.as_str()])
        .inc();
    response
}
