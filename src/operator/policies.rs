//! One NetworkPolicy per egress set and namespace: no ingress, egress to the gateway and to what was asked for.

use agentrun_api::names::labels;
use agentrun_api::{EgressRule, Protocol};
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The label that the API server puts on every namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// IPv4 addresses in IPv6 form: they never travel, so a wider network needs no exception for them, and the API server
/// would take one for an IPv4 network.
const MAPPED: &str = "::ffff:0:0/96";

/// Addresses that no sandbox may ever be let to: this host, its links, and other ways to write them.
const NEVER: [(&str, &str); 8] = [
    ("0.0.0.0/8", "this host"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local, where metadata services live"),
    ("::/128", "this host"),
    ("::1/128", "loopback"),
    (MAPPED, "IPv4 addresses in IPv6 form"),
    ("fe80::/10", "link-local"),
    ("ff02::/16", "link-local multicast"),
];

/// Where the gateway's Pods are, as a policy names them: it sees traffic after the Service's address was translated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayPods {
    /// Their namespace.
    pub namespace: String,
    /// The Service's selector.
    pub labels: BTreeMap<String, String>,
    /// The container port (or its name) behind the Service's channel port.
    pub port: IntOrString,
}

/// Networks that `egress[]` may never contain, each with the words that say why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denied(Vec<(IpNet, String)>);

/// A rule asks for what nobody gets, or cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EgressError {
    /// No network.
    #[error("egress[{name}].cidr: {cidr:?} is no network, write it as ADDRESS/PREFIX such as 192.0.2.5/32")]
    NotANetwork {
        /// Name of the rule.
        name: String,
        /// What was found.
        cidr: String,
    },
    /// Bits behind the prefix.
    #[error("egress[{name}].cidr: {cidr} has bits behind its prefix, write {meant}")]
    HostBits {
        /// Name of the rule.
        name: String,
        /// What was found.
        cidr: String,
        /// The network that contains it.
        meant: IpNet,
    },
    /// All of it is denied.
    #[error(
        "egress[{name}].cidr: {cidr} lies within {denied} ({why}), which no sandbox may reach: remove the rule"
    )]
    Denied {
        /// Name of the rule.
        name: String,
        /// What was found.
        cidr: IpNet,
        /// The network it lies within.
        denied: IpNet,
        /// What that network is.
        why: String,
    },
}

impl Denied {
    /// What is always denied, the API server's addresses, and `--egress-deny`.
    pub fn new(api_server: impl IntoIterator<Item = std::net::IpAddr>, flag: &[IpNet]) -> Self {
        let never = NEVER
            .iter()
            .filter_map(|(text, why)| Some((text.parse().ok()?, (*why).to_owned())));
        let api_server = api_server
            .into_iter()
            .map(|address| (IpNet::from(address), "the API server".to_owned()));
        let flag = flag.iter().map(|net| (net.trunc(), "--egress-deny".to_owned()));
        Self(never.chain(api_server).chain(flag).collect())
    }

    fn around(&self, net: &IpNet) -> Option<&(IpNet, String)> {
        self.0.iter().find(|(denied, _)| denied.contains(net))
    }

    /// The denied networks inside `net`, none inside another.
    fn within(&self, net: &IpNet) -> Vec<IpNet> {
        let mapped = MAPPED.parse().ok();
        let inside: Vec<IpNet> = self
            .0
            .iter()
            .map(|(denied, _)| *denied)
            .filter(|denied| net.contains(denied) && Some(*denied) != mapped)
            .collect();
        IpNet::aggregate(&inside)
    }
}

/// The hash that names an egress set: label value of its Pods and end of its policy's name. Names of rules and their
/// order do not count.
pub fn egress_hash(egress: &[EgressRule]) -> String {
    let name = policy_name(egress);
    name.rsplit('-').next().map(str::to_owned).unwrap_or(name)
}

/// Name of the policy of an egress set.
pub fn policy_name(egress: &[EgressRule]) -> String {
    let mut rules: Vec<_> = egress
        .iter()
        .map(|rule| (&rule.cidr, rule.port, protocol(rule)))
        .collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<_> = rules
        .iter()
        .map(|(cidr, port, protocol)| json!({"cidr": cidr, "port": port, "protocol": protocol}))
        .collect();
    agentrun_core::names::egress_policy_name(&rules.into())
}

