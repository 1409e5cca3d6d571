//! Reads and writes of the Kubernetes API.

use crate::board::Name;
use crate::bounds;
use crate::metrics::Metrics;
use agentrun_api::names::labels::GATEWAY;
use agentrun_api::{Model, Skill, SubTask};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// The API as far as the gateway needs it.
pub(crate) struct Objects {
    client: Client,
    metrics: Metrics,
    searches: Semaphore,
    config_maps: Recent<ConfigMap>,
    secrets: Recent<Secret>,
}

/// Objects that were read a moment ago.
type Recent<K> = Mutex<HashMap<Name, (Instant, Arc<K>)>>;

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// How old a ConfigMap or a Secret may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Age {
    /// Read now.
    Fresh,
    /// Read a moment ago: within [`bounds::CONFIG_MAP_AGE`], for content that is checked by its digest anyway, or
    /// [`bounds::SECRET_AGE`].
    Recent,
}

impl Objects {
    pub(crate) fn new(client: Client, metrics: Metrics) -> Self {
        Self {
            client,
            metrics,
            searches: Semaphore::new(1),
            config_maps: Mutex::default(),
            secrets: Mutex::default(),
        }
    }

    /// A sub-task, `None` when there is none of that name.
    pub(crate) async fn subtask(&self, name: &Name) -> Result<Option<SubTask>, kube::Error> {
        self.subtasks(&name.namespace).get_opt(&name.name).await
    }

    /// Looks for a sub-task that no watch has shown yet, by a consistent list. One such search runs at a time.
    pub(crate) async fn find_subtask(&self, namespace: &str, uid: &str) -> Result<Option<Name>, kube::Error> {
        let _place = self.searches.acquire().await.ok();
        let api = self.subtasks(namespace);
        let mut params = ListParams::default().limit(bounds::PAGE);
        loop {
            let page = api.list_metadata(&params).await?;
            if let Some(found) = page.items.iter().find(|item| item.uid().as_deref() == Some(uid)) {
                return Ok(Some(Name {
                    namespace: namespace.to_owned(),
                    name: found.name_any(),
                }));
            }
            match page.metadata.continue_ {
                Some(token) if !token.is_empty() => params = params.continue_token(&token),
                _ => return Ok(None),
            }
        }
    }

    /// Makes a sub-task.
    pub(crate) async fn create_subtask(&self, namespace: &str, subtask: &SubTask) -> Result<(), kube::Error> {
        let params = PostParams {
            field_manager: Some(GATEWAY.to_owned()),
            ..PostParams::default()
        };
        let made = self.subtasks(namespace).create(&params, subtask).await;
        let answer = made.map(|_| ());
        self.metrics
            .writes
            .with_label_values(&["create", &SubTask::kind(&()), answer_class(&answer)])
            .inc();
        answer
    }

    /// Patches a sub-task's status by a JSON Patch.
    pub(crate) async fn patch_status(
        &self,
        name: &Name,
        patch: serde_json::Value,
    ) -> Result<(), kube::Error> {
        self.patch(&self.subtasks(&name.namespace), name, patch).await
    }

    /// Patches a skill's status by a JSON Patch.
    pub(crate) async fn patch_skill(&self, name: &Name, patch: serde_json::Value) -> Result<(), kube::Error> {
        let api: Api<Skill> = Api::namespaced(self.client.clone(), &name.namespace);
        self.patch(&api, name, patch).await
    }

    /// Patches a model's status by a JSON Patch.
    pub(crate) async fn patch_model(&self, name: &Name, patch: serde_json::Value) -> Result<(), kube::Error> {
        let api: Api<Model> = Api::namespaced(self.client.clone(), &name.namespace);
        self.patch(&api, name, patch).await
    }

    async fn patch<K>(&self, api: &Api<K>, name: &Name, patch: serde_json::Value) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
        let params = PatchParams {
            field_manager: Some(GATEWAY.to_owned()),
            ..PatchParams::default()
        };
        let answer = api
            .patch_status(&name.name, &params, &Patch::<()>::Json(patch))
            .await;
        let answer = answer.map(|_| ());
        self.metrics
            .writes
            .with_label_values(&["patch", &K::kind(&()), answer_class(&answer)])
            .inc();
        answer
    }

    /// A ConfigMap, `None` when there is none of that name.
    pub(crate) async fn config_map(
        &self,
        name: &Name,
        age: Age,
    ) -> Result<Option<Arc<ConfigMap>>, kube::Error> {
        self.read(&self.config_maps, bounds::CONFIG_MAP_AGE, name, age)
            .await
    }

    /// A Secret, `None` when there is none of that name. Namespaces allow it one by one: 403 elsewhere.
    pub(crate) async fn secret(&self, name: &Name, age: Age) -> Result<Option<Arc<Secret>>, kube::Error> {
        self.read(&self.secrets, bounds::SECRET_AGE, name, age).await
    }

    async fn read<K>(
        &self,
        recent: &Recent<K>,
        longest: Duration,
        name: &Name,
        age: Age,
    ) -> Result<Option<Arc<K>>, kube::Error>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Debug,
    {
        let lock = || recent.lock().unwrap_or_else(PoisonError::into_inner);
        if age == Age::Recent
            && let Some((read, object)) = lock().get(name)
            && read.elapsed() < longest
        {
            return Ok(Some(Arc::clone(object)));
        }
        let api: Api<K> = Api::namespaced(self.client.clone(), &name.namespace);
        let Some(found) = api.get_opt(&name.name).await? else {
            lock().remove(name);
            return Ok(None);
        };
        let found = Arc::new(found);
        let mut recent = lock();
        recent.retain(|_, (read, _)| read.elapsed() < longest);
        if recent.len() < bounds::RECENT_OBJECTS {
            recent.insert(name.clone(), (Instant::now(), Arc::clone(&found)));
        }
        Ok(Some(found))
    }

    fn subtasks(&self, namespace: &str) -> Api<SubTask> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

/// What became of a write, for metrics: few values.
fn answer_class(answer: &Result<(), kube::Error>) -> &'static str {
    match answer {
        Ok(()) => "ok",
        Err(kube::Error::Api(status)) => match status.code {
            404 => "not-found",
            409 | 422 => "conflict-or-invalid",
            401 | 403 => "forbidden",
            429 => "too-many-requests",
            _ => "error",
        },
        Err(_) => "no-answer",
    }
}
