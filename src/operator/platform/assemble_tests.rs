use super::*;
use crate::settings::tests::settings;
use serde_json::{Value, from_value, json};

fn gateway() -> Value {
    json!({"spec": {
        "clusterIP": "10.96.0.7", "selector": {"app": "gateway"},
        "ports": [{"name": "ops", "port": 9090}, {"name": "channel", "port": 8443, "targetPort": "channel"}],
    }})
}

fn found(gateway: Value) -> Found {
    let pod = |ip: &str, phase: &str, deleted: Value| json!({"metadata": {"deletionTimestamp": deleted}, "status": {"phase": phase, "podIPs": [{"ip": ip}]}});
    let gone = json!("2026-11-30T10:00:00Z");
    let pods = [
        pod("10.244.0.9", "Running", Value::Null),
        pod("fd00::9", "Running", Value::Null),
        pod("10.244.0.10", "Pending", Value::Null),
        pod("10.244.0.11", "Running", gone),
    ];
    let endpoints = json!([{"metadata": {}, "addressType": "IPv4", "endpoints": [{"addresses": ["172.18.0.2"]}], "ports": [{"port": 6443}]}]);
    let dns = json!({"spec": {"clusterIP": "10.96.0.10", "clusterIPs": ["10.96.0.10"], "ports": [
        {"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}, {"port": 9153, "protocol": "TCP"},
    ]}});
    let node = json!({"status": {"addresses": [
        {"type": "Hostname", "address": "node-1"}, {"type": "InternalIP", "address": "172.18.0.3"},
    ]}});
    Found {
        gateway: from_value(gateway).unwrap(),
        gateway_pods: pods.into_iter().map(|pod| from_value(pod).unwrap()).collect(),
        kubernetes: from_value(json!({"spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"port": 443}]}})).unwrap(),
        kubernetes_endpoints: from_value(endpoints).unwrap(),
        nodes: vec![from_value(node).unwrap()],
        dns: from_value(dns).unwrap(),
        authorities: "PEM".to_owned(),
    }
}

fn installation(found: &Found) -> Result<Installation, PlatformError> {
    assemble(
        &settings(&["--egress-deny=203.0.113.0/24"]).unwrap(),
        Injection::Image,
        found,
    )
}

#[test]
fn sandboxes_learn_the_gateways_address_and_policies_its_pods() {
    let Installation {
        platform, gateway, ..
    } = installation(&found(gateway())).unwrap();
    assert_eq!(platform.gateway_address, "10.96.0.7:8443");
    assert_eq!(gateway.namespace, "sys");
    assert_eq!(gateway.port, IntOrString::String("channel".to_owned()));
    assert_eq!(
        (&*platform.gateway_ca, &*platform.runtime_digest),
        ("PEM", "sha256:1")
    );
}

// F105
#[test]
fn the_probe_tries_api_server_kubelet_dns_and_another_port_of_the_gateway() {
    let targets = installation(&found(gateway())).unwrap().platform.probe_targets;
    let closed: Vec<String> = targets.closed.iter().map(ToString::to_string).collect();
    assert_eq!(
        closed,
        [
            "10.96.0.1:443",
            "10.96.0.10:53",
            "10.244.0.9:8444",
            "172.18.0.2:6443",
            "172.18.0.3:10250",
            "[fd00::9]:8444"
        ]
    );
    let if_there: Vec<String> = targets.closed_if_there.iter().map(ToString::to_string).collect();
    assert_eq!(if_there, ["169.254.169.254:80", "192.0.2.1:443"]);
    assert!(targets.required);
}

#[test]
fn the_api_server_and_what_the_flag_names_are_denied_to_every_egress() {
    let denied = installation(&found(gateway())).unwrap().denied;
    let refused = |cidr: &str| {
        let rule = agentrun_api::EgressRule {
            name: "x".to_owned(),
            cidr: cidr.to_owned(),
            port: 1,
            protocol: None,
        };
        crate::policies::check(&[rule], &denied).is_err()
    };
    assert!(refused("10.96.0.1/32") && refused("172.18.0.2/32") && refused("203.0.113.9/32"));
    assert!(!refused("198.51.100.1/32"));
}

#[test]
fn the_order_of_lists_is_no_change() {
    let (one, mut other) = (found(gateway()), found(gateway()));
    other.gateway_pods.reverse();
    assert_eq!(installation(&one), installation(&other));
}

#[test]
fn an_incomplete_installation_is_named() {
    let without = |path: &str, value: Value| {
        let mut service = gateway();
        service["spec"][path] = value;
        installation(&found(service)).unwrap_err()
    };
    let name = || "sys/gw".to_owned();
    assert_eq!(
        without("clusterIP", json!("None")),
        PlatformError::NoClusterIp(name())
    );
    assert_eq!(without("selector", json!({})), PlatformError::NoSelector(name()));
    assert_eq!(
        without("ports", json!([{"port": 80}])),
        PlatformError::NoPort(name())
    );
    assert_eq!(
        installation(&found(Value::Null)).unwrap_err(),
        PlatformError::NoService(name())
    );
    let unknown = Found {
        kubernetes: None,
        kubernetes_endpoints: vec![],
        ..found(gateway())
    };
    assert_eq!(installation(&unknown).unwrap_err(), PlatformError::NoApiServer);
}
