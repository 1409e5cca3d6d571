//! The Kubernetes client: counted, bounded in time, and with a name that an audit log can tell apart.

use crate::leader::Fence;
use crate::metrics::Metrics;
use http::{HeaderValue, Method, Request, Response, header};
use kube::client::{Body, ClientBuilder, DynBody};
use kube::{Client, Config};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::layer::util::Identity;
use tower::util::BoxService;
use tower::{BoxError, Layer, Service};

/// How long the API server may take until its answer begins; a watch begins at once too.
const ANSWER_BOUND: Duration = Duration::from_secs(30);
/// How long an answer may pause; above the 290 seconds that a watch lives.
const READ_BOUND: Duration = Duration::from_secs(295);
const USER_AGENT: &str = concat!("agentrun-operator/", env!("CARGO_PKG_VERSION"));

/// Builds the client from the Pod's service account, or from `KUBECONFIG`.
/// With a fence, writes are refused while this process does not lead.
pub async fn connect(metrics: &Metrics, fence: Option<Fence>) -> Result<Client, ConnectError> {
    let config = Config::infer().await?;
    Ok(build(config, metrics.clone(), fence)?)
}

/// The API server cannot be addressed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Neither a service account nor a kubeconfig.
    #[error("no way to the Kubernetes API: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// The configuration is no client.
    #[error("no Kubernetes client: {0}")]
    Client(#[from] kube::Error),
}

/// Builds the client from a configuration.
pub fn build(config: Config, metrics: Metrics, fence: Option<Fence>) -> Result<Client, kube::Error> {
    build_over(config, metrics, fence, &Identity::new())
}

/// The same with a layer between client and network, as tests have one that fails.
pub fn build_over<L>(
    mut config: Config,
    metrics: Metrics,
    fence: Option<Fence>,
    below: &L,
) -> Result<Client, kube::Error>
where
    L: Layer<Network>,
    L::Service: Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send> + Send + 'static,
{
    config.read_timeout = Some(READ_BOUND);
    config.reset_reader_on_write = true;
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(USER_AGENT)));
    Ok(ClientBuilder::try_from(config)?
        .with_layer(below)
        .with_layer(&Observe { metrics, fence })
        .build())
}

/// Counts requests, bounds the time to their answers, and refuses what only a leader may do.
#[derive(Clone)]
struct Observe {
    metrics: Metrics,
    fence: Option<Fence>,
}

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;

    fn layer(&self, inner: S) -> Observed<S> {
        Observed {
            inner,
            metrics: self.metrics.clone(),
            fence: self.fence.clone(),
        }
    }
}

struct Observed<S> {
    inner: S,
    metrics: Metrics,
    fence: Option<Fence>,
}

/// What the API server answers.
pub type Answer = Response<Box<DynBody>>;

/// The way to the API server: TLS, authentication, and retries of what may be asked again.
pub type Network = BoxService<Request<Body>, Answer, BoxError>;

impl<S> Service<Request<Body>> for Observed<S>
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
        let what = Call::of(
            request.method(),
            request.uri().path(),
            request.uri().query().unwrap_or_default(),
        );
        if what.writes()
            && let Some(Err(refusal)) = self.fence.as_ref().map(Fence::check)
        {
            return Box::pin(std::future::ready(Err(refusal.into())));
        }
        let metrics = self.metrics.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let bounded = tokio::time::timeout(ANSWER_BOUND, answer).await;
            let answer = bounded.unwrap_or_else(|_| Err(format!("no answer within {ANSWER_BOUND:?}").into()));
            let code = answer
                .as_ref()
                .map_or("none".to_owned(), |answer| answer.status().as_u16().to_string());
            metrics.api_request(&what.resource, what.verb, &code);
            answer
        })
    }
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    /// Plural of the resource, with `/status` or another subresource.
    resource: String,
    verb: &'static str,
}

impl Call {
    /// Reads the API server's path: `/api/v1/…` or `/apis/GROUP/VERSION/…`, then `[namespaces/NS/]RESOURCE[/NAME[/SUB]]`.
    fn of(method: &Method, path: &str, query: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => &[],
        };
        let rest = match rest {
            ["namespaces", _, inner @ ..] if !inner.is_empty() => inner,
            rest => rest,
        };
        let resource = match rest {
            [] => "none".to_owned(),
            [resource, _, sub, ..] => format!("{resource}/{sub}"),
            [resource, ..] => (*resource).to_owned(),
        };
        let watch = query
            .split('&')
            .any(|pair| matches!(pair, "watch=true" | "watch=1"));
        let verb = match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ if watch => "watch",
            _ if rest.len() < 2 => "list",
            _ => "get",
        };
        Self { resource, verb }
    }

    fn writes(&self) -> bool {
        !matches!(self.verb, "get" | "list" | "watch")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: &Method, path: &str, query: &str) -> (String, &'static str) {
        let Call { resource, verb } = Call::of(method, path, query);
        (resource, verb)
    }

    #[test]
    fn requests_are_counted_by_resource_and_verb_and_never_by_name() {
        let runs = "/apis/agentrun.dev/v1alpha1";
        assert_eq!(
            call(&Method::POST, "/api/v1/namespaces/a/pods", ""),
            ("pods".to_owned(), "create")
        );
        assert_eq!(
            call(
                &Method::PATCH,
                &format!("{runs}/namespaces/a/subtasks/x/status"),
                ""
            ),
            ("subtasks/status".to_owned(), "patch")
        );
        assert_eq!(
            call(&Method::GET, &format!("{runs}/agentruns"), "limit=5"),
            ("agentruns".to_owned(), "list")
        );
        assert_eq!(
            call(&Method::GET, &format!("{runs}/agentruns"), "watch=true"),
            ("agentruns".to_owned(), "watch")
        );
        assert_eq!(
            call(&Method::GET, "/api/v1/namespaces/a", ""),
            ("namespaces".to_owned(), "get")
        );
        assert_eq!(
            call(&Method::GET, "/api/v1/nodes/n", ""),
            ("nodes".to_owned(), "get")
        );
        assert_eq!(call(&Method::GET, "/version", ""), ("none".to_owned(), "list"));
    }
}
