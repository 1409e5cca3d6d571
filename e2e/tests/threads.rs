//! Threads: runs that share files take turns.

use crate::framework::{Finished, MINUTE, World, named, python, sh, until};
use agentrun_api::{AgentRun, Thread};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

fn on_thread(more: &str, task: &str) -> String {
    format!("userData: {{user: lena, thread: diary, size: 64Mi{more}}}\ntasks:\n- name: work\n  {task}\n")
}

pub async fn runs_of_a_thread_take_turns_and_share_its_files(world: World) {
    world
        .start(
            "one",
            &on_thread(
                "",
                &sh("sleep 30; echo one > page; mkdir -p /mnt/user-data/outputs"),
            ),
        )
        .await;
    world.running_pod("one", "work").await;
    world
        .start("two", &on_thread("", &python("put(open('page').read())")))
        .await;
    // Before there is a third, which may come to stand between the two.
    world
        .when("two", MINUTE, "it waits for the thread", |status| {
            let reason = status.reason.as_deref() == Some("ThreadBusy");
            reason
                && status
                    .waiting_for
                    .as_ref()
                    .is_some_and(|text| text.contains("one"))
        })
        .await;
    world
        .start("three", &on_thread("", &python("put(open('page').read())")))
        .await;
    world.finished("one").await.succeeded();
    let two = world.finished("two").await;
    let three = world.finished("three").await;
    assert_eq!(two.succeeded().tasks.output("work"), json!("one\n"));
    assert_eq!(three.succeeded().tasks.output("work"), json!("one\n"));
    // Runs of one second are served by their names, so either may have been first.
    let time = |run: &Finished| {
        let status = run.status();
        let (began, ended) = (status.start_time.clone(), status.completion_time.clone());
        (began.expect("a start").0, ended.expect("an end").0)
    };
    let mut times = [time(&two), time(&three)];
    times.sort_unstable();
    assert!(
        times[0].1 <= times[1].0,
        "two runs had the thread at once: {times:?}"
    );
    for run in ["one", "two", "three"] {
        world.delete::<AgentRun>(run).await;
    }
    // Retained: the data outlives its runs, until the Thread is deleted.
    let threads = world
        .api::<Thread>()
        .list(&ListParams::default())
        .await
        .expect("threads")
        .items;
    assert_eq!(threads.len(), 1);
    let claims = world
        .api::<PersistentVolumeClaim>()
        .list(&ListParams::default())
        .await
        .expect("claims")
        .items;
    assert_eq!(claims.len(), 1);
    world.delete::<Thread>(&threads[0].name_any()).await;
    world
        .gone::<PersistentVolumeClaim>("the thread's claim is gone", |_| true)
        .await;
}

pub async fn a_busy_thread_rejects_or_is_taken_over_as_the_run_says(world: World) {
    world.start("holder", &on_thread("", &sh("sleep 600"))).await;
    world.running_pod("holder", "work").await;
    let rejected = world
        .finish("modest", &on_thread(", concurrencyPolicy: Reject", &sh("true")))
        .await;
    assert_eq!(rejected.end(), "Failed/Rejected");
    assert!(rejected.tasks.0.is_empty());
    let replacing = world
        .finish("bold", &on_thread(", concurrencyPolicy: Replace", &sh("true")))
        .await;
    replacing.succeeded();
    let replaced = world.finished("holder").await;
    assert_eq!(replaced.end(), "Cancelled/Replaced", "{:#?}", replaced.status());
}

pub async fn a_thread_that_is_not_retained_goes_with_its_last_run(world: World) {
    let ended = world
        .finish("only", &on_thread(", onRelease: Delete", &sh("true")))
        .await;
    ended.succeeded();
    let thread = ended.status().thread.clone().expect("its thread");
    until(
        &world.api::<Thread>(),
        named(&thread),
        MINUTE,
        "the thread is gone",
        |seen| seen.is_empty().then_some(()),
    )
    .await;
    world
        .gone::<PersistentVolumeClaim>("its claim is gone", |_| true)
        .await;
}

pub async fn a_run_waits_until_the_work_of_a_deleted_one_has_gone(world: World) {
    let stubborn = sh("trap '' TERM; while :; do date +%s%N > tick; sleep 0.1; done");
    world.start("first", &on_thread("", &stubborn)).await;
    world.running_pod("first", "work").await;
    world
        .api::<AgentRun>()
        .delete("first", &DeleteParams::background())
        .await
        .expect("it was there");
    let look = python(
        "read = lambda: open('tick').read() if os.path.exists('tick') else ''\n\
         before = read(); time.sleep(3); put(read() == before)",
    );
    let second = world.finish("second", &on_thread("", &look)).await;
    assert_eq!(second.succeeded().tasks.output("work"), json!(true));
}
