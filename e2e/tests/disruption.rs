//! The control plane stops, dies and comes back while runs live. Every step leaves the same end as without.

use crate::framework::{MINUTE, World, labelled, named, python, sh, until};
use agentrun_api::AgentRun;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

struct ControlPlane {
    deployments: Api<Deployment>,
    pods: Api<Pod>,
}

impl ControlPlane {
    fn of(world: &World) -> Self {
        Self {
            deployments: Api::namespaced(world.client.clone(), &world.system),
            pods: Api::namespaced(world.client.clone(), &world.system),
        }
    }

    async fn name(&self, component: &str) -> String {
        let ours = ListParams::default().labels(&selector(component));
        let found = self.deployments.list(&ours).await.expect("deployments").items;
        found.first().expect("the installation has it").name_any()
    }

    /// Scales a part and waits until that many of it are ready and no other is left.
    async fn scale(&self, component: &str, replicas: i32) {
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
    async fn kill(&self, component: &str) {
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

/// Two tasks, one after the other; the first waits for a file that the second attempt of nothing would find.
fn two_steps(seconds: u32) -> String {
    format!(
        "tasks:\n- name: first\n  {}\n- name: second\n  input: ${{tasks.first.output}}\n  {}\n",
        python(&format!(
            "time.sleep({seconds}); put(os.path.exists('once')); pathlib.Path('once').touch()"
        )),
        python("put(['second', json.load(sys.stdin)])"),
    )
}

/// The work was done once: a second execution would have found the first one's file.
fn ran_once(ended: &crate::framework::Finished) {
    assert_eq!(
        ended.succeeded().tasks.output("second"),
        json!(["second", false]),
        "the work ran twice"
    );
    assert_eq!(ended.tasks.get("first").attempts.len(), 1);
}

// F005, F008, F010, F018, F084, F089
pub async fn the_control_plane_may_stop_and_die_and_every_run_ends_the_same(world: World) {
    let control_plane = ControlPlane::of(&world);
    let outcome = tokio::spawn(scenarios(world.clone())).await;
    for component in ["operator", "gateway"] {
        control_plane.scale(component, 1).await;
    }
    if let Err(error) = outcome {
        std::panic::resume_unwind(error.into_panic());
    }
}

async fn scenarios(world: World) {
    let control_plane = ControlPlane::of(&world);
    work_goes_on_while_the_operator_is_away(&world, &control_plane).await;
    what_is_deleted_meanwhile_is_released_later(&world, &control_plane).await;
    killed_parts_change_no_end(&world, &control_plane).await;
}

async fn work_goes_on_while_the_operator_is_away(world: &World, control_plane: &ControlPlane) {
    world.start("away", &two_steps(4)).await;
    world.running_pod("away", "first").await;
    control_plane.scale("operator", 0).await;
    // The gateway alone writes the end of what runs; nothing new starts.
    world
        .when_task(
            "away",
            "first",
            "its end is written without an operator",
            |task| {
                task.status
                    .as_ref()
                    .is_some_and(|status| status.outcome.is_some())
            },
        )
        .await;
    assert_eq!(world.tasks("away").await.0.len(), 1);
    control_plane.scale("operator", 1).await;
    ran_once(&world.finished("away").await);
}

async fn what_is_deleted_meanwhile_is_released_later(world: &World, control_plane: &ControlPlane) {
    let sleeper = format!("tasks:\n- name: work\n  {}\n", sh("sleep 600"));
    for name in ["lost", "pod-lost"] {
        world.start(name, &sleeper).await;
        world.running_pod(name, "work").await;
    }
    let lost = world.api::<AgentRun>().get("lost").await.expect("the run");
    let pod = world.running_pod("pod-lost", "work").await;
    control_plane.scale("operator", 0).await;
    world
        .api::<AgentRun>()
        .delete("lost", &DeleteParams::background())
        .await
        .expect("the run");
    world
        .api::<Pod>()
        .delete(&pod.name_any(), &DeleteParams::default().grace_period(0))
        .await
        .expect("the Pod");
    until(
        &world.api::<AgentRun>(),
        named("lost"),
        MINUTE,
        "a run goes without an operator",
        |seen| seen.is_empty().then_some(()),
    )
    .await;
    control_plane.scale("operator", 1).await;
    world.nothing_left_of(&lost).await;
    world
        .when_task("pod-lost", "work", "a second attempt", |task| {
            task.status
                .as_ref()
                .is_some_and(|status| status.attempts.len() == 2)
        })
        .await;
    world.delete::<AgentRun>("pod-lost").await;
}

async fn killed_parts_change_no_end(world: &World, control_plane: &ControlPlane) {
    for component in ["operator", "gateway"] {
        let name = format!("{component}-dies");
        world.start(&name, &two_steps(5)).await;
        world.running_pod(&name, "first").await;
        control_plane.kill(component).await;
        ran_once(&world.finished(&name).await);
    }
}
