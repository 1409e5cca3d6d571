//! The run is deleted while the operator is away.

use crate::operator::Life;
use crate::scenario::{Case, DEADLINE, Data, RUN, for_each, undisturbed};
use agentrun_api::{AgentRun, SubTask, Thread};
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::faults::{Action, Fault, Faults, Matcher, Which};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DeleteParams;

/// Nothing of the run, nor of a thread that is not to be kept, is left, and so nothing has a finalizer.
async fn nothing_remains(namespace: &Namespace, when: &str) {
    let gone = async || {
        let left = namespace.list::<AgentRun>().await.len()
            + namespace.list::<SubTask>().await.len()
            + namespace.list::<Thread>().await.len()
            + namespace.list::<Pod>().await.len()
            + namespace.list::<PersistentVolumeClaim>().await.len();
        (left == 0).then_some(())
    };
    namespace.wait_for(when, DEADLINE, gone).await;
}

async fn delete(namespace: &Namespace, params: &DeleteParams) {
    let deleted = namespace.api::<AgentRun>().delete(RUN, params).await;
    deleted.expect("the run is deleted");
}

// F001, F005, F010, F011
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_deleted_after_any_write_while_the_operator_is_away_leaves_nothing() {
    let (_, writes) = undisturbed().await;
    for_each(1..=*writes, |write| async move {
        let data = if write % 2 == 0 {
            Data::Run
        } else {
            Data::ThreadOnce
        };
        let case = Case::new("deleted", data).await;
        let faults = Faults::new([Fault::new(Matcher::writes(), Which::Nth(write), Action::Stop)]);
        let first = Life::start(&case.namespace, &faults);
        tokio::select! {
            () = faults.stopped() => {}
            () = crate::end::wait_for_run(&case.namespace) => {}
        }
        first.crash().await;
        delete(&case.namespace, &DeleteParams::background()).await;
        let second = Life::start(&case.namespace, &Faults::none());
        nothing_remains(
            &case.namespace,
            &format!("deleted after write {write}: nothing remains"),
        )
        .await;
        second.end().await;
        let twice: Vec<_> = case
            .stage
            .made()
            .pods()
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .collect();
        assert!(
            twice.is_empty(),
            "deleted after write {write}: made twice: {twice:?}"
        );
        case.namespace.give_back().await;
    })
    .await;
}

/// Foreground deletion waits for children that block it, ours do not; and a SubTask may go first.
// F004, F006
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_deleted_in_the_foreground_under_a_live_operator_leaves_nothing() {
    for_each(1..=6, |pods| async move {
        let case = Case::new("foreground", Data::Run).await;
        let life = Life::start(&case.namespace, &Faults::none());
        let some = async || (case.stage.made().pods().len() >= pods.min(5)).then_some(());
        case.namespace.wait_for("the first Pods", DEADLINE, some).await;
        delete(&case.namespace, &DeleteParams::foreground()).await;
        nothing_remains(
            &case.namespace,
            &format!("deleted after {pods} Pods: nothing remains"),
        )
        .await;
        life.end().await;
        case.namespace.give_back().await;
    })
    .await;
}
