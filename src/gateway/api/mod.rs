//! The public HTTP API: tasks, their events, and function calls, for people and programs outside the cluster's own API.
//!
//! It holds no state: a task is an AgentRun, its namespace is the tenant, and Kubernetes decides who a caller is and what
//! they may do ([`caller`]). What it makes and reads goes straight to the API server ([`cluster`]); streams and calls live
//! on what the gateway's watches see ([`stream`]). Every connection is HTTP/1.1: one stalled reader is cut off with its
//! connection ([`server`]) and takes nobody along.

mod bounds;
mod call;
mod caller;
mod chat;
mod cluster;
mod create;
mod flow;
mod metrics;
mod problem;
mod recent;
mod router;
mod server;
mod settings;
mod stalled;
mod stream;
mod target;
mod tasks;
mod view;

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;

pub use settings::ApiSettings;
pub(crate) use stream::sightings::Sightings;

use crate::GatewayError;
use crate::gateway::Gateway;
use crate::tls::Certificate;
use caller::Doorkeeper;
use cluster::Cluster;
use metrics::ApiMetrics;
use problem::{Code, Problem};
use server::Patience;
use std::path::PathBuf;
use std::sync::Arc;
use stream::Feeds;
use target::Params;
use tokio::sync::Semaphore;

/// What all requests share.
pub(crate) struct Api {
    gateway: Arc<Gateway>,
    door: Doorkeeper,
    cluster: Arc<Cluster>,
    feeds: Feeds,
    metrics: ApiMetrics,
    /// The namespace of the short form.
    namespace: Option<String>,
    requests: Semaphore,
    calls: Semaphore,
}

impl Api {
    pub(crate) fn new(
        client: kube::Client,
        gateway: Arc<Gateway>,
        namespace: Option<String>,
    ) -> Result<Arc<Self>, prometheus::Error> {
        Ok(Arc::new(Self {
            metrics: ApiMetrics::new(gateway.metrics.registry())?,
            gateway,
            door: Doorkeeper::new(client.clone()),
            cluster: Arc::new(Cluster::new(client)),
            feeds: Feeds::default(),
            namespace,
            requests: Semaphore::new(bounds::REQUESTS),
            calls: Semaphore::new(bounds::CALLS),
        }))
    }

    fn namespace(&self, params: &Params) -> Result<String, Problem> {
        params.namespace(self.namespace.as_deref())
    }

    /// Streams and calls need the watches.
    fn ready(&self) -> Result<(), Problem> {
        match self.gateway.health.not_ready() {
            None => Ok(()),
            Some(why) => Err(Problem::new(
                Code::Unavailable,
                format!("this gateway is not ready: {why}"),
            )),
        }
    }
}

/// Opens the API's socket, if it is to be served, and returns what serves it until the gateway stops.
pub(crate) async fn open(
    settings: ApiSettings,
    client: kube::Client,
    gateway: Arc<Gateway>,
) -> Result<Option<impl Future<Output = ()> + Send + use<>>, GatewayError> {
    if !settings.api {
        return Ok(None);
    }
    let api = Api::new(client, Arc::clone(&gateway), settings.api_namespace)?;
    let listener = crate::listen::bind(settings.api_address).await?;
    Ok(Some(async move {
        let tls = match settings.api_tls_dir {
            None => None,
            Some(folder) => match tls(folder, &gateway).await {
                Some(config) => Some(config),
                None => return,
            },
        };
        tracing::info!(address = %settings.api_address, tls = tls.is_some(), "public API is open");
        let stalled = api.metrics.stalled.clone();
        server::serve(
            listener,
            tls,
            router::router(api),
            stalled,
            Patience::default(),
            &gateway,
        )
        .await;
    }))
}

/// TLS with the certificate of a folder, which is waited for; `None` when the gateway stops before.
async fn tls(folder: PathBuf, gateway: &Gateway) -> Option<Arc<rustls::ServerConfig>> {
    let certificate = tokio::select! {
        certificate = Certificate::wait_for(folder) => certificate,
        () = gateway.stop.cancelled() => return None,
    };
    let config = server::tls_config(Arc::clone(&certificate));
    match config {
        Ok(config) => {
            tokio::spawn(certificate.keep_fresh());
            Some(config)
        }
        Err(error) => {
            tracing::error!(%error, "the public API is not served");
            None
        }
    }
}
