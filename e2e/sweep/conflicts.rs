//! Names that belong to somebody else.

use crate::operator::Life;
use crate::scenario::{DEADLINE, Data, RUN, run, script};
use agentrun_api::{AgentRun, SubTask};
use agentrun_core::names;
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::faults::{Faults, Matcher};
use agentrun_testkit::stage::Stage;
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

/// A Pod of the user's under a name that the operator needs: it is named, it is left alone, and when it goes the run
/// goes on.
// F085
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_of_somebody_else_is_a_conflict_that_is_named_and_no_success() {
    let namespace = Namespace::new("conflict").await;
    let stage = Stage::start(&namespace, script).await;
    let mut suspended = run(Data::Thread);
    suspended.spec.suspend = Some(true);
    let uid = namespace.create(&suspended).await.uid().expect("a UID");
    let subtask = names::subtask_name(RUN, "first", &uid, None, None);
    let pod = names::pod_name(&subtask, 1);
    let theirs: Pod = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
        "spec": {"containers": [{"name": "theirs", "image": "registry.example.com/theirs:1"}]},
    }))
    .expect("a Pod");
    let theirs = namespace.create(&theirs).await;
    let faults = Faults::none();
    let life = Life::start(&namespace, &faults);
    let go_on = Patch::Merge(json!({"spec": {"suspend": false}}));
    let runs = namespace.api::<AgentRun>();
    runs.patch(RUN, &PatchParams::default(), &go_on)
        .await
        .expect("a patch");
    let named = async || {
        let subtask = namespace.api::<SubTask>().get_opt(&subtask).await.ok()??;
        let status = subtask.status?;
        assert!(
            status.attempts.is_empty(),
            "an attempt on a foreign Pod: {status:#?}"
        );
        status
            .waiting_for
            .filter(|text| text.contains(&pod) && text.contains("belongs to something else"))
    };
    namespace.wait_for("the conflict is named", DEADLINE, named).await;
    let there = namespace.api::<Pod>().get(&pod).await.expect("their Pod");
    assert_eq!(there.uid(), theirs.uid());
    assert_eq!(there.metadata.deletion_timestamp, None, "their Pod is theirs");
    let tries = faults.count(&Matcher::writes().of("pods"));
    assert!(tries < 10, "{tries} tries until it was named");
    namespace
        .api::<Pod>()
        .delete(&pod, &DeleteParams::default())
        .await
        .expect("a deletion");
    let end = crate::end::wait(&namespace, &stage).await;
    assert!(
        !format!("{end:?}").contains("belongs to something else"),
        "{end:#?}"
    );
    life.end().await;
    namespace.give_back().await;
}

/// A quota is waited for, with its reason, and nobody has to ask again when it is free.
// F099
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_of_one_pod_is_waited_for_and_the_run_goes_on_when_it_is_free() {
    let namespace = Namespace::new("quota").await;
    let stage = Stage::start(&namespace, script).await;
    let quota: ResourceQuota = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "0"}},
    }))
    .expect("a quota");
    namespace.create(&quota).await;
    let in_force = async || {
        let quota = namespace.api::<ResourceQuota>().get("one").await.ok()?;
        quota.status?.used.map(drop)
    };
    namespace
        .wait_for("the quota is in force", DEADLINE, in_force)
        .await;
    let faults = Faults::none();
    let life = Life::start(&namespace, &faults);
    namespace.create(&run(Data::Thread)).await;
    let waits = async || {
        let waiting = namespace
            .list::<SubTask>()
            .await
            .into_iter()
            .find_map(|subtask| subtask.status?.waiting_for);
        waiting.filter(|text| text.starts_with("QuotaExceeded"))
    };
    namespace
        .wait_for("one waits for the quota", DEADLINE, waits)
        .await;
    let room = json!({"spec": {"hard": {"pods": "1"}}});
    namespace
        .api::<ResourceQuota>()
        .patch("one", &PatchParams::default(), &Patch::Merge(room))
        .await
        .expect("room for one Pod");
    let end = crate::end::wait(&namespace, &stage).await;
    end.assert_is(&crate::scenario::undisturbed().await.0, "a quota of one Pod");
    let asked = faults.count(&Matcher::writes().of("pods"));
    assert!(asked < 40, "{asked} writes for five Pods");
    life.end().await;
    namespace.give_back().await;
}
