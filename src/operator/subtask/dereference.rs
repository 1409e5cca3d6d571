//! Everything that the plan of a sub-task depends on.

use crate::error::ReconcileError;
use crate::pods::{self, NodeState, read_pod};
use crate::world::World;
use agentrun_api::names::{conditions as kind, labels};
use agentrun_api::{AgentRun, Outcome, RunPhase, SubTask, SubTaskReason, SubTaskStatus};
use agentrun_core::conditions;
use agentrun_core::plan::delegates::{self, Standing};
use agentrun_core::plan::rerun::{self, Reruns};
use agentrun_core::plan::resolve::{DEFAULT_START_TIMEOUT, DEFAULT_TIMEOUT};
use agentrun_core::plan::subtask::{Decided, PodState, PodView, RunView, SubTaskView};
use agentrun_core::settle::Stop;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt as _};
use std::sync::Arc;
use std::time::Duration;

/// Not within this time of becoming leader does the operator's own deadline count.
const BACKSTOP_AFTER: Duration = Duration::from_secs(30);

/// What was read.
pub(super) struct Facts {
    /// The sub-task, as new as it is known.
    pub subtask: Arc<SubTask>,
    /// Its run, if it is there with the right UID.
    pub run: Option<Arc<AgentRun>>,
    /// Its Pods.
    pub pods: Vec<PodView>,
    /// Its status, empty when it has none.
    pub status: SubTaskStatus,
    uid: String,
    created: Timestamp,
    blocked: Option<String>,
    decided: Option<Decided>,
    marked: Option<(Stop, Timestamp)>,
    reruns: Option<Reruns>,
    /// How long its start may take.
    pub start_timeout: Duration,
    /// How long an attempt may run.
    pub timeout: Duration,
    keep_on_failure: Duration,
    backstop: bool,
}

/// Reads what the plan depends on.
pub(super) async fn read(
    world: &World,
    given: &Arc<SubTask>,
    now: Timestamp,
) -> Result<Facts, ReconcileError> {
    let namespace = given.namespace().unwrap_or_default();
    let known = world.subtasks.get(&namespace, &given.name_any());
    let subtask = known
        .filter(|known| known.uid() == given.uid())
        .unwrap_or_else(|| Arc::clone(given));
    let status = subtask.status.clone().unwrap_or_default();
    let run_ref = &subtask.spec.run_ref;
    let run = world
        .runs
        .get(&namespace, &run_ref.name)
        .filter(|run| run.uid().as_ref() == Some(&run_ref.uid));
    let uid = subtask.uid().unwrap_or_default();
    let pods = pods_of(world, &namespace, &uid, &status).await?;
    let views = pods.iter().map(|pod| view_of(world, pod, now)).collect();
    let limits = run
        .as_ref()
        .and_then(|run| run.spec.limits.clone())
        .unwrap_or_default();
    let sandbox = subtask.spec.sandbox.as_ref();
    let standing = standing(world, run.as_deref(), &subtask);
    let duration = |text: Option<&agentrun_api::GoDuration>| text.and_then(|text| text.parse().ok());
    Ok(Facts {
        blocked: match &standing {
            Some(Standing::Waits(what)) => Some(what.clone()),
            _ => blocked(world, run.as_deref(), &uid, now),
        },
        decided: match standing {
            Some(Standing::Refused(message)) => Some(Decided {
                outcome: Outcome::Skipped,
                reason: SubTaskReason::QuotaExceeded,
                message,
            }),
            _ => subtask
                .annotations()
                .get(labels::DECIDED)
                .and_then(|text| decided(text)),
        },
        marked: subtask
            .annotations()
            .get(labels::STOP)
            .and_then(|text| marked(text)),
        reruns: reruns(world, &subtask),
        start_timeout: duration(limits.start_timeout.as_ref()).unwrap_or(DEFAULT_START_TIMEOUT),
        timeout: duration(subtask.spec.timeout.as_ref()).unwrap_or(DEFAULT_TIMEOUT),
        keep_on_failure: duration(sandbox.and_then(|sandbox| sandbox.keep_on_failure.as_ref()))
            .unwrap_or_default(),
        backstop: world.since.elapsed() >= BACKSTOP_AFTER,
        created: subtask
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(now, |time| time.0),
        pods: views,
        subtask,
        run,
        status,
        uid,
    })
}

