//! The parts of the installation, stopped and killed on purpose. Only for tests that have the cluster for themselves.

use super::wait::{MINUTE, labelled, until};
use super::world::World;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

/// The components that a test may stop.
pub const COMPONENTS: [&str; 2] = ["operator", "gateway"];

/// Deployments and Pods of the installation.
pub struct ControlPlane {
    deployments: Api<Deployment>,
    pods: Api<Pod>,
}

impl ControlPlane {
    /// That of the cluster.
    pub fn of(world: &World) -> Self {
        Self {
            deployments: Api::namespaced(world.client.clone(), &world.system),
            pods: Api::namespaced(world.client.clone(), &world.system),
        }
    }

    /// Lets `scenario` stop and kill; one of each is there again afterwards, however it ends.
    pub async fn during(world: &World, scenario: impl Future<Output = ()> + Send + 'static) {
        let outcome = tokio::spawn(scenario).await;
        for component in COMPONENTS {
            Self::of(world).scale(component, 1).await;
        }
        if let Err(error) = outcome {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    async fn name(&self, component: &str) -> String {
        let ours = ListParams::default().labels(&selector(component));
        let found = self.deployments.list(&ours).await.expect("deployments").items;
        found.first().expect("the installation has it").name_any()
    }

    /// Scales a part and waits until that many of it are ready and no other is left.
    pub async fn scale(&self, component: &str, replicas: i32) {
        let name = self.name(component).await;
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.deployments
            .patch(&name, &PatchParams::default(), &patch)
            .await
            .expect("scaled");
        let what = format!("{replicas} of {component}");
        until(
            &self.pods,
            labelled(&selector(component)),
            2 * MINUTE,
            &what,
            |seen| {
                let ready = seen.values().filter(|pod| is_ready(pod)).count();
                let wanted = usize::try_from(replicas).expect("not negative");
                (ready == wanted && seen.len() == wanted).then_some(())
            },
        )
        .await;
    }

    /// Kills a part's Pods without grace and waits for the next ones.
    pub async fn kill(&self, component: &str) {
        let now = DeleteParams::default().grace_period(0);
        let ours = ListParams::default().labels(&selector(component));
        let old: Vec<_> = self
            .pods
            .list(&ours)
            .await
            .expect("Pods")
            .items
            .iter()
            .filter_map(kube::ResourceExt::uid)
            .collect();
        self.pods.delete_collection(&now, &ours).await.expect("killed");
        until(
            &self.pods,
            labelled(&selector(component)),
            2 * MINUTE,
            "another Pod is ready",
            |seen| {
                let new = seen
                    .values()
                    .filter(|pod| pod.uid().is_some_and(|uid| !old.contains(&uid)));
                new.into_iter().any(is_ready).then_some(())
            },
        )
        .await;
    }
}

fn selector(component: &str) -> String {
    format!("app.kubernetes.io/name=agentrun,app.kubernetes.io/component={component}")
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
