//! `agentrun drain`: before an installation goes, its runs are cancelled and nothing keeps a finalizer that nobody would
//! take off any more. Needs no valid object, and may be repeated.

use crate::client::{ConnectError, connect};
use crate::metrics::Metrics;
use agentrun_api::names::labels::{IN_USE, LEASE, MADE_FOR, MANAGED_BY, MANAGED_BY_VALUE, SLOTS};
use clap::Args;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, Error, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::time::Duration;
use tokio::time::Instant;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// Between two looks at what is still going on.
const PAUSE: Duration = Duration::from_secs(1);
/// Attempts to change an object that others change too.
const ATTEMPTS: usize = 5;
/// The kinds that can carry a finalizer of ours.
const KINDS: [&str; 3] = ["SubTask", "Thread", "SandboxPool"];

/// Settings of `agentrun drain`.
#[derive(Args, Clone, Debug)]
pub struct DrainSettings {
    /// Drains this namespace only.
    #[arg(long, env = "AGENTRUN_DRAIN_NAMESPACE")]
    pub namespace: Option<String>,
    /// Seconds that the operator gets to end the cancelled runs itself.
    #[arg(long, env = "AGENTRUN_DRAIN_TIMEOUT", default_value_t = 60)]
    pub timeout: u64,
}

/// Draining did not get through.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// No Kubernetes.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The metrics clash.
    #[error("the metrics are not consistent: {0}")]
    Metrics(#[from] prometheus::Error),
    /// The API server refused or does not answer.
    #[error("the API server does not let us drain: {0}")]
    Api(#[from] Error),
}

/// Cancels, waits, and takes off what is left.
pub async fn drain(settings: &DrainSettings) -> Result<(), DrainError> {
    let client = connect(&Metrics::new()?, None).await?;
    Ok(Drain {
        client,
        namespace: settings.namespace.clone(),
    }
    .run(Duration::from_secs(settings.timeout))
    .await?)
}

struct Drain {
    client: Client,
    namespace: Option<String>,
}

impl Drain {
    async fn run(&self, patience: Duration) -> Result<(), Error> {
        let cancelled = self.cancel_runs().await?;
        tracing::info!(cancelled, "runs are cancelled");
        let end = Instant::now() + patience;
        while self.is_busy().await? && Instant::now() < end {
            tokio::time::sleep(PAUSE).await;
        }
        let mut freed = 0;
        for kind in KINDS {
            freed += self.free(kind).await?;
        }
        let deleted = self.delete_pods().await?;
        tracing::info!(freed, deleted, "drained");
        Ok(())
    }

    async fn cancel_runs(&self) -> Result<usize, Error> {
        let mut cancelled = 0;
        for run in self.objects("AgentRun").await? {
            if is_over(&run) {
                continue;
            }
            let cancel = Patch::Merge(json!({"spec": {"cancel": true}}));
            let result = self
                .api("AgentRun", &run)
                .patch(&run.name_any(), &PatchParams::default(), &cancel)
                .await;
            match result {
                Ok(_) => cancelled += 1,
                Err(error) if is_gone(&error) => {}
                // A run of another version of the schema: its sub-tasks are freed all the same.
                Err(Error::Api(status)) if status.code == 422 => {
                    tracing::warn!(
                        run = run.name_any(),
                        message = status.message,
                        "cannot be cancelled"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(cancelled)
    }

    async fn is_busy(&self) -> Result<bool, Error> {
        let runs = self.objects("AgentRun").await?;
        if !runs.iter().all(is_over) {
            return Ok(true);
        }
        Ok(self
            .objects("SubTask")
            .await?
            .iter()
            .any(|subtask| without_ours(subtask.finalizers()).is_some()))
    }

    async fn free(&self, kind: &str) -> Result<usize, Error> {
        let mut freed = 0;
        for object in self.objects(kind).await? {
            freed += usize::from(self.free_one(kind, object).await?);
        }
        Ok(freed)
    }

    /// Takes our finalizers off one object, and no other.
    async fn free_one(&self, kind: &str, mut object: DynamicObject) -> Result<bool, Error> {
        let api = self.api(kind, &object);
        for _ in 0..ATTEMPTS {
            let Some(left) = without_ours(object.finalizers()) else {
                return Ok(false);
            };
            let patch =
                json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": left}});
            match api
                .patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch))
                .await
            {
                Ok(_) => return Ok(true),
                Err(error) if is_gone(&error) => return Ok(false),
                Err(Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
            match api.get_opt(&object.name_any()).await? {
                Some(found) => object = found,
                None => return Ok(false),
            }
        }
        tracing::warn!(
            kind,
            name = object.name_any(),
            "changes all the time, run drain again"
        );
        Ok(false)
    }

    /// Sandboxes whose operator is gone would only end at their deadline.
    async fn delete_pods(&self) -> Result<usize, Error> {
        let api: Api<Pod> = self.everywhere();
        let ours = ListParams::default().labels(&format!("{MANAGED_BY}={MANAGED_BY_VALUE},{MADE_FOR}"));
        let mut deleted = 0;
        for pod in list(&api, ours).await? {
            let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
            match api.delete(&pod.name_any(), &DeleteParams::default()).await {
                Ok(_) => deleted += 1,
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }

    /// Every object of a kind of ours, without its type: one that no longer fits must not stop the rest. None where the
    /// kind itself is gone.
    async fn objects(&self, kind: &str) -> Result<Vec<DynamicObject>, Error> {
        let resource = resource(kind);
        let api: Api<DynamicObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        match list(&api, ListParams::default()).await {
            Err(error) if is_gone(&error) => Ok(Vec::new()),
            result => result,
        }
    }

    fn api(&self, kind: &str, object: &DynamicObject) -> Api<DynamicObject> {
        let namespace = object.namespace().unwrap_or_default();
        Api::namespaced_with(self.client.clone(), &namespace, &resource(kind))
    }

    fn everywhere<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }
}

fn resource(kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        agentrun_api::GROUP,
        agentrun_api::VERSION,
        kind,
    ))
}

async fn list<K>(api: &Api<K>, params: ListParams) -> Result<Vec<K>, Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    let (mut items, mut params) = (Vec::new(), params.limit(PAGE));
    loop {
        let page = api.list(&params).await?;
        items.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// The finalizers that stay, if one of ours is among them.
fn without_ours(finalizers: &[String]) -> Option<Vec<&String>> {
    let ours = |finalizer: &&String| [LEASE, IN_USE, SLOTS].contains(&finalizer.as_str());
    finalizers
        .iter()
        .any(|finalizer| ours(&finalizer))
        .then(|| finalizers.iter().filter(|one| !ours(one)).collect())
}

fn is_over(run: &DynamicObject) -> bool {
    matches!(
        run.data["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed" | "Cancelled")
    )
}

fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    // F008
    #[test]
    fn only_our_finalizers_are_taken_off() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let mixed = texts(&[LEASE, "foregroundDeletion", IN_USE]);
        assert_eq!(without_ours(&mixed), Some(vec![&mixed[1]]));
        assert_eq!(without_ours(&texts(&["foregroundDeletion"])), None);
        assert_eq!(without_ours(&[]), None);
    }

    #[test]
    fn kinds_are_found_by_their_plurals() {
        let plurals: Vec<String> = KINDS.iter().map(|kind| resource(kind).plural).collect();
        assert_eq!(plurals, ["subtasks", "threads", "sandboxpools"]);
        assert_eq!(resource("AgentRun").plural, "agentruns");
    }
}