impl Facts {
    /// As the plan takes them.
    pub(super) fn view(&self) -> SubTaskView<'_> {
        SubTaskView {
            uid: &self.uid,
            spec: &self.subtask.spec,
            status: &self.status,
            created: self.created,
            deleted: self
                .subtask
                .metadata
                .deletion_timestamp
                .as_ref()
                .map(|time| time.0),
            has_lease: agentrun_core::plan::run::has_lease(&self.subtask),
            decided: self.decided.clone(),
            marked: self.marked,
            reruns: self.reruns.as_ref(),
            run: self.run.as_deref().map_or(RunView::Gone, run_view),
            pods: &self.pods,
            blocked: self.blocked.as_deref(),
            start_timeout: self.start_timeout,
            timeout: self.timeout,
            keep_on_failure: self.keep_on_failure,
            backstop: self.backstop,
        }
    }
}

/// Where a delegate stands that has not started; nothing for all other sub-tasks.
fn standing(world: &World, run: Option<&AgentRun>, subtask: &SubTask) -> Option<Standing> {
    let ended = subtask
        .status
        .as_ref()
        .is_some_and(|status| status.outcome.is_some());
    if !delegates::is_delegate(subtask) {
        return None;
    }
    if ended || delegates::has_started(subtask) {
        world.admissions.forget(subtask.metadata.uid.as_deref()?);
        return None;
    }
    let children = || world.subtasks.under(&subtask.spec.run_ref.uid);
    Some(world.admissions.standing(&run?.spec, subtask, children))
}

/// How far its criteria have been run again; other sub-tasks matter only to one that waits for that.
fn reruns(world: &World, subtask: &SubTask) -> Option<Reruns> {
    rerun::unsettled(subtask.status.as_ref()?)?;
    let children = world.subtasks.under(&subtask.spec.run_ref.uid);
    let children: Vec<_> = children.iter().map(|child| &**child).collect();
    rerun::reruns(subtask, &children)
}

fn run_view(run: &AgentRun) -> RunView {
    let status = run.status.as_ref();
    let cancelled = status
        .and_then(|status| status.cancel_requested_at.as_ref())
        .map(|time| time.0);
    RunView::Live {
        stopped_at: cancelled.or_else(|| run.metadata.deletion_timestamp.as_ref().map(|time| time.0)),
        // Until its deadline has moved it is at rest, even if its spec lets it go on already.
        suspended: run.spec.suspend == Some(true)
            || status.is_some_and(|status| status.phase == Some(RunPhase::Suspended)),
        going_since: status
            .and_then(|status| conditions::get(&status.conditions, kind::PROGRESSING))
            .filter(|condition| condition.status == "True")
            .map(|condition| condition.last_transition_time.0),
        deadline: status
            .and_then(|status| status.deadline.as_ref())
            .map(|time| time.0),
        finished: status.is_some_and(crate::run::is_over),
    }
}

/// The Pods of a sub-task; one that its status names and the cache lacks is asked for, since a cache that lags must
/// not look like a lost Pod.
async fn pods_of(
    world: &World,
    namespace: &str,
    uid: &str,
    status: &SubTaskStatus,
) -> Result<Vec<Arc<Pod>>, ReconcileError> {
    let pods = world.pods.under(uid);
    if status.outcome.is_some() {
        return Ok(pods);
    }
    let current = status
        .attempts
        .iter()
        .filter(|attempt| attempt.outcome.is_none())
        .find_map(|attempt| Some((attempt.pod_name.as_deref()?, attempt.pod_uid.as_deref()?)));
    let Some((name, pod_uid)) = current else {
        return Ok(pods);
    };
    if pods.iter().any(|pod| pod.uid().as_deref() == Some(pod_uid)) {
        return Ok(pods);
    }
    let api: Api<Pod> = Api::namespaced(world.operator.client.clone(), namespace);
    if let Some(pod) = api
        .get_opt(name)
        .await?
        .filter(|pod| pod.uid().as_deref() == Some(pod_uid))
    {
        world.pods.wrote(pod);
        return Ok(world.pods.under(uid));
    }
    Ok(pods)
}

