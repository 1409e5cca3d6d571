//! Deleting, cancelling, holding and expiring runs: nothing remains, and nothing hangs.

use crate::framework::{MINUTE, World, named, sh, until};
use agentrun_api::{AgentRun, Outcome, SubTask};
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

fn sleeper() -> String {
    format!("tasks:\n- name: work\n  {}\n", sh("echo begun; sleep 600"))
}

async fn delete_and_look(world: &World, run: &AgentRun) {
    world.delete::<AgentRun>(&run.name_any()).await;
    world.nothing_left_of(run).await;
}

// F001, F011
pub async fn a_run_can_be_deleted_at_any_moment(world: World) {
    let at_once = async {
        world.start("at-once", &sleeper()).await;
        let run = world.api::<AgentRun>().get("at-once").await.expect("just made");
        delete_and_look(&world, &run).await;
    };
    let pod_made = async {
        world.start("assigned", &sleeper()).await;
        world
            .when_task("assigned", "work", "an attempt", |task| {
                task.status
                    .as_ref()
                    .is_some_and(|status| !status.attempts.is_empty())
            })
            .await;
        let run = world.api::<AgentRun>().get("assigned").await.expect("just made");
        delete_and_look(&world, &run).await;
    };
    let running = async {
        world.start("running", &sleeper()).await;
        world.running_pod("running", "work").await;
        let run = world.api::<AgentRun>().get("running").await.expect("just made");
        delete_and_look(&world, &run).await;
    };
    let ended = async {
        let spec = format!("tasks:\n- name: work\n  {}\n", sh("true"));
        world.start("counted", &spec).await;
        // The instant in which the end is written and nothing is accounted for yet.
        world
            .when_task("counted", "work", "an outcome", |task| {
                task.status
                    .as_ref()
                    .is_some_and(|status| status.outcome.is_some())
            })
            .await;
        let run = world.api::<AgentRun>().get("counted").await.expect("just made");
        delete_and_look(&world, &run).await;
    };
    futures::join!(at_once, pod_made, running, ended);
}

// F006
pub async fn objects_already_gone_do_not_hold_a_deletion_up(world: World) {
    world.start("robbed", &sleeper()).await;
    let pod = world.running_pod("robbed", "work").await;
    let run = world.api::<AgentRun>().get("robbed").await.expect("just made");
    let claim = run
        .status
        .as_ref()
        .and_then(|status| status.claim_name.clone())
        .expect("a claim");
    let now = DeleteParams::default().grace_period(0);
    world
        .api::<PersistentVolumeClaim>()
        .delete(&claim, &now)
        .await
        .expect("the claim");
    world
        .api::<Pod>()
        .delete(&pod.name_any(), &now)
        .await
        .expect("the Pod");
    delete_and_look(&world, &run).await;
}

async fn cancelled(world: &World, run: &str) {
    world.patch_run(run, json!({"cancel": true})).await;
    let ended = world.finished(run).await;
    assert_eq!(ended.end(), "Cancelled/Cancelled", "{:#?}", ended.status());
    assert!(ended.status().cancel_requested_at.is_some());
    for task in &ended.tasks.0 {
        let status = task.status.clone().unwrap_or_default();
        assert!(
            matches!(status.outcome, Some(Outcome::Cancelled | Outcome::Error)),
            "{status:#?}"
        );
        assert!(task.finalizers().is_empty());
    }
}

pub async fn cancel_works_before_the_start_while_running_and_in_a_pause(world: World) {
    let before = async {
        world
            .start("before", &format!("sandbox: {{pool: nowhere}}\n{}", sleeper()))
            .await;
        cancelled(&world, "before").await;
    };
    let running = async {
        world.start("running", &sleeper()).await;
        world.running_pod("running", "work").await;
        cancelled(&world, "running").await;
    };
    let pausing = async {
        let spec = format!(
            "tasks:\n- name: work\n  {}\n  retry: {{attempts: 5, backoff: 4m}}\n",
            sh("exit 1")
        );
        world.start("pausing", &spec).await;
        world
            .when_task("pausing", "work", "a pause", |task| {
                task.status
                    .as_ref()
                    .is_some_and(|status| status.next_attempt_time.is_some())
            })
            .await;
        cancelled(&world, "pausing").await;
    };
    futures::join!(before, running, pausing);
    // Latched: a tool that applies the manifest again cannot take it back.
    let back = world.try_patch_run("running", json!({"cancel": false})).await;
    assert!(back.is_err(), "cancel went back to false");
}

