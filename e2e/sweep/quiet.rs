//! What is settled causes nothing.

use crate::operator::Life;
use crate::scenario::{Case, Data};
use agentrun_testkit::faults::{Faults, Matcher};
use std::time::Duration;

/// How long the operator is watched. `AGENTRUN_TEST_QUIET_SECONDS` sets another time; 20 s are more than any pause of a
/// reconcile that would repeat itself.
const QUIET: Duration = Duration::from_secs(20);
/// The operator may finish what it is at.
const AFTERWARDS: Duration = Duration::from_secs(2);

fn quiet() -> Duration {
    let seconds = std::env::var("AGENTRUN_TEST_QUIET_SECONDS").ok();
    seconds
        .and_then(|text| text.parse().ok())
        .map_or(QUIET, Duration::from_secs)
}

/// Invariant 6. The operator that took over after a restart is quiet too.
// F038, F095
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_settled_run_causes_no_write_and_no_read() {
    let case = Case::new("quiet", Data::Thread).await;
    let faults = [Faults::none(), Faults::none()];
    let first = Life::start(&case.namespace, &faults[0]);
    case.end().await;
    is_quiet("the operator that did the work", &faults[0]).await;
    first.end().await;
    let second = Life::start(&case.namespace, &faults[1]);
    let watching = async || (faults[1].count(&Matcher::watches()) >= 8).then_some(());
    case.namespace
        .wait_for("all watches", Duration::from_secs(20), watching)
        .await;
    is_quiet("the operator that was started later", &faults[1]).await;
    second.end().await;
    case.namespace.give_back().await;
}

async fn is_quiet(who: &str, faults: &Faults) {
    tokio::time::sleep(AFTERWARDS).await;
    let before = faults.calls().len();
    // Nothing can be waited for where nothing shall happen.
    tokio::time::sleep(quiet()).await;
    let calls = faults.calls().split_off(before);
    let calls: Vec<_> = calls
        .into_iter()
        .filter(|call| call.verb != agentrun_testkit::faults::Verb::Watch)
        .collect();
    assert!(calls.is_empty(), "{who} asked for {calls:#?}");
}