fn view_of(world: &World, pod: &Pod, now: Timestamp) -> PodView {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let facts = read_pod(
        Some(pod),
        node.map_or(NodeState::Ready, |node| node_state(world, node)),
        now,
    );
    let created = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(now, |time| time.0);
    let state = match facts.state {
        pods::PodState::Pending { waiting } => PodState::Pending {
            message: waiting.map(|waiting| format!("{}: {}", waiting.reason, waiting.message)),
        },
        pods::PodState::Starting | pods::PodState::Gone => PodState::Pending { message: None },
        pods::PodState::Running { since } => PodState::Running {
            since: since.unwrap_or(created),
        },
        pods::PodState::Lost {
            reason: reason @ (SubTaskReason::ImagePullFailed | SubTaskReason::InvalidImageName),
            message,
            ..
        } => PodState::Broken { reason, message },
        pods::PodState::Lost {
            reason,
            message,
            settled,
        } => PodState::Lost {
            reason,
            message,
            settled,
            nothing_runs: facts.ended,
        },
    };
    let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
    let asked = |at: Timestamp| at - Duration::from_secs(u64::try_from(grace).unwrap_or(0));
    PodView {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        attempt: pod
            .annotations()
            .get(labels::ATTEMPT)
            .and_then(|number| number.parse().ok())
            .unwrap_or(0),
        deleting_since: pod.metadata.deletion_timestamp.as_ref().map(|time| asked(time.0)),
        state,
    }
}

fn node_state(world: &World, name: &str) -> NodeState {
    let Some(node) = world.nodes.get("", name) else {
        return NodeState::Gone;
    };
    let conditions = node
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions
        .filter(|condition| condition.type_ == "Ready")
        .any(|condition| condition.status == "True");
    if ready {
        NodeState::Ready
    } else {
        NodeState::NotReady
    }
}

/// Why no Pod may be made on the run's claim now: another Pod's end is unconfirmed.
fn blocked(world: &World, run: Option<&AgentRun>, own: &str, now: Timestamp) -> Option<String> {
    let namespace = run?.namespace()?;
    let claim = world
        .claims
        .get(&namespace, run?.status.as_ref()?.claim_name.as_deref()?)?;
    let lost = world.pods.under(&claim.uid()?).into_iter().find(|pod| {
        let asked = pod.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        let foreign = pod.labels().get(labels::SUBTASK_UID).map(String::as_str) != Some(own);
        foreign && asked.is_some_and(|asked| asked + agentrun_core::plan::subtask::LOST_NODE_AFTER < now)
    })?;
    Some(format!(
        "VolumeQuarantined: Pod {} may still write to claim {}",
        lost.name_any(),
        claim.name_any()
    ))
}

fn decided(text: &str) -> Option<Decided> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(Decided {
        outcome: serde_json::from_value(value.get("outcome")?.clone()).ok()?,
        reason: value.get("reason")?.as_str()?.parse().ok()?,
        message: value.get("message")?.as_str()?.to_owned(),
    })
}

/// `REASON TIME`.
fn marked(text: &str) -> Option<(Stop, Timestamp)> {
    let (reason, time) = text.split_once(' ')?;
    let stop = match reason.parse::<SubTaskReason>().ok()? {
        SubTaskReason::Cancelled => Stop::Cancelled,
        SubTaskReason::RunFailedFast => Stop::FailedFast,
        SubTaskReason::DeadlineExceeded => Stop::RunDeadline,
        _ => return None,
    };
    Some((stop, time.parse().ok()?))
}
