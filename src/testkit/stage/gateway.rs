//! A gateway without channel: it writes the end of every attempt whose Pod runs, by the same rule as the real one.

use super::Script;
use super::kubelet::is_running;
use crate::cluster::Namespace;
use agentrun_api::names::labels;
use agentrun_api::{AgentRun, Attempt, Outcome, SubTask, SubTaskPhase, SubTaskReason};
use agentrun_core::acceptance;
use agentrun_core::plan::rerun;
use agentrun_core::settle::{Settlement, Stop, Verdict, settle};
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::sync::Arc;
use tokio::sync::Notify;

/// How an attempt ends.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its reason.
    pub reason: SubTaskReason,
    /// Its output, where it has one.
    pub output: Option<Value>,
    /// Whether the runtime has proven that no process is left, so that the lease may end before the Pod.
    pub tree_is_empty: bool,
}

impl Ending {
    /// It delivers.
    pub fn success(output: Value) -> Option<Self> {
        Some(Self {
            outcome: Outcome::Success,
            reason: SubTaskReason::Completed,
            output: Some(output),
            tree_is_empty: true,
        })
    }

    /// It fails by itself.
    pub fn failure() -> Option<Self> {
        Some(Self {
            outcome: Outcome::Error,
            reason: SubTaskReason::ExitCode,
            output: None,
            tree_is_empty: true,
        })
    }

    /// The same, but processes may be left.
    #[must_use]
    pub fn unproven(mut self) -> Self {
        self.tree_is_empty = false;
        self
    }

    fn cancelled() -> Self {
        Self {
            outcome: Outcome::Cancelled,
            reason: SubTaskReason::Cancelled,
            output: None,
            tree_is_empty: true,
        }
    }
}

/// Serves a namespace.
pub(super) async fn run(namespace: Namespace, script: Script) {
    let changed = Arc::new(Notify::new());
    let (runs, watch_runs) = follow::<AgentRun>(namespace.api(), &changed);
    let (pods, watch_pods) = follow::<Pod>(namespace.api(), &changed);
    let (subtasks, watch_subtasks) = follow::<SubTask>(namespace.api(), &changed);
    let serving = async {
        loop {
            changed.notified().await;
            for subtask in subtasks.state() {
                serve(&namespace, &subtask, &runs, &pods, script).await;
            }
        }
    };
    futures::join!(watch_runs, watch_pods, watch_subtasks, serving);
}

fn follow<K>(api: Api<K>, changed: &Arc<Notify>) -> (Store<K>, impl Future<Output = ()> + use<K>)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let stream = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let changed = Arc::clone(changed);
    let following = async move {
        let mut stream = std::pin::pin!(stream);
        while stream.next().await.is_some() {
            changed.notify_one();
        }
    };
    (store, following)
}

async fn serve(
    namespace: &Namespace,
    subtask: &SubTask,
    runs: &Store<AgentRun>,
    pods: &Store<Pod>,
    script: Script,
) {
    let status = subtask.status.clone().unwrap_or_default();
    let newest = status
        .attempts
        .iter()
        .enumerate()
        .max_by_key(|(_, attempt)| attempt.number);
    let open = newest.filter(|(_, attempt)| attempt.outcome.is_none() && status.outcome.is_none());
    let Some((place, attempt)) = open else {
        return;
    };
    let pod = pods.find(|pod| pod.uid() == attempt.pod_uid && pod.namespace() == subtask.namespace());
    if !pod.is_some_and(|pod| is_running(&pod)) {
        return;
    }
    let run = runs.get(&ObjectRef::new(&subtask.spec.run_ref.name).within(&namespace.name));
    let run = run.filter(|run| run.uid().as_ref() == Some(&subtask.spec.run_ref.uid));
    let stopped = is_stopped(subtask, run.as_deref());
    let ending = match stopped {
        true => Some(Ending::cancelled()),
        false => script(&subtask.spec.task, attempt.number),
    };
    let Some(ending) = ending else { return };
    let patch = patch(subtask, place, &status.attempts, &ending, stopped);
    let patch = serde_json::from_value(patch).expect("a JSON patch");
    let written = namespace
        .api::<SubTask>()
        .patch_status(
            &subtask.name_any(),
            &PatchParams::default(),
            &Patch::<()>::Json(patch),
        )
        .await;
    // A test of the version that fails means that a newer object is on its way to us.
    match written {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {}
        written => drop(written.unwrap_or_else(|error| panic!("{}: {error}", subtask.name_any()))),
    }
}

/// The real gateway's rule: what was cancelled, is stopped by its run, or is being deleted ends as cancelled.
fn is_stopped(subtask: &SubTask, run: Option<&AgentRun>) -> bool {
    let cancelled = |run: &AgentRun| {
        run.metadata.deletion_timestamp.is_some()
            || run
                .status
                .as_ref()
                .is_some_and(|status| status.cancel_requested_at.is_some())
    };
    let marked = subtask.annotations().contains_key(labels::STOP);
    subtask.metadata.deletion_timestamp.is_some() || marked || run.is_none_or(cancelled)
}

fn patch(subtask: &SubTask, place: usize, attempts: &[Attempt], ending: &Ending, stopped: bool) -> Value {
    let now = Timestamp::now();
    let add =
        |path: &str, value: Value| json!({"op": "add", "path": format!("/status/{path}"), "value": value});
    let version = subtask.resource_version().unwrap_or_default();
    let mut patch = vec![
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}),
        add(&format!("attempts/{place}/outcome"), json!(ending.outcome)),
        add(&format!("attempts/{place}/reason"), json!(ending.reason.as_str())),
        add(&format!("attempts/{place}/finished"), json!(MicroTime(now))),
        add("sandbox/processTreeEmpty", json!(ending.tree_is_empty)),
    ];
    if let Some(output) = &ending.output {
        patch.push(add("output", output.clone()));
    }
    if ending.outcome == Outcome::Success {
        patch.push(add("exitCode", json!(0)));
    }
    if stopped {
        return Value::Array(patch);
    }
    let spec = &subtask.spec;
    let mut verdicts = acceptance::of_report(&spec.acceptance, &[]);
    if ending.outcome == Outcome::Success && acceptance::leave_open(spec.acceptance_policy, &mut verdicts) {
        patch.extend([
            add("acceptance", json!(verdicts)),
            add("waitingFor", json!(rerun::WAITING)),
        ]);
        return Value::Array(patch);
    }
    let mut attempts = attempts.to_vec();
    if let Some(attempt) = attempts.get_mut(place) {
        attempt.outcome = Some(ending.outcome);
        attempt.reason = Some(ending.reason.as_str().to_owned());
    }
    let uid = subtask.uid().unwrap_or_default();
    match settle(&subtask.spec, &uid, &attempts, Verdict::Accepted, Stop::None, now) {
        Some(Settlement::Final { outcome, reason }) => patch.extend([
            add("outcome", json!(outcome)),
            add("reason", json!(reason)),
            add("phase", json!(SubTaskPhase::Finished)),
        ]),
        Some(Settlement::Retry { next_attempt_time }) => patch.extend([
            add("nextAttemptTime", json!(MicroTime(next_attempt_time))),
            add("phase", json!(SubTaskPhase::Pending)),
        ]),
        None => {}
    }
    Value::Array(patch)
}
