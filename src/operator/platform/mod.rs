//! What the operator learns about its installation: where the gateway is, whom it is trusted by, and what a sandbox must
//! not reach. Looked up again every [`ROUND`]; whoever waits for a change sees one only when something differs.

mod assemble;

pub use assemble::{Found, PlatformError, assemble};

use crate::pods::Injection;
use crate::settings::Settings;
use crate::tls;
use crate::world::Installation;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use kube::{Client, Error};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How often everything is looked up again.
pub const ROUND: Duration = Duration::from_secs(20);
/// How often while something is missing.
const RETRY: Duration = Duration::from_secs(2);
/// Nodes that are asked for: the probe needs examples, not all.
const NODES: u32 = 3;

/// Keeps certificates and installation up to date until it is dropped.
pub async fn keep(
    client: Client,
    settings: Settings,
    injection: Injection,
    installation: watch::Sender<Option<Arc<Installation>>>,
) -> Infallible {
    loop {
        let pause = match round(&client, &settings, injection).await {
            Ok(found) => {
                publish(&installation, found);
                ROUND
            }
            Err(error) => {
                tracing::warn!(%error, "the installation is not complete");
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// What was known before stays in force while something cannot be looked up.
fn publish(installation: &watch::Sender<Option<Arc<Installation>>>, found: Installation) {
    installation.send_if_modified(|current| {
        let changed = current.as_deref() != Some(&found);
        if changed {
            tracing::info!(
                gateway = found.platform.gateway_address,
                "the installation is known"
            );
            *current = Some(Arc::new(found));
        }
        changed
    });
}

/// Why a round did not end well.
#[derive(Debug, thiserror::Error)]
enum RoundError {
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    #[error("the API server does not say what is there: {0}")]
    Find(#[from] Error),
    #[error(transparent)]
    Assemble(#[from] PlatformError),
}

async fn round(
    client: &Client,
    settings: &Settings,
    injection: Injection,
) -> Result<Installation, RoundError> {
    let authorities = tls::ensure(client, &settings.namespace, Timestamp::now()).await?;
    let found = find(client, settings, authorities).await?;
    Ok(assemble(settings, injection, &found)?)
}

async fn find(client: &Client, settings: &Settings, authorities: String) -> Result<Found, Error> {
    let services = |namespace: &str| Api::<Service>::namespaced(client.clone(), namespace);
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "default");
    let of_kubernetes = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
    let nodes: Api<Node> = Api::all(client.clone());
    let gateway = services(&settings.gateway_service.namespace)
        .get_opt(&settings.gateway_service.name)
        .await?;
    Ok(Found {
        gateway_pods: gateway_pods(client, settings, gateway.as_ref()).await?,
        gateway,
        kubernetes: services("default").get_opt("kubernetes").await?,
        kubernetes_endpoints: slices.list(&of_kubernetes).await?.items,
        nodes: nodes.list(&ListParams::default().limit(NODES)).await?.items,
        dns: services("kube-system").get_opt("kube-dns").await?,
        authorities,
    })
}

async fn gateway_pods(
    client: &Client,
    settings: &Settings,
    gateway: Option<&Service>,
) -> Result<Vec<Pod>, Error> {
    let selector = gateway
        .and_then(|service| service.spec.as_ref()?.selector.clone())
        .unwrap_or_default();
    if selector.is_empty() {
        return Ok(Vec::new());
    }
    let labels: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &settings.gateway_service.namespace);
    Ok(pods
        .list(&ListParams::default().labels(&labels.join(",")))
        .await?
        .items)
}
