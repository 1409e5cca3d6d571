//! From what was found to what sandboxes are made with; pure.

use crate::pods::{Injection, Platform};
use crate::policies::{Denied, GatewayPods};
use crate::settings::Settings;
use crate::world::Installation;
use agentrun_protocol::probe::ProbeTargets;
use k8s_openapi::api::core::v1::{Node, Pod, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::{IpAddr, SocketAddr};

/// Port of the channel, and of the Service's port for it.
const CHANNEL_PORT: i32 = 8443;
/// Port on which a gateway Pod listens only to show that it cannot be reached.
const CANARY_PORT: u16 = 8444;
/// Port of the kubelet.
const KUBELET_PORT: u16 = 10250;
/// Gateway Pods that the probe tries.
const MAX_CANARIES: usize = 3;

/// What the API server says is there.
#[derive(Debug, Default)]
pub struct Found {
    /// The gateway's Service.
    pub gateway: Option<Service>,
    /// The Pods behind it.
    pub gateway_pods: Vec<Pod>,
    /// The API server's Service.
    pub kubernetes: Option<Service>,
    /// What is behind that.
    pub kubernetes_endpoints: Vec<EndpointSlice>,
    /// Some nodes.
    pub nodes: Vec<Node>,
    /// The cluster's DNS, if there is one.
    pub dns: Option<Service>,
    /// The gateway's authorities in PEM.
    pub authorities: String,
}

/// Something that an installation must have is missing.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// No Service.
    #[error("there is no Service {0}, install the gateway or correct --gateway-service")]
    NoService(String),
    /// The Service has no address that stays.
    #[error(
        "Service {0} has no cluster IP, sandboxes need one since they have no DNS: do not make it headless"
    )]
    NoClusterIp(String),
    /// The Service selects nothing.
    #[error("Service {0} has no selector, network policies need the labels of the gateway's Pods")]
    NoSelector(String),
    /// The Service has no port for the channel.
    #[error("Service {0} has no port named channel and none {CHANNEL_PORT}")]
    NoPort(String),
    /// The API server's own address is unknown.
    #[error("there is no Service default/kubernetes, so nothing proves that sandboxes are isolated")]
    NoApiServer,
}

/// Puts it together.
pub fn assemble(
    settings: &Settings,
    injection: Injection,
    found: &Found,
) -> Result<Installation, PlatformError> {
    let gateway = Gateway::of(settings, found)?;
    let api_server = api_server(found);
    if api_server.is_empty() {
        return Err(PlatformError::NoApiServer);
    }
    let denied = Denied::new(api_server.iter().map(SocketAddr::ip), &settings.egress_deny);
    let platform = Platform {
        runtime_image: settings.runtime_image.clone(),
        runtime_digest: settings.runtime_digest().to_owned(),
        injection,
        sandbox_uid: settings.sandbox_uid,
        gateway_address: gateway.address.to_string(),
        gateway_ca: found.authorities.clone(),
        denied: denied.clone(),
        probe_targets: ProbeTargets {
            required: settings.require_network_isolation,
            closed: must_be_closed(found, api_server),
            closed_if_there: vec![
                // Cloud metadata, and an outside address where nothing may live (RFC 5737).
                SocketAddr::from(([169, 254, 169, 254], 80)),
                SocketAddr::from(([192, 0, 2, 1], 443)),
            ],
        },
        image_pull_policy: settings
            .image_pull_policy
            .map(|policy| policy.as_str().to_owned()),
        isolation_required: settings.require_network_isolation,
    };
    Ok(Installation {
        platform,
        gateway: gateway.pods,
        denied,
    })
}

struct Gateway {
    address: SocketAddr,
    pods: GatewayPods,
}

