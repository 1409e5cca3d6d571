//! The service that carries a script out.

use super::{Action, Call, Faults, watch};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::client::{Body, DynBody};
use std::pin::Pin;
use std::task::{Context, Poll};
use tower::{BoxError, Layer, Service};

type Answer = Response<Box<DynBody>>;

impl<S> Layer<S> for Faults {
    type Service = Faulty<S>;

    fn layer(&self, inner: S) -> Faulty<S> {
        Faulty {
            inner,
            faults: self.clone(),
        }
    }
}

/// A client's way to the API server, with faults.
pub struct Faulty<S> {
    inner: S,
    faults: Faults,
}

impl<S> Service<Request<Body>> for Faulty<S>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if self.faults.has_stopped() {
            return Box::pin(std::future::pending());
        }
        let call = Call::of(&request);
        let action = self.faults.decide(&call);
        match action {
            Some(Action::Break) => return Box::pin(std::future::ready(Err("the connection broke".into()))),
            Some(Action::Answer(status)) => {
                return Box::pin(std::future::ready(Ok(refusal(status))));
            }
            _ => {}
        }
        let (answer, faults) = (self.inner.call(request), self.faults.clone());
        Box::pin(async move {
            let answer = answer.await;
            if faults.has_stopped() {
                return std::future::pending().await;
            }
            match action {
                Some(Action::Stop) => {
                    faults.stop();
                    std::future::pending().await
                }
                Some(Action::LoseAnswer) => Err("the connection broke before the answer came".into()),
                Some(
                    action @ (Action::Delay(_) | Action::Repeat | Action::CutAfter(_) | Action::Gap { .. }),
                ) => answer.map(|answer| answer.map(|body| watch::faulty(body, action))),
                Some(Action::Break | Action::Answer(_)) | None => answer,
            }
        })
    }
}

/// As the API server writes it.
fn refusal(status: StatusCode) -> Answer {
    let reason = match status.as_u16() {
        409 => "Conflict",
        410 => "Expired",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    };
    let body = serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": status.as_u16(),
        "reason": reason, "message": "refused on purpose",
    });
    let body = Full::new(Bytes::from(body.to_string())).map_err(BoxError::from);
    let body: Box<DynBody> = Box::new(body);
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(http::header::CONTENT_TYPE, json);
    answer
}
