use super::*;
use SubTaskReason as Reason;
use serde_json::{Value, json};

const NOW: &str = "2026-11-30T10:10:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A Pod with this status, started ten minutes before now.
fn pod(status: Value) -> Pod {
    let mut status = status;
    status["startTime"] = json!("2026-11-30T10:00:00Z");
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "p", "namespace": "a", "uid": "u"},
        "spec": {"nodeName": "node-1", "containers": []},
        "status": status,
    }))
    .unwrap()
}

fn status(name: &str, state: impl Into<Value>) -> Value {
    json!({"name": name, "image": "img", "imageID": "", "ready": false, "restartCount": 0, "state": state.into()})
}

fn running() -> Value {
    json!({"running": {"startedAt": "2026-11-30T10:00:02Z"}})
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

fn terminated(code: i32, reason: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "finishedAt": "2026-11-30T10:09:59Z"}})
}

fn both(phase: &str, runtime: Value, sandbox: Value) -> Pod {
    pod(
        json!({"phase": phase, "containerStatuses": [status("runtime", runtime), status("sandbox", sandbox)]}),
    )
}

fn state_of(pod: &Pod) -> PodState {
    read_pod(Some(pod), NodeState::Ready, now()).state
}

/// What the state is, in a word for tables: a reason and whether it is settled.
fn lost(pod: &Pod) -> (Reason, bool) {
    match state_of(pod) {
        PodState::Lost { reason, settled, .. } => (reason, settled),
        other => panic!("{other:?}"),
    }
}

fn message(pod: &Pod) -> String {
    match state_of(pod) {
        PodState::Lost { message, .. } => message,
        PodState::Pending {
            waiting: Some(waiting),
        } => waiting.message,
        other => panic!("{other:?}"),
    }
}

fn waits_for(pod: &Pod) -> Option<String> {
    match state_of(pod) {
        PodState::Pending { waiting } => waiting.map(|waiting| waiting.reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_pod_that_does_not_exist_is_gone() {
    let facts = read_pod(None, NodeState::Ready, now());
    assert_eq!((facts.state, facts.ended), (PodState::Gone, true));
}

#[test]
fn a_pods_life_is_pending_starting_running() {
    assert_eq!(
        state_of(&pod(json!({"phase": "Pending"}))),
        PodState::Pending { waiting: None }
    );
    let creating = || waiting("ContainerCreating", "");
    assert_eq!(
        state_of(&both("Pending", creating(), creating())),
        PodState::Pending { waiting: None }
    );
    assert_eq!(
        state_of(&both("Pending", running(), creating())),
        PodState::Starting
    );
    let since = "2026-11-30T10:00:02Z".parse().ok();
    let facts = read_pod(
        Some(&both("Running", running(), running())),
        NodeState::Ready,
        now(),
    );
    assert_eq!(
        facts,
        PodFacts {
            state: PodState::Running { since },
            node: Some("node-1".to_owned()),
            ended: false
        }
    );
}

// F028, F052
#[test]
fn out_of_memory_wins_over_everything_that_follows_from_it() {
    let oom = || terminated(137, "OOMKilled");
    assert_eq!(
        lost(&both("Running", running(), oom())),
        (Reason::OOMKilled, true)
    );
    assert_eq!(
        lost(&both("Failed", terminated(70, "Error"), oom())),
        (Reason::OOMKilled, true)
    );
}

// F051
#[test]
fn exit_code_137_alone_is_no_lack_of_memory() {
    assert_eq!(
        lost(&both("Running", running(), terminated(137, "Error"))),
        (Reason::ExecutorLost, true)
    );
}

#[test]
fn the_runtimes_exit_code_says_why_it_ended() {
    let cases = [
        (exit::VERSION_SKEW, Reason::VersionSkew),
        (exit::EXECUTOR_REFUSED, Reason::ExecutorLost),
        (exit::MISCONFIGURED, Reason::RuntimeLost),
        (exit::REFUSED, Reason::RuntimeLost),
        (exit::DONE, Reason::RuntimeLost),
        (1, Reason::RuntimeLost),
        (137, Reason::RuntimeLost),
    ];
    for (code, reason) in cases {
        let pod = both("Running", terminated(i32::from(code), "Error"), running());
        assert_eq!(lost(&pod), (reason, true), "{code}");
    }
    let out_of_memory = both("Running", terminated(137, "OOMKilled"), running());
    assert!(message(&out_of_memory).contains("runtime container was out of memory"));
}

#[test]
fn a_lost_executor_is_settled_only_with_the_sandboxs_own_end() {
    let lost_executor = || terminated(i32::from(exit::EXECUTOR_LOST), "Error");
    assert_eq!(
        lost(&both("Running", lost_executor(), running())),
        (Reason::ExecutorLost, false)
    );
    assert_eq!(
        lost(&both("Failed", lost_executor(), terminated(1, "Error"))),
        (Reason::ExecutorLost, true)
    );
}

#[test]
fn the_sandboxs_termination_message_is_never_read() {
    let end = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "OOMKilled, honestly"}});
    let pod = both("Running", running(), end);
    assert_eq!(lost(&pod).0, Reason::ExecutorLost);
    assert!(!message(&pod).contains("honestly"));
}

