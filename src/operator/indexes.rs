//! By which values the caches find objects.

use agentrun_api::names::labels;
use agentrun_api::{AgentRun, SubTask, Thread};
use agentrun_core::names::thread_name;
use agentrun_core::plan::delegates;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;

/// Runs by the thread that they name.
pub(crate) fn run(run: &AgentRun) -> Vec<String> {
    let data = run.spec.user_data.clone().unwrap_or_default();
    let Some(thread) = data.thread else {
        return Vec::new();
    };
    let user = data.user.unwrap_or_else(|| "default".to_owned());
    vec![format!(
        "{}/{}",
        run.namespace().unwrap_or_default(),
        thread_name(&user, &thread)
    )]
}

/// Sub-tasks by their run; delegates also by themselves.
pub(crate) fn subtask(subtask: &SubTask) -> Vec<String> {
    let run = &subtask.spec.run_ref.uid;
    let mut values = vec![run.clone()];
    if delegates::is_delegate(subtask) {
        values.push(delegates_of(run));
    }
    values
}

/// The value under which all delegates of a run are found.
pub(crate) fn delegates_of(run_uid: &str) -> String {
    format!("{run_uid}/delegates")
}

/// Threads by their claim: the end of a claim's last Pod concerns them.
pub(crate) fn thread(thread: &Thread) -> Vec<String> {
    let claim = thread
        .status
        .as_ref()
        .and_then(|status| status.claim_name.as_ref());
    let namespace = thread.namespace().unwrap_or_default();
    claim
        .map(|claim| format!("{namespace}/{claim}"))
        .into_iter()
        .collect()
}

/// Pods by their sub-task or Skill, and by their claim.
pub(crate) fn pod(pod: &Pod) -> Vec<String> {
    [labels::SUBTASK_UID, labels::CLAIM, labels::SKILL_UID]
        .iter()
        .filter_map(|label| pod.labels().get(*label).cloned())
        .collect()
}
