//! A kubelet that needs no node: it binds every Pod, says that its containers run, and confirms every deletion.

use crate::cluster::Namespace;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, Preconditions};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use std::time::Duration;

/// The one node, which exists in the API only.
const NODE: &str = "nowhere";
const FIELD_MANAGER: &str = "agentrun-testkit";
/// The node lifecycle controller waits for 40 s until a node without sign of life is not ready.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Makes the node, ready for ever.
pub(super) async fn ensure_node(client: &Client) {
    let api: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
        // Nobody else's Pods: nothing would run them.
        "spec": {"taints": [{"key": "agentrun.dev/nowhere", "effect": "NoSchedule"}]},
    });
    api.patch(NODE, &params, &Patch::Apply(&node))
        .await
        .unwrap_or_else(|error| panic!("node {NODE}: {error}"));
    beat(client).await;
}

/// Signs of life of the node.
pub(super) async fn heartbeat(client: Client) {
    let mut beats = tokio::time::interval(HEARTBEAT);
    loop {
        beats.tick().await;
        beat(&client).await;
    }
}

/// One that fails is made up for by the next.
async fn beat(client: &Client) {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let now = Timestamp::now();
    let nodes: Api<Node> = Api::all(client.clone());
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
        "lastHeartbeatTime": now.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let node = json!({"apiVersion": "v1", "kind": "Node", "status": {"conditions": [ready]}});
    let _ = nodes.patch_status(NODE, &params, &Patch::Apply(&node)).await;
    let lease = Lease {
        metadata: ObjectMeta {
            name: Some(NODE.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec {
            holder_identity: Some(NODE.to_owned()),
            lease_duration_seconds: Some(40),
            renew_time: Some(MicroTime(now)),
            ..LeaseSpec::default()
        }),
    };
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let _ = leases.patch(NODE, &params, &Patch::Apply(&lease)).await;
}

/// Runs the Pods of a namespace.
pub(super) async fn run(namespace: Namespace) {
    let api = namespace.api::<Pod>();
    let pods = watcher(api.clone(), watcher::Config::default())
        .default_backoff()
        .applied_objects();
    let mut pods = std::pin::pin!(pods);
    loop {
        // A watch that failed is renewed by itself.
        let Ok(Some(pod)) = pods.try_next().await else {
            continue;
        };
        let done = match (pod.metadata.deletion_timestamp.is_some(), is_bound(&pod)) {
            (true, _) => confirm_deletion(&api, &pod).await,
            (false, false) => bind(&namespace, &pod).await,
            (false, true) if is_running(&pod) => Ok(()),
            (false, true) => start(&api, &pod).await,
        };
        match done {
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            done => done.unwrap_or_else(|error| panic!("Pod {}: {error}", pod.name_any())),
        }
    }
}

fn is_bound(pod: &Pod) -> bool {
    pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
}

pub(super) fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

async fn bind(namespace: &Namespace, pod: &Pod) -> Result<(), kube::Error> {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": pod.name_any(), "namespace": namespace.name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    });
    let path = format!(
        "/api/v1/namespaces/{}/pods/{}/binding",
        namespace.name,
        pod.name_any()
    );
    let request = http::Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(&binding).unwrap_or_default())
        .map_err(kube::Error::HttpError)?;
    namespace.client.request::<Value>(request).await.map(drop)
}

async fn start(api: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    let now = Timestamp::now().to_string();
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let statuses: Vec<_> = containers
        .map(|container| {
            json!({
                "name": container.name, "image": container.image, "imageID": "", "ready": true, "started": true,
                "restartCount": 0, "state": {"running": {"startedAt": now}},
            })
        })
        .collect();
    let status = json!({"status": {"phase": "Running", "startTime": now, "containerStatuses": statuses}});
    api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(&status))
        .await
        .map(drop)
}

async fn confirm_deletion(api: &Api<Pod>, pod: &Pod) -> Result<(), kube::Error> {
    let preconditions = Preconditions {
        uid: pod.uid(),
        resource_version: None,
    };
    let params = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(preconditions),
        ..DeleteParams::default()
    };
    api.delete(&pod.name_any(), &params).await.map(drop)
}