impl Gateway {
    fn of(settings: &Settings, found: &Found) -> Result<Self, PlatformError> {
        let service = &settings.gateway_service;
        let name = || format!("{}/{}", service.namespace, service.name);
        let spec = found.gateway.as_ref().and_then(|service| service.spec.as_ref());
        let spec = spec.ok_or_else(|| PlatformError::NoService(name()))?;
        let address = cluster_ip(spec).ok_or_else(|| PlatformError::NoClusterIp(name()))?;
        let labels = spec.selector.clone().filter(|labels| !labels.is_empty());
        let labels = labels.ok_or_else(|| PlatformError::NoSelector(name()))?;
        let port = channel_port(spec).ok_or_else(|| PlatformError::NoPort(name()))?;
        let number = u16::try_from(port.port).map_err(|_| PlatformError::NoPort(name()))?;
        Ok(Self {
            address: SocketAddr::new(address, number),
            pods: GatewayPods {
                namespace: service.namespace.clone(),
                labels,
                port: port.target_port.clone().unwrap_or(IntOrString::Int(port.port)),
            },
        })
    }
}

fn channel_port(spec: &ServiceSpec) -> Option<&ServicePort> {
    let ports = || spec.ports.iter().flatten();
    ports()
        .find(|port| port.name.as_deref() == Some("channel"))
        .or_else(|| ports().find(|port| port.port == CHANNEL_PORT))
}

fn cluster_ip(spec: &ServiceSpec) -> Option<IpAddr> {
    spec.cluster_ip.as_deref()?.parse().ok()
}

/// The API server by its Service and by what is behind it.
fn api_server(found: &Found) -> Vec<SocketAddr> {
    let mut targets: Vec<SocketAddr> = found.kubernetes.iter().flat_map(service_targets).collect();
    targets.extend(found.kubernetes_endpoints.iter().flat_map(slice_targets));
    sorted(targets)
}

fn service_targets(service: &Service) -> Vec<SocketAddr> {
    let Some(spec) = &service.spec else {
        return Vec::new();
    };
    let addresses = spec
        .cluster_ips
        .iter()
        .flatten()
        .chain(&spec.cluster_ip)
        .filter_map(|ip| ip.parse().ok());
    let ports = || {
        spec.ports
            .iter()
            .flatten()
            .filter(|port| port.protocol.as_deref() != Some("UDP"))
    };
    addresses
        .flat_map(|ip: IpAddr| ports().filter_map(move |port| target(ip, port.port)))
        .collect()
}

fn slice_targets(slice: &EndpointSlice) -> Vec<SocketAddr> {
    let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    let addresses = addresses.filter_map(|address| address.parse().ok());
    let ports = || slice.ports.iter().flatten().filter_map(|port| port.port);
    addresses
        .flat_map(|ip: IpAddr| ports().filter_map(move |port| target(ip, port)))
        .collect()
}

fn target(ip: IpAddr, port: i32) -> Option<SocketAddr> {
    Some(SocketAddr::new(ip, u16::try_from(port).ok()?))
}

fn must_be_closed(found: &Found, api_server: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let mut targets = api_server;
    targets.extend(canaries(&found.gateway_pods));
    targets.extend(
        found
            .nodes
            .iter()
            .flat_map(node_addresses)
            .map(|ip| SocketAddr::new(ip, KUBELET_PORT)),
    );
    targets.extend(
        found
            .dns
            .iter()
            .flat_map(service_targets)
            .filter(|target| target.port() == 53),
    );
    sorted(targets)
}

/// Another port of the gateway, by the addresses of Pods that serve.
fn canaries(pods: &[Pod]) -> Vec<SocketAddr> {
    let serving = pods
        .iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let status = serving.filter_map(|pod| pod.status.as_ref());
    let running = status.filter(|status| status.phase.as_deref() == Some("Running"));
    let addresses = running.flat_map(|status| status.pod_ips.iter().flatten());
    let addresses = sorted(addresses.filter_map(|ip| ip.ip.parse::<IpAddr>().ok()).collect());
    addresses
        .into_iter()
        .take(MAX_CANARIES)
        .map(|ip| SocketAddr::new(ip, CANARY_PORT))
        .collect()
}

fn node_addresses(node: &Node) -> Vec<IpAddr> {
    let addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    let internal = addresses.filter(|address| address.type_ == "InternalIP");
    internal
        .filter_map(|address| address.address.parse().ok())
        .collect()
}

/// The order of the API server's lists must not look like a change.
fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort_unstable();
    items.dedup();
    items
}

#[cfg(test)]
#[path = "assemble_tests.rs"]
mod tests;
