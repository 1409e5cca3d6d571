//! What a Pod's status says about its attempt. Causes are looked for in the written order of [`LOSSES`]: the first that
//! matches is the reason, so that a consequence never hides its cause.

use super::containers::{INSTALLER, RUNTIME, SANDBOX};
use agentrun_api::SubTaskReason;
use agentrun_protocol::exit;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod, PodCondition, PodStatus};

/// How long the kubelet may try to pull an image before the attempt ends: a short outage of a registry survives.
pub const PULL_GRACE: SignedDuration = SignedDuration::from_secs(60);
/// A deletion that is not confirmed for so long means that nobody can confirm it.
pub const DELETION_GRACE: SignedDuration = SignedDuration::from_secs(60);

/// What the caller knows of the Pod's node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// Ready, or not asked for.
    Ready,
    /// Its condition `Ready` is not True.
    NotReady,
    /// There is no such Node object.
    Gone,
}

/// What a Pod's status says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Where the Pod stands.
    pub state: PodState,
    /// Name of its node, once it has one.
    pub node: Option<String>,
    /// Every container that was started has ended: nothing of the Pod runs.
    pub ended: bool,
}

/// Where a Pod stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PodState {
    /// No container runs yet.
    Pending {
        /// What it waits for, when the cluster says so.
        waiting: Option<Waiting>,
    },
    /// A container runs, another does not yet.
    Starting,
    /// Both containers run.
    Running {
        /// Since when.
        since: Option<Timestamp>,
    },
    /// It serves no attempt any more.
    Lost {
        /// Why.
        reason: SubTaskReason,
        /// What was found.
        message: String,
        /// No better reason will follow: the kubelet has written how the containers ended, or never will.
        settled: bool,
    },
    /// There is no such Pod.
    Gone,
}

/// What a Pod waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// One word: the scheduler's or the kubelet's, or ours where a condition has one.
    pub reason: String,
    /// The cluster's own sentence.
    pub message: String,
}

/// A cause that was found.
type Loss = (SubTaskReason, String, bool);
type Rule = fn(&View<'_>) -> Option<Loss>;

/// The order of causes. Who ended the Pod comes before how its containers ended, the sandbox before the runtime (which
/// ends because the sandbox did), and what is only likely comes last.
const LOSSES: [(&str, Rule); 12] = [
    ("deletion unconfirmed", deletion_unconfirmed),
    ("disrupted", disrupted),
    ("ended by the kubelet", ended_by_kubelet),
    ("sandbox out of memory", sandbox_out_of_memory),
    ("node lost", node_lost),
    ("being deleted", being_deleted),
    ("executor could not start", executor_not_started),
    ("runtime's exit code", runtime_exit),
    ("sandbox ended", sandbox_ended),
    ("installer failed", installer_failed),
    ("phase final", phase_final),
    ("image", image_failed),
];

/// A Pod with its status at hand.
struct View<'a> {
    pod: &'a Pod,
    status: &'a PodStatus,
    node: NodeState,
    now: Timestamp,
}

/// Reads a Pod; `None` is one that does not exist. `now` is the operator's clock.
pub fn read_pod(pod: Option<&Pod>, node: NodeState, now: Timestamp) -> PodFacts {
    let Some(pod) = pod else {
        return PodFacts {
            state: PodState::Gone,
            node: None,
            ended: true,
        };
    };
    let empty = PodStatus::default();
    let view = View {
        pod,
        status: pod.status.as_ref().unwrap_or(&empty),
        node,
        now,
    };
    PodFacts {
        state: state(&view),
        node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        ended: view.ended(),
    }
}

fn state(view: &View<'_>) -> PodState {
    if let Some((reason, message, settled)) = LOSSES.iter().find_map(|(_, rule)| rule(view)) {
        return PodState::Lost {
            reason,
            message,
            settled,
        };
    }
    let since = |name| {
        view.container(name)?
            .state
            .as_ref()?
            .running
            .as_ref()
            .map(|running| running.started_at.clone())
    };
    match (since(RUNTIME), since(SANDBOX)) {
        (Some(runtime), Some(_)) => PodState::Running {
            since: runtime.map(|time| time.0),
        },
        (None, None) => PodState::Pending {
            waiting: waiting(view),
        },
        _ => match waiting(view) {
            Some(waiting) => PodState::Pending {
                waiting: Some(waiting),
            },
            None => PodState::Starting,
        },
    }
}

