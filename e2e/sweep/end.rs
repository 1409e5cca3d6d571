//! The end that a run came to, without what differs from run to run: times, UIDs, and names made of UIDs.

use crate::scenario::{DEADLINE, RUN};
use agentrun_api::{AgentRun, SubTask, Thread};
use agentrun_core::names;
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::stage::Stage;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What must be the same however a run came to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct End {
    run: Value,
    subtasks: BTreeMap<String, Value>,
    threads: Value,
    claims: usize,
    /// By task and attempt: how many Pods were ever made for it.
    pods: BTreeMap<String, usize>,
    /// By task: how many SubTasks of its name there ever were.
    made: BTreeMap<String, usize>,
}

/// Waits until the run is over, nothing holds anything, and no Pod is left.
pub(crate) async fn wait(namespace: &Namespace, stage: &Stage) -> End {
    let over = async || {
        let runs = namespace.list::<AgentRun>().await;
        let run = runs.into_iter().find(|run| run.name_any() == RUN)?;
        run.status.as_ref()?.completion_time.as_ref()?;
        let subtasks = namespace.list::<SubTask>().await;
        let released = subtasks.iter().all(|subtask| subtask.finalizers().is_empty());
        let gone = namespace.list::<Pod>().await.is_empty();
        let free = namespace.list::<Thread>().await.iter().all(is_free);
        (released && gone && free).then_some((run, subtasks))
    };
    let (run, subtasks) = namespace.wait_for("the end of the run", DEADLINE, over).await;
    End {
        pods: pods(&subtasks, &stage.made().pods()),
        made: subtask_counts(&subtasks, &stage.made().subtasks()),
        claims: namespace.list::<PersistentVolumeClaim>().await.len(),
        threads: namespace.list::<Thread>().await.iter().map(thread).collect(),
        run: run_end(&run),
        subtasks: subtasks
            .iter()
            .map(|subtask| (subtask.spec.task.clone(), subtask_end(subtask)))
            .collect(),
    }
}

/// Waits until the run is over.
pub(crate) async fn wait_for_run(namespace: &Namespace) {
    let over = async || {
        let run = namespace.api::<AgentRun>().get_opt(RUN).await.ok()??;
        run.status?.completion_time.map(drop)
    };
    namespace.wait_for("the end of the run", DEADLINE, over).await;
}

/// The thread's own reconcile follows the run's end.
fn is_free(thread: &Thread) -> bool {
    thread
        .status
        .as_ref()
        .is_some_and(|status| status.active_run.is_none() && status.leases == Some(0))
}

fn thread(thread: &Thread) -> Value {
    let status = thread.status.clone().unwrap_or_default();
    json!({
        "spec": thread.spec, "folder": status.folder, "observedGeneration": status.observed_generation,
        "finalizers": thread.finalizers(),
    })
}

fn conditions(conditions: &[Condition]) -> Vec<Value> {
    let mut all: Vec<_> = conditions
        .iter()
        .map(|condition| {
            json!([
                condition.type_,
                condition.status,
                condition.reason,
                condition.observed_generation
            ])
        })
        .collect();
    all.sort_by_key(Value::to_string);
    all
}

fn run_end(run: &AgentRun) -> Value {
    let status = run.status.clone().unwrap_or_default();
    json!({
        "phase": status.phase, "reason": status.reason, "conditions": conditions(&status.conditions),
        "output": status.output, "counts": status.counts, "done": status.done, "leases": status.leases,
        "waitingFor": status.waiting_for, "observedGeneration": status.observed_generation,
        "deadline": status.deadline, "provenance": status.provenance, "finalizers": run.finalizers(),
        "hasClaim": status.claim_name.is_some(),
    })
}

fn subtask_end(subtask: &SubTask) -> Value {
    let status = subtask.status.clone().unwrap_or_default();
    let attempts = status.attempts.iter();
    let attempts: Vec<_> = attempts
        .map(|attempt| json!([attempt.number, attempt.outcome, attempt.reason]))
        .collect();
    json!({
        "input": subtask.spec.input, "phase": status.phase, "outcome": status.outcome, "reason": status.reason,
        "message": status.message, "attempt": status.attempt, "attempts": attempts, "output": status.output,
        "waitingFor": status.waiting_for, "nextAttemptTime": status.next_attempt_time.is_some(),
        "conditions": conditions(&status.conditions), "observedGeneration": status.observed_generation,
    })
}

fn pods(subtasks: &[SubTask], made: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut left = made.clone();
    let mut pods = BTreeMap::new();
    for subtask in subtasks {
        for attempt in 1..=9 {
            if let Some(count) = left.remove(&names::pod_name(&subtask.name_any(), attempt)) {
                pods.insert(format!("{} {attempt}", subtask.spec.task), count);
            }
        }
    }
    pods.extend(
        left.into_iter()
            .map(|(name, count)| (format!("unknown Pod {name}"), count)),
    );
    pods
}

fn subtask_counts(subtasks: &[SubTask], made: &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    let mut left = made.clone();
    let counts = subtasks.iter().map(|subtask| {
        (
            subtask.spec.task.clone(),
            left.remove(&subtask.name_any()).unwrap_or(0),
        )
    });
    let mut counts: BTreeMap<_, _> = counts.collect();
    counts.extend(
        left.into_iter()
            .map(|(name, count)| (format!("unknown SubTask {name}"), count)),
    );
    counts
}

impl End {
    /// Says where two ends differ.
    pub(crate) fn assert_is(&self, other: &Self, when: &str) {
        if self == other {
            return;
        }
        let yaml = |end: &Self| serde_yaml::to_string(end).unwrap_or_default();
        let (found, expected) = (yaml(self), yaml(other));
        panic!("{when}: another end.\nfound:\n{found}\nexpected:\n{expected}");
    }

    /// What every end of the diamond has, whatever the reference says.
    pub(crate) fn assert_well(&self) {
        assert_eq!(self.run["phase"], "Succeeded", "{self:#?}");
        assert_eq!(self.run["output"]["task"], "last", "{self:#?}");
        let met = &self.subtasks["left"]["conditions"];
        assert_eq!(met[0][2], "Holds", "{self:#?}");
        let pods: Vec<_> = self
            .pods
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        let expected = [
            ("agentrun-rerun 1", 1),
            ("first 1", 1),
            ("last 1", 1),
            ("left 1", 1),
            ("right 1", 1),
            ("right 2", 1),
        ];
        assert_eq!(pods, expected);
        assert!(
            self.made.values().all(|count| *count == 1) && self.made.len() == 5,
            "{self:#?}"
        );
    }
}
