//! The control plane stops, dies and comes back while runs live. Every step leaves the same end as without.

use crate::framework::{COMPONENTS, ControlPlane, MINUTE, World, named, python, sh, until};
use agentrun_api::AgentRun;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use serde_json::json;

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
    ControlPlane::during(&world, scenarios(world.clone())).await;
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
    for component in COMPONENTS {
        let name = format!("{component}-dies");
        world.start(&name, &two_steps(5)).await;
        world.running_pod(&name, "first").await;
        control_plane.kill(component).await;
        ran_once(&world.finished(&name).await);
    }
}
