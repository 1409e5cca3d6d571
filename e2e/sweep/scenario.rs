//! The run that everything is tried on: a diamond of four tasks, one of which fails at its first attempt, and one of
//! which has a criterion that is run again.

use crate::end::{self, End};
use crate::operator::Life;
use agentrun_api::AgentRun;
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::faults::Faults;
use agentrun_testkit::stage::{Ending, Stage};
use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Name of the run.
pub(crate) const RUN: &str = "diamond";
/// By then a run is over, whatever happened on its way. It takes 3 s when nothing happens and nobody else works.
pub(crate) const DEADLINE: Duration = Duration::from_secs(90);
/// Cases that are under way at the same time, each in a namespace and with an operator of its own.
const AT_ONCE: usize = 8;

/// Whose the user data is.
#[derive(Clone, Copy)]
pub(crate) enum Data {
    /// The run's.
    Run,
    /// A thread's, and stays.
    Thread,
    /// A thread's, and goes with its last run.
    ThreadOnce,
}

/// `left` and `right` wait for `first`, `last` for both; `right` fails once, and
/// `left` waits for its criterion. On a thread, so that its lock and its
/// claim are among the writes.
pub(crate) fn run(data: Data) -> AgentRun {
    let mut run = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun", "metadata": {"name": RUN},
        "spec": {
            "tasks": [
                {"name": "first", "command": {"argv": ["true"]}},
                {"name": "left", "command": {"argv": ["true"]}, "input": "${tasks.first.output}",
                 "acceptance": ["rerun:true"], "acceptancePolicy": "Require"},
                {"name": "right", "command": {"argv": ["true"]}, "input": "${tasks.first.output}",
                 "retry": {"attempts": 2, "backoff": "100ms"}},
                {"name": "last", "command": {"argv": ["true"]},
                 "input": {"left": "${tasks.left.output}", "right": "${tasks.right.output}"}},
            ],
        },
    });
    match data {
        Data::Run => {}
        Data::Thread => run["spec"]["userData"] = json!({"thread": "t"}),
        Data::ThreadOnce => run["spec"]["userData"] = json!({"thread": "t", "onRelease": "Delete"}),
    }
    serde_json::from_value(run).expect("a run")
}

/// How the attempts of the diamond end. Of `left` and of the failure nobody knows whether a process is left: the lease,
/// and the next attempt, wait until the Pod is gone.
pub(crate) fn script(task: &str, attempt: i32) -> Option<Ending> {
    let delivered = Ending::success(json!({"task": task, "attempt": attempt, "nothing": null}));
    match (task, attempt) {
        ("left", _) => delivered.map(Ending::unproven),
        ("right", 1) => Ending::failure().map(Ending::unproven),
        _ => delivered,
    }
}

/// A namespace with everything but an operator.
pub(crate) struct Case {
    /// The namespace.
    pub(crate) namespace: Namespace,
    /// Kubelet, gateway and record.
    pub(crate) stage: Stage,
}

impl Case {
    /// Makes it, and the diamond in it.
    pub(crate) async fn new(prefix: &str, data: Data) -> Self {
        let namespace = Namespace::new(prefix).await;
        let stage = Stage::start(&namespace, script).await;
        namespace.create(&run(data)).await;
        Self { namespace, stage }
    }

    /// Waits for the end of the run.
    pub(crate) async fn end(&self) -> End {
        end::wait(&self.namespace, &self.stage).await
    }
}

/// The end that a run comes to when nothing happens, and how many writes the operator makes on the way.
pub(crate) async fn undisturbed() -> &'static (End, usize) {
    static REFERENCE: OnceCell<(End, usize)> = OnceCell::const_new();
    REFERENCE
        .get_or_init(|| async {
            let case = Case::new("undisturbed", Data::Thread).await;
            let faults = Faults::none();
            let life = Life::start(&case.namespace, &faults);
            let end = case.end().await;
            let writes = faults.count(&agentrun_testkit::faults::Matcher::writes());
            life.end().await;
            case.namespace.give_back().await;
            (end, writes)
        })
        .await
}

/// Runs a case for each number, some at once, and says which of them failed.
pub(crate) async fn for_each<F>(numbers: impl IntoIterator<Item = usize>, case: fn(usize) -> F)
where
    F: Future<Output = ()>,
{
    let cases = futures::stream::iter(numbers).map(|number| async move {
        // A failed assertion shall not end the others.
        let result = AssertUnwindSafe(case(number)).catch_unwind().await;
        result.err().map(|_| number)
    });
    let failed: Vec<usize> = cases
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(failed.is_empty(), "failed for {failed:?}, see above");
}
