//! The cluster, and the one namespace of it that a test has.

use super::manifest::{documents, kind_of};
use super::run::{Finished, Tasks};
use super::wait::{MINUTE, NONE, labelled, named, until};
use agentrun_api::names::{conditions, labels};
use agentrun_api::{AgentRun, AgentRunStatus, SubTask};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use std::fmt::Display;
use std::time::Duration;

/// How long a namespace may take to go, its Pods and claims included.
const GONE_BOUND: Duration = Duration::from_mins(2);

/// A cluster in which AgentRun is installed.
pub struct Cluster {
    client: Client,
    system: String,
    image: String,
}

impl Cluster {
    /// Finds the installation in the cluster of `KUBECONFIG`.
    pub async fn find() -> Result<Self, String> {
        if std::env::var_os("KUBECONFIG").is_none() {
            return Err(
                "KUBECONFIG is not set: let it name a cluster in which AgentRun is installed, \
                such as `e2e/cluster/cluster kubeconfig` prints"
                    .to_owned(),
            );
        }
        let says = |error: &dyn Display| format!("the cluster of KUBECONFIG does not answer: {error}");
        let client = Client::try_default().await.map_err(|error| says(&error))?;
        let installed = ListParams::default()
            .labels("app.kubernetes.io/name=agentrun,app.kubernetes.io/component=operator");
        let operators = Api::<Deployment>::all(client.clone())
            .list(&installed)
            .await
            .map_err(|error| says(&error))?;
        let Some(system) = operators.items.first().and_then(kube::ResourceExt::namespace) else {
            return Err(
                "AgentRun is not installed in the cluster of KUBECONFIG: no Deployment has the labels \
                of its operator; install charts/agentrun-crds and charts/agentrun"
                    .to_owned(),
            );
        };
        let image =
            std::env::var("AGENTRUN_E2E_IMAGE").unwrap_or_else(|_| "localhost/agentrun-python:dev".into());
        Ok(Self {
            client,
            system,
            image,
        })
    }
}

/// What a test has: a namespace of its own, and ways to look at it.
#[derive(Clone)]
pub struct World {
    /// A client with the rights of `KUBECONFIG`.
    pub client: Client,
    /// The test's namespace.
    pub namespace: String,
    /// The namespace that AgentRun is installed in.
    pub system: String,
    /// An image with Python 3 and a shell.
    pub image: String,
}

impl World {
    /// Makes a namespace for a test.
    pub async fn create(cluster: &Cluster, test: &str) -> Result<Self, String> {
        let label: String = test.replace('_', "-").chars().take(40).collect();
        let namespace = Namespace {
            metadata: serde_json::from_value(json!({
                "generateName": format!("e2e-{}-", label.trim_matches('-')),
                "labels": {
                    "agentrun.dev/e2e": "true",
                    "pod-security.kubernetes.io/enforce": "restricted",
                    "pod-security.kubernetes.io/warn": "restricted",
                },
            }))
            .expect("metadata"),
            ..Namespace::default()
        };
        let made = Api::<Namespace>::all(cluster.client.clone())
            .create(&PostParams::default(), &namespace)
            .await;
        Ok(Self {
            client: cluster.client.clone(),
            namespace: made
                .map_err(|error| format!("no namespace for the test: {error}"))?
                .name_any(),
            system: cluster.system.clone(),
            image: cluster.image.clone(),
        })
    }

    /// A second namespace for the same test.
    pub async fn another(&self) -> Self {
        let cluster = Cluster {
            client: self.client.clone(),
            system: self.system.clone(),
            image: self.image.clone(),
        };
        Self::create(&cluster, "another")
            .await
            .expect("a second namespace")
    }

    /// Deletes the namespace and waits until it is gone: nothing of ours may hold it.
    pub async fn remove(&self) -> Result<(), String> {
        let api = Api::<Namespace>::all(self.client.clone());
        if let Err(error) = api.delete(&self.namespace, &DeleteParams::default()).await {
            return match error {
                kube::Error::Api(status) if status.code == 404 => Ok(()),
                error => Err(format!("the namespace cannot be deleted: {error}")),
            };
        }
        let gone = async {
            until(&api, named(&self.namespace), GONE_BOUND * 2, "gone", |seen| {
                seen.is_empty().then_some(())
            })
            .await;
        };
        tokio::time::timeout(GONE_BOUND, gone)
            .await
            .map_err(|_| format!("the namespace was not gone {GONE_BOUND:?} after its deletion"))
    }