/// Checks an egress set, as `validate` does before anything is made.
pub fn check(egress: &[EgressRule], denied: &Denied) -> Result<(), EgressError> {
    egress.iter().try_for_each(|rule| network(rule, denied).map(drop))
}

/// Builds the policy of an egress set.
pub fn build_policy(
    namespace: &str,
    egress: &[EgressRule],
    gateway: &GatewayPods,
    denied: &Denied,
) -> Result<NetworkPolicy, EgressError> {
    let asked = egress
        .iter()
        .map(|rule| asked_for(rule, denied))
        .collect::<Result<Vec<_>, _>>()?;
    let hash = egress_hash(egress);
    Ok(NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(policy_name(egress)),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([
                (labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_VALUE.to_owned()),
                (labels::EGRESS.to_owned(), hash.clone()),
            ])),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector([(labels::EGRESS.to_owned(), hash)])),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: None,
            egress: Some(std::iter::once(to_gateway(gateway)).chain(asked).collect()),
        }),
    })
}

/// Whether an egress set lets user code connect to an address: such a target says nothing about isolation.
pub fn permits(egress: &[EgressRule], denied: &Denied, target: SocketAddr) -> bool {
    let address = IpNet::from(target.ip());
    let asked = |rule: &EgressRule| {
        let net: Option<IpNet> = rule.cidr.parse().ok();
        rule.port == i32::from(target.port())
            && protocol(rule) == Protocol::TCP
            && net.is_some_and(|net| net.contains(&address))
    };
    denied.around(&address).is_none() && egress.iter().any(asked)
}

fn protocol(rule: &EgressRule) -> Protocol {
    rule.protocol.unwrap_or(Protocol::TCP)
}

fn network(rule: &EgressRule, denied: &Denied) -> Result<IpNet, EgressError> {
    let (name, cidr) = (rule.name.clone(), rule.cidr.clone());
    let Ok(net) = cidr.parse::<IpNet>() else {
        return Err(EgressError::NotANetwork { name, cidr });
    };
    if net != net.trunc() {
        return Err(EgressError::HostBits {
            name,
            cidr,
            meant: net.trunc(),
        });
    }
    if let Some((denied, why)) = denied.around(&net) {
        return Err(EgressError::Denied {
            name,
            cidr: net,
            denied: *denied,
            why: why.clone(),
        });
    }
    // Several denied networks may together leave nothing of it, and an exception as wide as its block is refused.
    if denied.within(&net) == [net] {
        return Err(EgressError::Denied {
            name,
            cidr: net,
            denied: net,
            why: "denied piece by piece".to_owned(),
        });
    }
    Ok(net)
}

fn asked_for(rule: &EgressRule, denied: &Denied) -> Result<NetworkPolicyEgressRule, EgressError> {
    let net = network(rule, denied)?;
    let except: Vec<String> = denied.within(&net).iter().map(ToString::to_string).collect();
    let block = IPBlock {
        cidr: net.to_string(),
        except: (!except.is_empty()).then_some(except),
    };
    Ok(NetworkPolicyEgressRule {
        ports: Some(vec![port(IntOrString::Int(rule.port), protocol(rule))]),
        to: Some(vec![NetworkPolicyPeer {
            ip_block: Some(block),
            ..NetworkPolicyPeer::default()
        }]),
    })
}

fn to_gateway(gateway: &GatewayPods) -> NetworkPolicyEgressRule {
    let peer = NetworkPolicyPeer {
        namespace_selector: Some(selector([(NAMESPACE_NAME.to_owned(), gateway.namespace.clone())])),
        pod_selector: Some(selector(gateway.labels.clone())),
        ip_block: None,
    };
    NetworkPolicyEgressRule {
        ports: Some(vec![port(gateway.port.clone(), Protocol::TCP)]),
        to: Some(vec![peer]),
    }
}

fn selector(labels: impl IntoIterator<Item = (String, String)>) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels.into_iter().collect()),
        match_expressions: None,
    }
}

fn port(port: IntOrString, protocol: Protocol) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(port),
        protocol: Some(protocol.to_string()),
        end_port: None,
    }
}

#[cfg(test)]
#[path = "policies_tests.rs"]
mod tests;