impl View<'_> {
    fn container(&self, name: &str) -> Option<&ContainerStatus> {
        let all = self
            .status
            .container_statuses
            .iter()
            .chain(&self.status.init_container_statuses)
            .flatten();
        all.into_iter().find(|status| status.name == name)
    }

    fn terminated(&self, name: &str) -> Option<&ContainerStateTerminated> {
        self.container(name)?.state.as_ref()?.terminated.as_ref()
    }

    fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.status
            .conditions
            .iter()
            .flatten()
            .find(|condition| condition.type_ == kind)
    }

    /// Phase and reason are trusted where the kubelet wrote no final container status (it may never come).
    fn ended(&self) -> bool {
        let running =
            |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.running.is_some());
        let any_running = self.status.container_statuses.iter().flatten().any(running);
        !any_running
            && (self.phase_is_final()
                || self.terminated(RUNTIME).is_some() && self.terminated(SANDBOX).is_some())
    }

    fn phase_is_final(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Failed" | "Succeeded"))
    }

    fn deleted_at(&self) -> Option<Timestamp> {
        self.pod.metadata.deletion_timestamp.as_ref().map(|time| time.0)
    }
}

/// The time of deletion in the object is the request plus the grace.
fn deletion_unconfirmed(view: &View<'_>) -> Option<Loss> {
    let grace = view.pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    let asked = view.deleted_at()? - SignedDuration::from_secs(grace);
    let overdue = view.now.duration_since(asked) > DELETION_GRACE && !view.ended();
    let node = view.pod.spec.as_ref()?.node_name.as_deref()?;
    overdue.then(|| {
        let message = format!(
            "node {node} has not confirmed the deletion for {} s",
            DELETION_GRACE.as_secs()
        );
        (SubTaskReason::NodeLost, message, true)
    })
}

fn disrupted(view: &View<'_>) -> Option<Loss> {
    let condition = view
        .condition("DisruptionTarget")
        .filter(|condition| condition.status == "True")?;
    let message = condition.message.clone().unwrap_or_default();
    let reason = match condition.reason.as_deref() {
        Some("PreemptionByScheduler") => SubTaskReason::Preempted,
        Some("DeletionByPodGC") => SubTaskReason::NodeLost,
        Some("DeletionByTaintManager") if view.node != NodeState::Ready => SubTaskReason::NodeLost,
        _ => SubTaskReason::Evicted,
    };
    Some((reason, message, true))
}

/// Ends that the kubelet decided stand in the Pod's own reason; its containers may never get a final status.
fn ended_by_kubelet(view: &View<'_>) -> Option<Loss> {
    let reason = match view.status.reason.as_deref()? {
        "Evicted" | "Terminated" | "NodeShutdown" | "Shutdown" => SubTaskReason::Evicted,
        "Preempting" | "Preempted" => SubTaskReason::Preempted,
        "DeadlineExceeded" => SubTaskReason::DeadlineExceeded,
        "NodeLost" => SubTaskReason::NodeLost,
        _ => return None,
    };
    let message = view
        .status
        .message
        .clone()
        .or_else(|| view.status.reason.clone())
        .unwrap_or_default();
    Some((reason, message, true))
}

fn sandbox_out_of_memory(view: &View<'_>) -> Option<Loss> {
    let end = view.terminated(SANDBOX)?;
    (end.reason.as_deref() == Some("OOMKilled")).then(|| {
        let message = "the sandbox used more memory than its limit, raise resources.memory".to_owned();
        (SubTaskReason::OOMKilled, message, true)
    })
}

/// The image's file system has no place for the executor, or the container runtime refused the container.
fn executor_not_started(view: &View<'_>) -> Option<Loss> {
    let end = view.terminated(SANDBOX)?;
    let never_ran = matches!(end.reason.as_deref(), Some("StartError" | "ContainerCannotRun"));
    never_ran.then(|| {
        let cause = end.message.clone().unwrap_or_default();
        (
            SubTaskReason::ExecutorLost,
            format!("the sandbox container could not be started: {cause}"),
            true,
        )
    })
}

/// User code never runs in the runtime's container, so its exit code can be believed.
fn runtime_exit(view: &View<'_>) -> Option<Loss> {
    let end = view.terminated(RUNTIME)?;
    let words = end
        .message
        .as_deref()
        .map(str::trim)
        .filter(|words| !words.is_empty());
    let say = |text: &str| words.map_or_else(|| text.to_owned(), |words| format!("{text}: {words}"));
    let sandbox_final = view.terminated(SANDBOX).is_some() || view.phase_is_final();
    let code = u8::try_from(end.exit_code).unwrap_or(u8::MAX);
    if end.reason.as_deref() == Some("OOMKilled") {
        return Some((
            SubTaskReason::RuntimeLost,
            say("the runtime container was out of memory"),
            true,
        ));
    }
    Some(match code {
        exit::VERSION_SKEW => (
            SubTaskReason::VersionSkew,
            say("the gateway does not serve this runtime's version"),
            true,
        ),
        exit::EXECUTOR_LOST => match view.terminated(SANDBOX) {
            Some(end) => (SubTaskReason::ExecutorLost, executor_words(end), true),
            None => (
                SubTaskReason::ExecutorLost,
                say("the executor's connection ended"),
                sandbox_final,
            ),
        },
        exit::EXECUTOR_REFUSED => (
            SubTaskReason::ExecutorLost,
            say("the executor did not connect or refused its container"),
            true,
        ),
        exit::MISCONFIGURED => (
            SubTaskReason::RuntimeLost,
            say("the runtime's environment is incomplete"),
            true,
        ),
        exit::REFUSED => (
            SubTaskReason::RuntimeLost,
            say("the gateway refused the runtime"),
            true,
        ),
        exit::DONE => (SubTaskReason::RuntimeLost, say("the runtime has ended"), true),
        _ => (
            SubTaskReason::RuntimeLost,
            say(&format!("the runtime ended with exit code {}", end.exit_code)),
            true,
        ),
    })
}

