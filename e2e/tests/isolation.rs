//! What user code can reach, read and write from inside a sandbox.

use crate::framework::{MINUTE, World, command, named, python, restricted_container, restricted_pod, until};
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};

const PROBE: &str = include_str!("probes/isolation.py");
/// The peer's port, for TCP and UDP.
const PEER_PORT: u16 = 8080;
/// What a program finds in its environment when nobody asked for more, by the design's allow-list.
const ENVIRONMENT: &[&str] = &[
    "AGENTRUN_INPUT",
    "AGENTRUN_OUTPUT",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "OPENBLAS_NUM_THREADS",
    "MPLBACKEND",
    "PATH",
    "PWD",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONUNBUFFERED",
    "SHELL",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
];

/// A Pod that answers over TCP and UDP. Its readiness proves that it can be reached at all.
pub async fn peer(world: &World) -> String {
    let code = "import socket, threading\n\
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(('', 8080))\n\
        def echo():\n  while True:\n    data, at = udp.recvfrom(64); udp.sendto(data, at)\n\
        threading.Thread(target=echo, daemon=True).start()\n\
        tcp = socket.create_server(('', 8080))\n\
        while True: tcp.accept()[0].close()\n";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "peer"},
        "spec": {
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "securityContext": restricted_pod(),
            "containers": [{
                "name": "peer", "image": world.image, "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-c", code],
                "securityContext": restricted_container(),
                "readinessProbe": {"tcpSocket": {"port": PEER_PORT}, "periodSeconds": 1},
            }],
        },
    });
    world.create_all(&pod.to_string()).await;
    until(
        &world.api::<Pod>(),
        named("peer"),
        MINUTE,
        "the peer is ready",
        |seen| {
            let status = seen.get("peer")?.status.as_ref()?;
            let conditions = status.conditions.iter().flatten();
            let ready = conditions
                .into_iter()
                .any(|condition| condition.type_ == "Ready" && condition.status == "True");
            ready.then(|| status.pod_ip.clone()).flatten()
        },
    )
    .await
}

/// Everything that must be closed: by name, an address and a port.
pub async fn closed(world: &World, peer: &str) -> Value {
    let mut tcp = serde_json::Map::new();
    tcp.insert("another Pod".into(), json!([peer, PEER_PORT]));
    tcp.insert("metadata address".into(), json!(["169.254.169.254", 80]));
    let services: Api<Service> = Api::namespaced(world.client.clone(), "default");
    let service = services
        .get("kubernetes")
        .await
        .expect("the service of the API server");
    let address = service.spec.and_then(|spec| spec.cluster_ip).expect("an address");
    tcp.insert("API server by its service".into(), json!([address, 443]));
    let slices: Api<EndpointSlice> = Api::namespaced(world.client.clone(), "default");
    let listed = ListParams::default().labels("kubernetes.io/service-name=kubernetes");
    for slice in slices.list(&listed).await.expect("end points").items {
        let ports: Vec<_> = slice
            .ports
            .iter()
            .flatten()
            .filter_map(|port| port.port)
            .collect();
        for (address, port) in slice.endpoints.iter().flat_map(|end| &end.addresses).zip(ports) {
            tcp.insert("API server by its node".into(), json!([address, port]));
        }
    }
    let nodes = Api::<Node>::all(world.client.clone())
        .list(&ListParams::default())
        .await
        .expect("nodes");
    for address in nodes
        .items
        .iter()
        .filter_map(|node| node.status.as_ref())
        .flat_map(|status| status.addresses.iter().flatten())
    {
        if address.type_ == "InternalIP" {
            tcp.insert("kubelet".into(), json!([address.address, 10250]));
            tcp.insert("kubelet, read-only".into(), json!([address.address, 10255]));
        }
    }
    for (part, address) in system_pods(world).await {
        tcp.insert(format!("{part} canary"), json!([address, 8444]));
        tcp.insert(format!("{part} metrics"), json!([address, 9090]));
    }
    json!({"tcp": tcp, "udp": {"another Pod over UDP": [peer, PEER_PORT]}})
}

async fn system_pods(world: &World) -> Vec<(String, String)> {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), &world.system);
    let ours = ListParams::default().labels("app.kubernetes.io/name=agentrun");
    let found = pods.list(&ours).await.expect("Pods of the installation").items;
    let part = |pod: &Pod| {
        pod.metadata
            .labels
            .as_ref()?
            .get("app.kubernetes.io/component")
            .cloned()
    };
    let address = |pod: &Pod| pod.status.as_ref()?.pod_ip.clone();
    found
        .iter()
        .filter_map(|pod| Some((part(pod)?, address(pod)?)))
        .collect()
}

