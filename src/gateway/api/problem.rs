//! Why a request is not answered with what it asks for.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

/// The kinds of problems, each with one HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum Code {
    /// 400: the request cannot be read.
    BadRequest,
    /// 401: no token, or one that proves nothing here.
    Unauthenticated,
    /// 403: the user may not do this in this namespace, or the cluster refuses it.
    Forbidden,
    /// 404: there is no such path or object.
    NotFound,
    /// 405: the path takes other methods.
    MethodNotAllowed,
    /// 408: the body did not arrive in time.
    RequestTimeout,
    /// 409: the idempotency key was used with another body, or the name means several things.
    Conflict,
    /// 410: the list has changed too much to go on with this page.
    Expired,
    /// 413: the body is too large.
    TooLarge,
    /// 415: the body is not said to be JSON.
    UnsupportedMediaType,
    /// 422: what the body asks for is wrong.
    Invalid,
    /// 422: what the body asks for has no behaviour in this version.
    NotYetSupported,
    /// 429: too much at once.
    TooManyRequests,
    /// 503: the gateway is starting or stopping, or the API server does not answer.
    Unavailable,
}

impl Code {
    /// The status that goes with it.
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::Conflict => StatusCode::CONFLICT,
            Self::Expired => StatusCode::GONE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Invalid | Self::NotYetSupported => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

/// A problem; its message names what was found, what is allowed and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Error")]
pub(crate) struct Problem {
    /// Its kind.
    pub(crate) code: Code,
    /// What was found, what is allowed, what to do.
    pub(crate) message: String,
}

/// The body of every answer that is a problem.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ErrorAnswer")]
pub(crate) struct ProblemBody {
    /// The problem.
    pub(crate) error: Problem,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// What the API server's refusal of `action` means for the caller.
    pub(crate) fn of_api_server(action: &str, error: &kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            tracing::warn!(
                error = crate::text::chain(error),
                action,
                "the API server did not answer"
            );
            let message = format!("cannot {action}: the Kubernetes API server does not answer, try again");
            return Self::new(Code::Unavailable, message);
        };
        let code = match status.code {
            // A strict decoder calls unknown fields a bad request.
            400 | 422 => Code::Invalid,
            403 => Code::Forbidden,
            404 => Code::NotFound,
            409 => Code::Conflict,
            410 => Code::Expired,
            413 => Code::TooLarge,
            429 => Code::TooManyRequests,
            _ => Code::Unavailable,
        };
        if code == Code::Unavailable {
            tracing::warn!(
                code = status.code,
                message = status.message,
                action,
                "the API server failed"
            );
        }
        Self::new(code, format!("cannot {action}: {}", status.message))
    }
}

impl Problem {
    /// The refusal with the same status and headers, told in another shape.
    pub(crate) fn with_body(self, body: &impl Serialize) -> Response {
        let mut response = self.into_response();
        *response.body_mut() = serde_json::to_vec(body).unwrap_or_default().into();
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let code = self.code;
        let mut response = json(code.status(), &ProblemBody { error: self });
        let headers = response.headers_mut();
        match code {
            Code::Unauthenticated => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Code::TooManyRequests | Code::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// A JSON answer. Answers speak of one user's objects at one moment: nobody keeps them.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Response {
    let body = serde_json::to_vec(body).unwrap_or_default();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}