/// The executor serves until it is killed: its end while the runtime still runs is a loss, with evidence to come from
/// the runtime.
fn sandbox_ended(view: &View<'_>) -> Option<Loss> {
    let end = view.terminated(SANDBOX)?;
    Some((SubTaskReason::ExecutorLost, executor_words(end), true))
}

/// The termination message of this container is never read: user code could have written it.
fn executor_words(end: &ContainerStateTerminated) -> String {
    match end.signal {
        Some(signal) => format!("the executor was ended by signal {signal}"),
        None => format!("the executor ended with exit code {}", end.exit_code),
    }
}

fn installer_failed(view: &View<'_>) -> Option<Loss> {
    let end = view.terminated(INSTALLER).filter(|end| end.exit_code != 0)?;
    let words = end.message.as_deref().unwrap_or_default();
    let message = format!(
        "copying the executor failed with exit code {}: {words}",
        end.exit_code
    );
    Some((SubTaskReason::RuntimeLost, message, true))
}

fn phase_final(view: &View<'_>) -> Option<Loss> {
    view.phase_is_final().then(|| {
        let words = view.status.message.clone().or_else(|| view.status.reason.clone());
        let message = words.unwrap_or_else(|| "the Pod has ended and nothing says why".to_owned());
        (SubTaskReason::PodLost, message, true)
    })
}

/// A Pod whose containers have ended needs its node no more.
fn node_lost(view: &View<'_>) -> Option<Loss> {
    if view.ended() {
        return None;
    }
    let node = view.pod.spec.as_ref()?.node_name.as_deref()?;
    match view.node {
        NodeState::Ready => None,
        NodeState::NotReady => Some((
            SubTaskReason::NodeLost,
            format!("node {node} is not ready"),
            false,
        )),
        NodeState::Gone => Some((SubTaskReason::NodeLost, format!("node {node} is gone"), true)),
    }
}

fn being_deleted(view: &View<'_>) -> Option<Loss> {
    view.deleted_at()?;
    Some((
        SubTaskReason::PodLost,
        "the Pod is being deleted".to_owned(),
        view.ended(),
    ))
}

fn image_failed(view: &View<'_>) -> Option<Loss> {
    let statuses = view
        .status
        .init_container_statuses
        .iter()
        .chain(&view.status.container_statuses)
        .flatten();
    statuses.into_iter().find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let reason = match waiting.reason.as_deref()? {
            "InvalidImageName" => SubTaskReason::InvalidImageName,
            "ErrImageNeverPull" => SubTaskReason::ImagePullFailed,
            "ImagePullBackOff" if pulled_for_long(view) => SubTaskReason::ImagePullFailed,
            _ => return None,
        };
        let words = waiting.message.as_deref().unwrap_or_default();
        Some((reason, format!("image {}: {words}", status.image), true))
    })
}

fn pulled_for_long(view: &View<'_>) -> bool {
    let started = view.status.start_time.as_ref().map(|time| time.0);
    started.is_some_and(|started| view.now.duration_since(started) > PULL_GRACE)
}

/// What a Pod that has not started waits for: the scheduler's word, else the first container's.
fn waiting(view: &View<'_>) -> Option<Waiting> {
    let unscheduled = view
        .condition("PodScheduled")
        .filter(|condition| condition.status == "False");
    if let Some(condition) = unscheduled {
        return Some(Waiting {
            reason: condition
                .reason
                .clone()
                .unwrap_or_else(|| "Unschedulable".to_owned()),
            message: condition.message.clone().unwrap_or_default(),
        });
    }
    let statuses = view
        .status
        .init_container_statuses
        .iter()
        .chain(&view.status.container_statuses)
        .flatten();
    statuses.into_iter().find_map(|status| {
        let waiting = status.state.as_ref()?.waiting.as_ref()?;
        let word = waiting.reason.as_deref()?;
        let message = waiting.message.clone().unwrap_or_default();
        if matches!(word, "ContainerCreating" | "PodInitializing") {
            return None;
        }
        Some(Waiting {
            reason: waiting_reason(word, &message).to_owned(),
            message,
        })
    })
}

/// The kubelet calls a missing Secret and a folder that cannot be mounted by the same word.
fn waiting_reason<'a>(word: &'a str, message: &str) -> &'a str {
    if word != "CreateContainerConfigError" {
        return word;
    }
    if message.contains("subPath") {
        return "VolumeSetupFailed";
    }
    if message.starts_with("secret") || message.contains("in Secret") {
        return "SecretNotFound";
    }
    word
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
