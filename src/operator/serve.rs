//! From settings to running controllers.

use crate::client::{self, ConnectError};
use crate::controllers;
use crate::events::Events;
use crate::health::Watches;
use crate::http::{self, Probes};
use crate::leader::{Election, Fence, LeadError, lead};
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::{injection, platform, tls};
use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the reconcilers of a leader work with.
pub struct Operator {
    /// Refuses writes once this process does not lead any more.
    pub client: Client,
    /// The flags.
    pub settings: Settings,
    /// What is counted.
    pub metrics: Metrics,
    /// Publishes Events.
    pub events: Events,
    /// Where watches report that they work.
    pub watches: Watches,
}

impl Operator {
    /// Objects of a kind in the namespaces that this operator looks after.
    pub fn looked_after<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        let client = self.client.clone();
        match &self.settings.watch_namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        }
    }
}

/// The operator cannot start, or has to be started anew.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The metrics clash.
    #[error("the metrics are not consistent: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The port of the probes is taken.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// `--listen`.
        address: SocketAddr,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// No Kubernetes.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The leadership ended.
    #[error(transparent)]
    Lead(#[from] LeadError),
}

/// Runs until `shutdown`, or until the leadership is lost: then the process has to be started anew.
pub async fn run(settings: Settings, shutdown: CancellationToken) -> Result<(), StartError> {
    let (metrics, watches, fence) = (Metrics::new()?, Watches::default(), Fence::default());
    let probes = Probes::new(metrics.clone(), watches.clone());
    let address = settings.listen;
    let listener = TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Listen { address, source })?;
    let serving = CancellationToken::new();
    let server = tokio::spawn(http::serve(listener, probes.clone(), serving.clone()));
    let free = client::connect(&metrics, None).await?;
    wait_for_api(&free, &shutdown).await;
    probes.ready();
    let fenced = client::connect(&metrics, Some(fence.clone())).await?;
    let election = Election::new(&settings.namespace, &settings.identity);
    let operator = Operator {
        events: Events::new(fenced.clone(), &settings.identity),
        client: fenced,
        settings,
        metrics: metrics.clone(),
        watches,
    };
    let leading = lead(free, election, fence, shutdown, |stop| work(operator, stop));
    let result = Box::pin(leading).await;
    metrics.leader(false);
    serving.cancel();
    let _ = server.await;
    Ok(result?)
}

/// What only the leader does: certificates, the choice of injection, and the controllers. The installation is
/// kept up to date until the controllers have ended.
async fn work(operator: Operator, stop: CancellationToken) {
    operator.metrics.leader(true);
    let (known, installation) = watch::channel(None);
    let (client, settings) = (operator.client.clone(), operator.settings.clone());
    let keep = async {
        // The gateway waits for its certificate: the injection probe must not hold that up.
        let (injection, certificates) = tokio::join!(
            injection::choose(&client, &settings),
            tls::ensure(&client, &settings.namespace, Timestamp::now()),
        );
        if let Err(error) = certificates {
            tracing::warn!(%error, "the gateway has no certificate yet");
        }
        platform::keep(client, settings, injection, known).await
    };
    tokio::select! {
        never = keep => match never {},
        () = controllers::work(Arc::new(operator), installation, stop) => {}
    }
}

/// A fresh cluster's API server may come up later than we do.
async fn wait_for_api(client: &Client, shutdown: &CancellationToken) {
    loop {
        match client.apiserver_version().await {
            Ok(version) => {
                tracing::info!(version = version.git_version, "connected");
                return;
            }
            Err(error) => tracing::warn!(%error, "the API server does not answer yet"),
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
        }
    }
}
