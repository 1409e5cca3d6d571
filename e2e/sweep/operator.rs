//! One life of an operator, from its start to its end or its crash.

use agentrun_operator::Operator;
use agentrun_operator::client;
use agentrun_operator::controllers;
use agentrun_operator::events::Events;
use agentrun_operator::health::Watches;
use agentrun_operator::metrics::Metrics;
use agentrun_operator::pods::{Injection, Platform};
use agentrun_operator::policies::{Denied, GatewayPods};
use agentrun_operator::settings::{InjectionMode, Settings};
use agentrun_operator::world::Installation;
use agentrun_protocol::probe::ProbeTargets;
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::faults::Faults;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const IMAGE: &str = "registry.example.com/runtime@sha256:aa";

/// An operator that looks after one namespace.
pub(crate) struct Life {
    work: JoinHandle<()>,
    stop: CancellationToken,
    watches: Watches,
}

impl Life {
    /// Starts one whose way to the API server has these faults.
    pub(crate) fn start(namespace: &Namespace, faults: &Faults) -> Self {
        let metrics = Metrics::new().expect("metrics");
        let client =
            client::build_over(namespace.config.clone(), metrics.clone(), None, faults).expect("a client");
        let watches = Watches::default();
        let operator = Operator {
            events: Events::new(client.clone(), "sweep"),
            client,
            settings: settings(namespace),
            metrics,
            watches: watches.clone(),
        };
        let (stop, token) = (CancellationToken::new(), CancellationToken::new());
        let (_known, installation) = watch::channel(Some(Arc::new(installation())));
        let work = tokio::spawn({
            let stop = stop.clone();
            async move {
                controllers::work(Arc::new(operator), installation, stop).await;
                drop(token);
            }
        });
        Self { work, stop, watches }
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) async fn crash(self) {
        self.work.abort();
        let _ = self.work.await;
    }

    /// Asks it to end. Fails if it has ended by itself.
    pub(crate) async fn end(self) {
        assert!(!self.work.is_finished(), "the operator has ended by itself");
        self.stop.cancel();
        self.work.await.expect("the operator has panicked");
    }

    /// What its health check would say.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.watches.faults(std::time::Instant::now())
    }
}

fn settings(namespace: &Namespace) -> Settings {
    Settings {
        runtime_image: IMAGE.to_owned(),
        default_image: "registry.example.com/python:3".to_owned(),
        gateway_service: "agentrun-system/agentrun-gateway".parse().expect("a Service"),
        image_pull_policy: None,
        sandbox_uid: 65532,
        executor_injection: InjectionMode::Image,
        require_network_isolation: true,
        egress_deny: Vec::new(),
        watch_namespace: Some(namespace.name.clone()),
        namespace: "agentrun-system".to_owned(),
        identity: "sweep".to_owned(),
        listen: ([127, 0, 0, 1], 0).into(),
    }
}

fn installation() -> Installation {
    let denied = Denied::new([], &[]);
    Installation {
        platform: Platform {
            runtime_image: IMAGE.to_owned(),
            runtime_digest: "sha256:aa".to_owned(),
            injection: Injection::Image,
            sandbox_uid: 65532,
            gateway_address: "10.96.0.7:8443".to_owned(),
            gateway_ca: "none".to_owned(),
            probe_targets: ProbeTargets {
                required: true,
                closed: Vec::new(),
                closed_if_there: Vec::new(),
            },
            denied: denied.clone(),
            image_pull_policy: None,
            isolation_required: true,
        },
        gateway: GatewayPods {
            namespace: "agentrun-system".to_owned(),
            labels: BTreeMap::from([("app".to_owned(), "gateway".to_owned())]),
            port: k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(8443),
        },
        denied,
    }
}
