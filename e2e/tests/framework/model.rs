//! A model for tests: `e2e/model-server` in a Pod of the test's namespace, answering by a scenario.

use super::manifest::{restricted_container, restricted_pod};
use super::wait::{MINUTE, named, until};
use super::world::World;
use agentrun_api::Model;
use k8s_openapi::api::core::v1::{Pod, Service};
use serde_json::{Value, json};
use std::time::Duration;

const SERVER: &str = include_str!("../../model-server/server.py");
/// What its Service selects.
const LABEL: &str = "agentrun.dev/e2e-model";
const PORT: u16 = 8000;

impl World {
    /// Starts a model that answers by these rules, and waits until the gateway has found it ready. It serves every role.
    pub async fn model(&self, rules: &Value) {
        self.create_all(&self.model_server(rules)).await;
        until(
            &self.api::<Pod>(),
            named("model"),
            MINUTE,
            "the model answers",
            |seen| {
                let conditions = seen.get("model")?.status.as_ref()?.conditions.as_ref()?;
                let ready = |condition: &k8s_openapi::api::core::v1::PodCondition| {
                    condition.type_ == "Ready" && condition.status == "True"
                };
                conditions.iter().any(ready).then_some(())
            },
        )
        .await;
        // By its address: not every cluster of tests has a DNS.
        let service: Service = self.api().get("model").await.expect("the model's Service");
        let address = service.spec.and_then(|spec| spec.cluster_ip).expect("an address");
        let model = json!({
            "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model", "metadata": {"name": "scripted"},
            "spec": {
                "endpoint": format!("http://{address}:{PORT}/v1"), "model": "scripted", "default": true,
                "contextTokens": 32_000, "price": {"currency": "EUR", "input": "1", "output": "2"},
            },
        });
        self.create_all(&model.to_string()).await;
        until(
            &self.api::<Model>(),
            named("scripted"),
            MINUTE,
            "the Model is ready",
            |seen| {
                let conditions = &seen.get("scripted")?.status.as_ref()?.conditions;
                let ready = conditions
                    .iter()
                    .any(|condition| condition.type_ == "Ready" && condition.status == "True");
                ready.then_some(())
            },
        )
        .await;
    }

    /// What the model was asked so far: bodies of requests, oldest first.
    pub async fn asked(&self) -> Vec<Value> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/model:{PORT}/proxy/asked",
            self.namespace
        );
        let request = http::Request::get(path).body(Vec::new()).expect("a request");
        let text = self.client.request_text(request).await.expect("the model's list");
        serde_json::from_str(&text).expect("a list")
    }

    /// Waits until the model was asked a request like this. Nothing can be watched here: it is looked at again and again.
    pub async fn when_asked(&self, what: &str, fits: impl Fn(&Value) -> bool) {
        let look = async {
            while !self.asked().await.iter().any(&fits) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let found = tokio::time::timeout(MINUTE, look).await;
        found.unwrap_or_else(|_| panic!("not within {MINUTE:?}: the model is asked {what}"));
    }

    fn model_server(&self, rules: &Value) -> String {
        let scenario = json!({ "rules": rules }).to_string();
        let labels = json!({ (LABEL): "true" });
        let objects = [
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "model"},
                "data": {"server.py": SERVER, "scenario.json": scenario},
            }),
            json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": "model"},
                "spec": {"selector": labels, "ports": [{"port": PORT}]},
            }),
            json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "model", "labels": labels},
                "spec": {
                    "automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": 0,
                    "securityContext": restricted_pod(),
                    "containers": [{
                        "name": "model", "image": self.image, "imagePullPolicy": "IfNotPresent",
                        "command": ["python3", "-u", "/model/server.py", "script", "/model/scenario.json"],
                        "ports": [{"containerPort": PORT}],
                        "readinessProbe": {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": 1},
                        "securityContext": restricted_container(),
                        "volumeMounts": [{"name": "model", "mountPath": "/model", "readOnly": true}],
                    }],
                    "volumes": [{"name": "model", "configMap": {"name": "model"}}],
                },
            }),
        ];
        objects.map(|object| object.to_string()).join("\n---\n")
    }
}