// F036
pub async fn a_suspended_run_starts_nothing_and_goes_on_later(world: World) {
    let spec = format!(
        "limits: {{timeout: 45s}}\ntasks:\n- name: first\n  {}\n- name: second\n  dependsOn: [{{task: first}}]\n  {}\n",
        sh("sleep 4"),
        sh("true")
    );
    world.start("held", &spec).await;
    world.running_pod("held", "first").await;
    let before = world.api::<AgentRun>().get("held").await.expect("the run");
    world.patch_run("held", json!({"suspend": true})).await;
    world
        .when_task("held", "first", "it finishes", |task| {
            task.status
                .as_ref()
                .is_some_and(|status| status.outcome == Some(Outcome::Success))
        })
        .await;
    world
        .when("held", MINUTE, "Suspended", |status| {
            status.phase.is_some_and(|phase| phase.as_str() == "Suspended")
                && status.counts.as_ref().is_some_and(|counts| counts.succeeded == 1)
        })
        .await;
    // Its time would be over by now if it counted: another run takes longer than what was left.
    let meanwhile = format!("tasks:\n- name: work\n  {}\n", sh("sleep 40"));
    world.finish("meanwhile", &meanwhile).await.succeeded();
    assert_eq!(world.tasks("held").await.0.len(), 1, "the second task was made");
    world.patch_run("held", json!({"suspend": false})).await;
    let ended = world.finished("held").await;
    ended.succeeded();
    let deadline = |run: &AgentRun| {
        run.status
            .as_ref()
            .and_then(|status| status.deadline.clone())
            .expect("a deadline")
            .0
    };
    assert!(
        deadline(&ended.run) > deadline(&before),
        "the deadline did not move"
    );
}

// F002
pub async fn a_finished_run_goes_when_its_time_is_over(world: World) {
    world
        .start(
            "brief",
            &format!(
                "ttlSecondsAfterFinished: 1\ntasks:\n- name: work\n  {}\n",
                sh("true")
            ),
        )
        .await;
    let run = world
        .when("brief", MINUTE, "a claim", |status| status.claim_name.is_some())
        .await;
    world
        .gone::<AgentRun>("the run went by itself", |name| name == "brief")
        .await;
    world.nothing_left_of(&run).await;
}

// F001, F009
pub async fn a_namespace_goes_with_a_live_run_while_others_work(world: World) {
    let doomed = world.another().await;
    doomed.start("live", &sleeper()).await;
    doomed.running_pod("live", "work").await;
    Api::<Namespace>::all(world.client.clone())
        .delete(&doomed.namespace, &DeleteParams::default())
        .await
        .expect("the namespace");
    world
        .finish("meanwhile", &format!("tasks:\n- name: work\n  {}\n", sh("true")))
        .await
        .succeeded();
    doomed.remove().await.expect("it goes without help");
}

pub async fn a_failed_sandbox_is_kept_and_the_run_says_so(world: World) {
    let spec = format!(
        "sandbox: {{keepOnFailure: 5m}}\ntasks:\n- name: work\n  {}\n",
        sh("exit 1")
    );
    world.start("kept", &spec).await;
    let task = world
        .when_task("kept", "work", "it says that it keeps its sandbox", |task| {
            let status = task.status.clone().unwrap_or_default();
            status.outcome.is_some()
                && status
                    .waiting_for
                    .is_some_and(|text| text.contains("keepOnFailure"))
        })
        .await;
    let name = task
        .status
        .and_then(|status| status.sandbox)
        .and_then(|sandbox| sandbox.pod_name)
        .expect("a Pod");
    let pod = world.api::<Pod>().get(&name).await.expect("the Pod is kept");
    assert!(pod.metadata.deletion_timestamp.is_none());
    let run = world.api::<AgentRun>().get("kept").await.expect("the run");
    delete_and_look(&world, &run).await;
    until(
        &world.api::<SubTask>(),
        named(&task.metadata.name.unwrap_or_default()),
        MINUTE,
        "gone",
        |seen| seen.is_empty().then_some(()),
    )
    .await;
    assert!(
        world
            .api::<Pod>()
            .list(&ListParams::default())
            .await
            .expect("Pods")
            .items
            .is_empty()
    );
}