#[test]
fn an_executor_that_cannot_be_started_says_why() {
    let end = json!({"terminated": {
        "exitCode": 128, "reason": "StartError",
        "message": "failed to create containerd task: exec: \"/opt/agentrun/agentrun-sandbox\": no such file or directory",
    }});
    let pod = both("Running", running(), end);
    assert_eq!(lost(&pod).0, Reason::ExecutorLost);
    assert!(message(&pod).contains("no such file"));
}

// F080
#[test]
fn evicted_keeps_the_kubelets_message() {
    let words = "Usage of EmptyDir volume \"skills\" exceeds the limit \"64Mi\".";
    let pod = pod(json!({"phase": "Failed", "reason": "Evicted", "message": words}));
    assert_eq!(lost(&pod), (Reason::Evicted, true));
    assert_eq!(message(&pod), words);
}

// F018
#[test]
fn a_disruption_is_named_by_who_caused_it() {
    let cases = [
        ("PreemptionByScheduler", Reason::Preempted),
        ("EvictionByEvictionAPI", Reason::Evicted),
        ("TerminationByKubelet", Reason::Evicted),
        ("DeletionByPodGC", Reason::NodeLost),
        ("DeletionByTaintManager", Reason::Evicted),
    ];
    for (word, reason) in cases {
        let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": word, "message": "m"});
        let mut pod = both("Running", running(), terminated(137, "Error"));
        pod.status.as_mut().unwrap().conditions = serde_json::from_value(json!([condition])).unwrap();
        assert_eq!(lost(&pod), (reason, true), "{word}");
    }
}

// F048
#[test]
fn the_kubelets_deadline_is_trusted_although_containers_still_seem_to_run() {
    let mut pod = both("Failed", running(), running());
    let status = pod.status.as_mut().unwrap();
    status.reason = Some("DeadlineExceeded".to_owned());
    status.message = Some("Pod was active on the node longer than the specified deadline".to_owned());
    assert_eq!(lost(&pod), (Reason::DeadlineExceeded, true));
}

#[test]
fn a_final_phase_without_a_word_is_a_lost_pod() {
    assert_eq!(
        lost(&pod(
            json!({"phase": "Failed", "reason": "OutOfcpu", "message": "no cpu"})
        )),
        (Reason::PodLost, true)
    );
    assert_eq!(lost(&pod(json!({"phase": "Succeeded"}))), (Reason::PodLost, true));
}

// F030
#[test]
fn an_invalid_image_name_fails_at_once_and_a_failing_pull_after_a_grace() {
    let image = |word: &str, started: &str| {
        let mut pod = both(
            "Pending",
            waiting("ContainerCreating", ""),
            waiting(word, "details"),
        );
        let time = serde_json::from_value(json!(started)).unwrap();
        pod.status.as_mut().unwrap().start_time = Some(time);
        pod
    };
    let (just, long_ago) = ("2026-11-30T10:09:30Z", "2026-11-30T10:08:30Z");
    assert_eq!(
        lost(&image("InvalidImageName", just)),
        (Reason::InvalidImageName, true)
    );
    assert_eq!(
        lost(&image("ErrImageNeverPull", just)),
        (Reason::ImagePullFailed, true)
    );
    assert_eq!(
        waits_for(&image("ImagePullBackOff", just)).as_deref(),
        Some("ImagePullBackOff")
    );
    assert_eq!(
        waits_for(&image("ErrImagePull", long_ago)).as_deref(),
        Some("ErrImagePull")
    );
    assert_eq!(
        lost(&image("ImagePullBackOff", long_ago)),
        (Reason::ImagePullFailed, true)
    );
    assert_eq!(message(&image("InvalidImageName", just)), "image img: details");
}

