//! The operator's flags. Every flag can also be set by its environment variable.

use crate::pods::Injection;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use std::net::SocketAddr;
use std::str::FromStr;

/// Settings of `agentrun operator`.
#[derive(Args, Clone, Debug)]
pub struct Settings {
    /// Image with the two static binaries `agentrun-runtime` and `agentrun-sandbox`, best by digest.
    #[arg(long, env = "AGENTRUN_RUNTIME_IMAGE")]
    pub runtime_image: String,
    /// Image of sandboxes for which neither a task nor a pool names one.
    #[arg(long, env = "AGENTRUN_DEFAULT_IMAGE")]
    pub default_image: String,
    /// Service of the gateway's channel, NAMESPACE/NAME.
    #[arg(long, env = "AGENTRUN_GATEWAY_SERVICE", value_name = "NS/NAME")]
    pub gateway_service: ServiceName,
    /// When images are pulled; the API server's rule when unset.
    #[arg(long, env = "AGENTRUN_IMAGE_PULL_POLICY")]
    pub image_pull_policy: Option<PullPolicy>,
    /// UID, GID and fsGroup of every sandbox.
    #[arg(long, env = "AGENTRUN_SANDBOX_UID", default_value_t = 65532, value_parser = clap::value_parser!(i64).range(1..))]
    pub sandbox_uid: i64,
    /// How the executor comes into a user's image: `image` mounts the runtime image as a volume, `init` copies it with
    /// an init container, `auto` tries the first and falls back to the second.
    #[arg(long, env = "AGENTRUN_EXECUTOR_INJECTION", default_value = "auto")]
    pub executor_injection: InjectionMode,
    /// Refuse all work where a sandbox can reach what it must not. Turning it off is a visible choice: the condition
    /// `NetworkIsolated` says so.
    #[arg(long, env = "AGENTRUN_REQUIRE_NETWORK_ISOLATION", default_value_t = true, action = clap::ArgAction::Set)]
    pub require_network_isolation: bool,
    /// Networks that no sandbox may be let to, whatever its `egress` says.
    #[arg(
        long,
        env = "AGENTRUN_EGRESS_DENY",
        value_delimiter = ',',
        value_name = "CIDR"
    )]
    pub egress_deny: Vec<IpNet>,
    /// The only namespace whose runs are worked on; all namespaces when unset. Operators that share a cluster must have
    /// disjoint ones, and a namespace of their own each.
    #[arg(long, env = "AGENTRUN_WATCH_NAMESPACE")]
    pub watch_namespace: Option<String>,
    /// The operator's own namespace: its Lease, its Secrets, its probe Pods.
    #[arg(long, env = "AGENTRUN_NAMESPACE", default_value = "agentrun-system")]
    pub namespace: String,
    /// Name of this replica, unique among the replicas: the holder of the Lease. The host's name by default.
    #[arg(long, env = "AGENTRUN_POD_NAME", default_value_t = host_name())]
    pub identity: String,
    /// Address of `/metrics`, `/healthz` and `/readyz`.
    #[arg(long, env = "AGENTRUN_LISTEN", default_value = "0.0.0.0:9090")]
    pub listen: SocketAddr,
}

/// Name of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The text names no Service.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} names no Service, expected NAMESPACE/NAME such as agentrun-system/agentrun-gateway")]
pub struct NotAService(String);

impl FromStr for ServiceName {
    type Err = NotAService;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            }
            _ => Err(NotAService(text.to_owned())),
        }
    }
}

/// `imagePullPolicy` of every container of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum PullPolicy {
    /// At every start.
    Always,
    /// When the node does not have the image.
    IfNotPresent,
    /// Never: the node must have the image.
    Never,
}

impl PullPolicy {
    /// As a Pod writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::IfNotPresent => "IfNotPresent",
            Self::Never => "Never",
        }
    }
}

/// How the executor comes into a user's image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InjectionMode {
    /// Image volumes where a probe Pod has shown that they work, else an init container.
    Auto,
    /// Image volumes.
    Image,
    /// An init container.
    Init,
}

impl InjectionMode {
    /// What was chosen, if there is nothing to find out.
    pub const fn chosen(self) -> Option<Injection> {
        match self {
            Self::Auto => None,
            Self::Image => Some(Injection::Image),
            Self::Init => Some(Injection::Init),
        }
    }
}

impl Settings {
    /// The digest in the runtime image's reference; the whole reference where it has none.
    pub fn runtime_digest(&self) -> &str {
        self.runtime_image
            .split_once('@')
            .map_or(&*self.runtime_image, |(_, digest)| digest)
    }
}

/// A Pod's host name is its name.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    read.map_or_else(|_| "agentrun-operator".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        settings: Settings,
    }

    /// Settings as a user would give them.
    pub(crate) fn settings(more: &[&str]) -> Result<Settings, clap::Error> {
        let least = [
            "agentrun",
            "--runtime-image=r@sha256:1",
            "--default-image=d",
            "--gateway-service=sys/gw",
        ];
        Ok(Only::try_parse_from(least.iter().chain(more))?.settings)
    }

    #[test]
    fn defaults_are_the_safe_choices() {
        let settings = settings(&[]).unwrap();
        assert!(settings.require_network_isolation);
        assert_eq!(settings.sandbox_uid, 65532);
        assert_eq!(settings.executor_injection, InjectionMode::Auto);
        assert_eq!(settings.runtime_digest(), "sha256:1");
    }

    #[test]
    fn root_is_no_sandbox_user() {
        assert!(settings(&["--sandbox-uid=0"]).is_err());
    }

    #[test]
    fn isolation_is_turned_off_only_by_an_explicit_value() {
        assert!(
            !settings(&["--require-network-isolation=false"])
                .unwrap()
                .require_network_isolation
        );
        assert!(settings(&["--require-network-isolation"]).is_err());
    }

    #[test]
    fn networks_come_as_one_list() {
        let settings = settings(&["--egress-deny=10.0.0.0/8,192.168.0.0/16"]).unwrap();
        assert_eq!(settings.egress_deny.len(), 2);
    }

    #[test]
    fn a_service_needs_a_namespace_and_a_name() {
        for text in ["gw", "/gw", "sys/", "a/b/c"] {
            assert!(text.parse::<ServiceName>().is_err(), "{text}");
        }
    }
}
