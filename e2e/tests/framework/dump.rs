//! All that is known of a failed test's namespace, for whoever reads the failure.

use super::world::World;
use agentrun_api::{AgentRun, SubTask, Thread};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{ListParams, LogParams};
use kube::{Api, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{Debug, Write as _};

/// Lines of each log.
const LINES: i64 = 40;

impl World {
    /// Objects, events, Pods and logs as text.
    pub async fn dump(&self) -> String {
        let mut text = format!("--- namespace {}\n", self.namespace);
        self.objects::<AgentRun>(&mut text, "AgentRun").await;
        self.objects::<SubTask>(&mut text, "SubTask").await;
        self.objects::<Thread>(&mut text, "Thread").await;
        self.objects::<PersistentVolumeClaim>(&mut text, "PersistentVolumeClaim")
            .await;
        self.objects::<Pod>(&mut text, "Pod").await;
        self.events(&mut text).await;
        self.logs(&mut text, self.api(), "runtime").await;
        let system: Api<Pod> = Api::namespaced(self.client.clone(), &self.system);
        self.logs(&mut text, system, "").await;
        text
    }

    async fn objects<K>(&self, text: &mut String, kind: &str)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + DeserializeOwned
            + Debug
            + Serialize,
        K::DynamicType: Default,
    {
        let Ok(list) = self.api::<K>().list(&ListParams::default()).await else {
            return;
        };
        for mut object in list.items {
            object.meta_mut().managed_fields = None;
            let value = serde_json::to_value(&object).unwrap_or_default();
            let brief = serde_json::json!({"metadata": {
                "deletionTimestamp": value["metadata"]["deletionTimestamp"],
                "finalizers": value["metadata"]["finalizers"],
            }, "status": value["status"]});
            let brief = serde_yaml::to_string(&brief).unwrap_or_default();
            let _ = writeln!(text, "--- {kind} {}\n{brief}", object.name_any());
        }
    }

    async fn events(&self, text: &mut String) {
        let Ok(list) = self.api::<Event>().list(&ListParams::default()).await else {
            return;
        };
        text.push_str("--- events\n");
        for event in list.items {
            let about = event.involved_object.name.unwrap_or_default();
            let (reason, message) = (
                event.reason.unwrap_or_default(),
                event.message.unwrap_or_default(),
            );
            let _ = writeln!(text, "{about}: {reason}: {message}");
        }
    }

    async fn logs(&self, text: &mut String, api: Api<Pod>, container: &str) {
        let Ok(pods) = api.list(&ListParams::default()).await else {
            return;
        };
        for pod in pods.items {
            let params = LogParams {
                container: (!container.is_empty()).then(|| container.to_owned()),
                tail_lines: Some(LINES),
                ..LogParams::default()
            };
            let log = api.logs(&pod.name_any(), &params).await.unwrap_or_default();
            let _ = writeln!(text, "--- log of {}\n{log}", pod.name_any());
        }
    }
}