// F031
#[test]
fn a_missing_secret_is_waited_for_by_name() {
    for words in [
        "secret \"warehouse\" not found",
        "couldn't find key k in Secret a/warehouse",
    ] {
        let pod = both("Pending", running(), waiting("CreateContainerConfigError", words));
        assert_eq!(waits_for(&pod).as_deref(), Some("SecretNotFound"));
        assert!(message(&pod).contains("warehouse"));
    }
}

#[test]
fn a_folder_that_cannot_be_mounted_is_a_volume_failure() {
    let words = "failed to prepare subPath for volumeMount \"user-data\" of container \"sandbox\"";
    let pod = both("Pending", running(), waiting("CreateContainerConfigError", words));
    assert_eq!(waits_for(&pod).as_deref(), Some("VolumeSetupFailed"));
}

// F076
#[test]
fn the_schedulers_words_are_kept() {
    let words = "0/1 nodes are available: 1 node(s) were unschedulable.";
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words});
    let pod = pod(json!({"phase": "Pending", "conditions": [condition]}));
    assert_eq!(waits_for(&pod).as_deref(), Some("Unschedulable"));
    assert_eq!(message(&pod), words);
}

#[test]
fn an_installer_that_failed_is_the_runtimes_loss() {
    let pod = pod(json!({
        "phase": "Pending",
        "initContainerStatuses": [status("install", terminated(1, "Error"))],
        "containerStatuses": [status("runtime", waiting("PodInitializing", "")), status("sandbox", waiting("PodInitializing", ""))],
    }));
    assert_eq!(lost(&pod), (Reason::RuntimeLost, true));
}

fn deleted(asked: &str, grace: i64, pod: Pod) -> Pod {
    let mut pod = pod;
    let asked: Timestamp = asked.parse().unwrap();
    let time = asked + SignedDuration::from_secs(grace);
    pod.metadata.deletion_timestamp = Some(serde_json::from_value(json!(time.to_string())).unwrap());
    pod.metadata.deletion_grace_period_seconds = Some(grace);
    pod
}

// F050, F083
#[test]
fn a_deletion_that_nobody_confirms_is_a_lost_node() {
    let alive = || both("Running", running(), running());
    assert_eq!(
        lost(&deleted("2026-11-30T10:09:30Z", 10, alive())),
        (Reason::PodLost, false)
    );
    assert_eq!(
        lost(&deleted("2026-11-30T10:08:59Z", 10, alive())),
        (Reason::NodeLost, true)
    );
    let over = both("Failed", terminated(0, "Completed"), terminated(137, "Error"));
    assert_eq!(
        lost(&deleted("2026-11-30T10:08:59Z", 10, over)),
        (Reason::PodLost, true)
    );
}

#[test]
fn a_node_that_is_not_ready_is_lost_until_it_is_back() {
    let alive = both("Running", running(), running());
    let facts = |node| read_pod(Some(&alive), node, now()).state;
    assert!(matches!(
        facts(NodeState::NotReady),
        PodState::Lost {
            reason: Reason::NodeLost,
            settled: false,
            ..
        }
    ));
    assert!(matches!(
        facts(NodeState::Gone),
        PodState::Lost {
            reason: Reason::NodeLost,
            settled: true,
            ..
        }
    ));
    assert!(matches!(facts(NodeState::Ready), PodState::Running { .. }));
}

#[test]
fn a_pod_has_ended_only_when_no_container_runs() {
    let ended = |pod: &Pod| read_pod(Some(pod), NodeState::Ready, now()).ended;
    assert!(!ended(&both("Running", terminated(0, "Completed"), running())));
    assert!(ended(&both(
        "Running",
        terminated(0, "Completed"),
        terminated(0, "Completed")
    )));
    assert!(!ended(&both("Failed", running(), running())));
    assert!(ended(&pod(json!({"phase": "Failed", "reason": "Evicted"}))));
    assert!(!ended(&pod(json!({"phase": "Pending"}))));
}
