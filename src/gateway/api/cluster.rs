//! What the public API asks of the API server.

use super::bounds;
use agentrun_api::names::labels::{GATEWAY, RUN_UID};
use agentrun_api::{AgentRun, SubTask};
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::core::{DeserializeGuard, ObjectList};
use kube::{Client, Resource};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Runs and sub-tasks.
pub(crate) struct Cluster {
    client: Client,
    lists: Semaphore,
}

/// The sub-tasks of a run.
#[derive(Debug, Default)]
pub(crate) struct SubTasks {
    /// Those that were read.
    pub(crate) items: Vec<SubTask>,
    /// Whether there are more.
    pub(crate) cut: bool,
}

impl Cluster {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            lists: Semaphore::new(bounds::SUBTASK_LISTS),
        }
    }

    /// Makes a run from its whole manifest. A field that the schema does not know is an error, not dropped.
    pub(crate) async fn create(&self, namespace: &str, manifest: &Value) -> Result<AgentRun, kube::Error> {
        let path = AgentRun::url_path(&(), Some(namespace));
        let uri = format!("{path}?fieldManager={GATEWAY}&fieldValidation=Strict");
        let body = serde_json::to_vec(manifest).map_err(kube::Error::SerdeError)?;
        let request = http::Request::post(uri)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(kube::Error::HttpError)?;
        self.client.request(request).await
    }

    /// A run, `None` when there is none of that name.
    pub(crate) async fn run(&self, namespace: &str, name: &str) -> Result<Option<AgentRun>, kube::Error> {
        self.runs(namespace).get_opt(name).await
    }

    /// One page of the runs, by name. Runs that this version cannot read come with their metadata alone.
    pub(crate) async fn page(
        &self,
        namespace: &str,
        limit: u32,
        token: Option<&str>,
    ) -> Result<ObjectList<DeserializeGuard<AgentRun>>, kube::Error> {
        let api: Api<DeserializeGuard<AgentRun>> = Api::namespaced(self.client.clone(), namespace);
        let mut params = ListParams::default().limit(limit);
        params.continue_token = token.map(str::to_owned);
        api.list(&params).await
    }

    /// The sub-tasks of a run, at most `most`.
    pub(crate) async fn subtasks(
        &self,
        namespace: &str,
        run_uid: &str,
        most: usize,
    ) -> Result<SubTasks, kube::Error> {
        let api: Api<DeserializeGuard<SubTask>> = Api::namespaced(self.client.clone(), namespace);
        let mut params = ListParams::default()
            .labels(&format!("{RUN_UID}={run_uid}"))
            .limit(bounds::SUBTASK_PAGE);
        let _place = self.lists.acquire().await.ok();
        let mut found = SubTasks::default();
        loop {
            let page = api.list(&params).await?;
            found
                .items
                .extend(page.items.into_iter().filter_map(|item| item.0.ok()));
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            found.cut = next.is_some() || found.items.len() > most;
            match next {
                Some(token) if found.items.len() < most => params = params.continue_token(&token),
                _ => break,
            }
        }
        found.items.truncate(most);
        Ok(found)
    }

    /// Asks for a run to be cancelled.
    pub(crate) async fn cancel(&self, namespace: &str, name: &str) -> Result<AgentRun, kube::Error> {
        let params = PatchParams {
            field_manager: Some(GATEWAY.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({"spec": {"cancel": true}}));
        self.runs(namespace).patch(name, &params, &patch).await
    }

    fn runs(&self, namespace: &str) -> Api<AgentRun> {
        Api::namespaced(self.client.clone(), namespace)
    }
}