    /// Objects of a kind in the test's namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes the objects of a YAML text in the test's namespace, whatever namespace they name. Unknown fields are
    /// mistakes, as `kubectl` has it.
    pub async fn try_create(&self, yaml: &str) -> Result<(), kube::Error> {
        let strictly = PatchParams::apply("agentrun-e2e").validation_strict();
        for mut object in documents(yaml) {
            object["metadata"]["namespace"] = self.namespace.clone().into();
            let api: Api<DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &kind_of(&object));
            let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
            api.patch(&name, &strictly, &Patch::Apply(&object)).await?;
        }
        Ok(())
    }

    /// Makes the objects of a YAML text.
    pub async fn create_all(&self, yaml: &str) {
        if let Err(error) = self.try_create(yaml).await {
            panic!("refused: {error}\n{yaml}");
        }
    }

    /// Starts a run. `spec` is its spec in YAML, not indented.
    pub async fn start(&self, name: &str, spec: &str) {
        let body: Vec<_> = spec.lines().map(|line| format!("  {line}")).collect();
        let head =
            format!("apiVersion: agentrun.dev/v1alpha1\nkind: AgentRun\nmetadata: {{name: {name}}}\nspec:\n");
        self.create_all(&(head + &body.join("\n"))).await;
    }

    /// Starts a run and waits for its end.
    pub async fn finish(&self, name: &str, spec: &str) -> Finished {
        self.start(name, spec).await;
        self.finished(name).await
    }

    /// Waits until a run's status is as `condition` wants it.
    pub async fn when(
        &self,
        run: &str,
        deadline: Duration,
        what: &str,
        condition: impl Fn(&AgentRunStatus) -> bool,
    ) -> AgentRun {
        let what = format!("AgentRun {run}: {what}");
        until(&self.api::<AgentRun>(), named(run), deadline, &what, |seen| {
            let status = seen.get(run)?.status.as_ref()?;
            condition(status).then(|| seen[run].clone())
        })
        .await
    }

    /// Waits for a run's end.
    pub async fn finished(&self, run: &str) -> Finished {
        let ended = self.when(run, 2 * MINUTE, "its end", is_over).await;
        let tasks = self.tasks(run).await;
        Finished { run: ended, tasks }
    }

    /// The sub-tasks of a run as they are now.
    pub async fn tasks(&self, run: &str) -> Tasks {
        let all = self
            .api::<SubTask>()
            .list(&ListParams::default())
            .await
            .expect("sub-tasks");
        Tasks(
            all.items
                .into_iter()
                .filter(|task| task.spec.run_ref.name == run)
                .collect(),
        )
    }

    /// Waits until a task of a run is as `condition` wants it. The first item stands for a task with many.
    pub async fn when_task(
        &self,
        run: &str,
        task: &str,
        what: &str,
        condition: impl Fn(&SubTask) -> bool,
    ) -> SubTask {
        let what = format!("task {task} of AgentRun {run}: {what}");
        until(&self.api::<SubTask>(), labelled(NONE), MINUTE, &what, |seen| {
            let mut ours = seen
                .values()
                .filter(|seen| seen.spec.run_ref.name == run && seen.spec.task == task);
            ours.find(|seen| condition(seen)).cloned()
        })
        .await
    }

    /// Waits until any task of a run is as `condition` wants it.
    pub async fn when_task_any(
        &self,
        run: &str,
        what: &str,
        condition: impl Fn(&SubTask) -> bool,
    ) -> SubTask {
        let what = format!("a task of AgentRun {run}: {what}");
        until(&self.api::<SubTask>(), labelled(NONE), MINUTE, &what, |seen| {
            let mut ours = seen.values().filter(|seen| seen.spec.run_ref.name == run);
            ours.find(|seen| condition(seen)).cloned()
        })
        .await
    }

    /// Waits until a task's container runs, and gives its Pod.
    pub async fn running_pod(&self, run: &str, task: &str) -> Pod {
        let assigned = self
            .when_task(run, task, "a Pod", |task| pod_of(task).is_some())
            .await;
        let name = pod_of(&assigned).expect("just seen");
        until(
            &self.api::<Pod>(),
            named(&name),
            MINUTE,
            &format!("Pod {name} runs"),
            |seen| {
                let pod = seen.get(&name)?;
                let phase = pod.status.as_ref()?.phase.as_deref();
                (phase == Some("Running")).then(|| pod.clone())
            },
        )
        .await
    }

    /// Kills a task's running Pod without grace.
    pub async fn kill_pod(&self, run: &str, task: &str) {
        let pod = self.running_pod(run, task).await;
        let now = DeleteParams::default().grace_period(0);
        self.api::<Pod>()
            .delete(&pod.name_any(), &now)
            .await
            .expect("killed");
    }

    /// Changes a run's spec, or tries to.
    pub async fn try_patch_run(&self, run: &str, spec: Value) -> Result<AgentRun, kube::Error> {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.api().patch(run, &PatchParams::default(), &patch).await
    }

    /// Changes a run's spec.
    pub async fn patch_run(&self, run: &str, spec: Value) {
        self.try_patch_run(run, spec)
            .await
            .expect("the change is allowed");
    }

    /// Names of the claims in the namespace.
    pub async fn claims(&self) -> Vec<String> {
        let claims = self
            .api::<PersistentVolumeClaim>()
            .list(&ListParams::default())
            .await
            .expect("claims");
        claims.items.iter().map(kube::ResourceExt::name_any).collect()
    }

    /// Deletes an object and waits until it is gone.
    pub async fn delete<K>(&self, name: &str)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug
            + Send
            + 'static,
        K::DynamicType: Default,
    {
        self.api::<K>()
            .delete(name, &DeleteParams::background())
            .await
            .expect("it was there");
        self.gone::<K>(&format!("{name} is gone"), |object| object == name)
            .await;
    }

    /// Waits until no object of a kind has a name that `which` picks.
    pub async fn gone<K>(&self, what: &str, which: impl Fn(&str) -> bool)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>
            + Clone
            + serde::de::DeserializeOwned
            + std::fmt::Debug
            + Send
            + 'static,
        K::DynamicType: Default,
    {
        until(&self.api::<K>(), labelled(NONE), 2 * MINUTE, what, |seen| {
            (!seen.keys().any(|name| which(name))).then_some(())
        })
        .await;
    }

    /// Waits until nothing is left of a deleted run: no sub-task, no Pod, no claim.
    pub async fn nothing_left_of(&self, run: &AgentRun) {
        let uid = run.uid().unwrap_or_default();
        let claim = run.status.as_ref().and_then(|status| status.claim_name.clone());
        let label = format!("{}={uid}", labels::RUN_UID);
        let empty = format!("no sub-task of {}", run.name_any());
        until(
            &self.api::<SubTask>(),
            labelled(&label),
            2 * MINUTE,
            &empty,
            |seen| seen.is_empty().then_some(()),
        )
        .await;
        let empty = format!("no Pod of {}", run.name_any());
        until(&self.api::<Pod>(), labelled(&label), 2 * MINUTE, &empty, |seen| {
            seen.is_empty().then_some(())
        })
        .await;
        if let Some(claim) = claim {
            let what = format!("claim {claim} is gone");
            self.gone::<PersistentVolumeClaim>(&what, |name| name == claim)
                .await;
        }
    }
}

/// The Pod that a sub-task is assigned to.
fn pod_of(task: &SubTask) -> Option<String> {
    task.status.as_ref()?.sandbox.as_ref()?.pod_name.clone()
}

/// Whether a status is final.
pub fn is_over(status: &AgentRunStatus) -> bool {
    let ends = [conditions::COMPLETE, conditions::FAILED];
    status
        .conditions
        .iter()
        .any(|condition| ends.contains(&condition.type_.as_str()) && condition.status == "True")
}
