//! The one route: who may open a channel.

use super::outbox::Outbox;
use super::session;
use crate::auth::{AuthError, PodIdentity, Reviewer};
use crate::bounds;
use crate::gateway::Gateway;
use crate::text::chain;
use agentrun_protocol::channel::{PATH, Refusal, ToRuntime};
use agentrun_protocol::frame;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use std::convert::Infallible;
use std::sync::Arc;

/// Body of every answer.
pub(crate) type Reply = UnsyncBoxBody<Bytes, Infallible>;

/// Answers one request; an accepted channel goes on in a task of its own.
pub(crate) async fn handle<R, B>(gateway: Arc<Gateway>, reviewer: &R, request: Request<B>) -> Response<Reply>
where
    R: Reviewer,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    if request.uri().path() != PATH {
        return refuse(&gateway, StatusCode::NOT_FOUND, "NotFound", None);
    }
    if request.method() != Method::POST {
        return refuse(&gateway, StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", None);
    }
    if gateway.stop.is_cancelled() || !gateway.health.is_synced() {
        return refuse(&gateway, StatusCode::SERVICE_UNAVAILABLE, "NotReady", None);
    }
    match identify(reviewer, request.headers()).await {
        Ok(pod) => open(gateway, pod, request.into_body()),
        Err(AuthError::Rejected(message)) => {
            tracing::warn!(message, "channel refused");
            let refused = ToRuntime::Refused {
                code: Refusal::Unauthenticated,
                message,
            };
            refuse(
                &gateway,
                StatusCode::UNAUTHORIZED,
                "Unauthenticated",
                Some(&refused),
            )
        }
        Err(error) => {
            tracing::warn!(error = chain(&error), "channel cannot be opened");
            refuse(&gateway, StatusCode::SERVICE_UNAVAILABLE, "ReviewFailed", None)
        }
    }
}

async fn identify(reviewer: &impl Reviewer, headers: &HeaderMap) -> Result<PodIdentity, AuthError> {
    let value = headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let token = value
        .strip_prefix("Bearer ")
        .map(str::trim)
        .filter(|token| !token.is_empty());
    let token = token.ok_or_else(|| AuthError::Rejected("there is no bearer token".into()))?;
    if token.len() > bounds::TOKEN {
        let text = format!(
            "the token has {} bytes, at most {} are allowed",
            token.len(),
            bounds::TOKEN
        );
        return Err(AuthError::Rejected(text));
    }
    reviewer.review(token).await
}

fn open<B>(gateway: Arc<Gateway>, pod: PodIdentity, body: B) -> Response<Reply>
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let (outbox, frames) = Outbox::new();
    let tasks = gateway.tasks.clone();
    tasks.spawn(session::serve(gateway, pod, body, outbox));
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/octet-stream"),
    );
    response
}

fn refuse(
    gateway: &Gateway,
    status: StatusCode,
    code: &'static str,
    message: Option<&ToRuntime>,
) -> Response<Reply> {
    gateway.metrics.refusals.with_label_values(&[code]).inc();
    let body = message
        .and_then(|message| frame::encode(message).ok())
        .unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed_unsync());
    *response.status_mut() = status;
    response
}