fn probe(targets: &Value) -> String {
    format!(
        "userData: {{size: 64Mi}}\nfiles: [{{path: given.txt, content: given}}]\n\
         tasks:\n- name: probe\n  {}\n  input: {}\n  timeout: 60s\n",
        command(&["python3", "-c", PROBE]),
        json!({ "targets": targets })
    )
}

fn nothing(found: &Value, of: &str) {
    assert_eq!(found[of], json!([]), "{of} in {found:#}");
}

// F105, F106, F107
pub async fn a_sandbox_reaches_nothing_and_finds_no_credential(world: World) {
    let peer = peer(&world).await;
    let targets = closed(&world, &peer).await;
    let ended = world.finish("inside", &probe(&targets)).await;
    let found = ended.succeeded().tasks.output("probe");
    for of in ["open", "answered", "written", "credentials"] {
        nothing(&found, of);
    }
    assert_eq!(found["sockets"], false, "the executor's socket is still there");
    let status = &found["status"];
    assert_eq!(status["CapEff"], "0000000000000000");
    assert_eq!(status["CapBnd"], "0000000000000000");
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2");
    assert_eq!(status["Uid"], "65532\t65532\t65532\t65532");
    let processes = found["processes"].as_object().expect("processes by number");
    for name in processes.values().filter_map(Value::as_str) {
        assert!(
            !name.contains("runtime"),
            "the runtime's processes are seen: {found:#}"
        );
    }
    let unknown: Vec<_> = found["environment"]
        .as_array()
        .expect("names")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let unknown: Vec<_> = unknown
        .into_iter()
        .filter(|name| !ENVIRONMENT.contains(name))
        .collect();
    assert!(unknown.is_empty(), "passed through to user code: {unknown:?}");
}

// F105, F108
pub async fn egress_opens_what_it_names_and_nothing_else(world: World) {
    let peer = peer(&world).await;
    let targets = closed(&world, &peer).await;
    let egress = format!("sandbox:\n  egress:\n  - {{name: peer, cidr: {peer}/32, port: {PEER_PORT}}}\n");
    let ended = world.finish("inside", &(egress + &probe(&targets))).await;
    let found = ended.succeeded().tasks.output("probe");
    assert_eq!(found["open"], json!(["another Pod"]), "{found:#}");
    for of in ["answered", "written", "credentials"] {
        nothing(&found, of);
    }
}

// F074, F106, F110: the namespace enforces `restricted`; this is what that level does not ask for.
pub async fn a_sandbox_pod_keeps_what_the_design_promises(world: World) {
    world
        .start(
            "shape",
            &format!("tasks:\n- name: wait\n  {}\n", python("time.sleep(300)")),
        )
        .await;
    let pod = world.running_pod("shape", "wait").await;
    let spec = serde_json::to_value(pod.spec).expect("a spec");
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["dnsPolicy"], "None");
    assert_eq!(spec["restartPolicy"], "Never");
    for host in ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] {
        assert_ne!(spec[host], true, "{host}");
    }
    assert!(spec["activeDeadlineSeconds"].is_number());
    let volumes = spec["volumes"].as_array().expect("volumes");
    for volume in volumes {
        assert!(volume["hostPath"].is_null(), "{volume}");
        let unbounded = volume["emptyDir"].is_object() && volume["emptyDir"]["sizeLimit"].is_null();
        assert!(!unbounded, "{volume} has no limit");
    }
    let tokens = volumes
        .iter()
        .filter(|volume| volume["projected"].is_object())
        .count();
    assert_eq!(tokens, 1, "one projected token, the runtime's");
    let containers = spec["containers"].as_array().expect("containers");
    for container in containers {
        let security = &container["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true);
        assert_eq!(security["allowPrivilegeEscalation"], false);
        for resource in ["cpu", "memory", "ephemeral-storage"] {
            for side in ["requests", "limits"] {
                let given = &container["resources"][side][resource];
                assert!(
                    given.is_string(),
                    "{} has no {side} of {resource}",
                    container["name"]
                );
            }
        }
        let sees_token = container["volumeMounts"]
            .as_array()
            .into_iter()
            .flatten()
            .any(|mount| {
                mount["mountPath"]
                    .as_str()
                    .is_some_and(|path| path.contains("secrets/agentrun"))
            });
        assert_eq!(
            sees_token,
            container["name"] == "runtime",
            "the token is the runtime's alone"
        );
    }
}
