//! What to do next for one sub-task: the operator's half of an attempt's life.
//!
//! The gateway writes every end that comes over the channel. Here is the rest: starting, assigning,
//! stopping, and the ends that only the cluster shows (a lost Pod, an image that does not come, a run
//! that is gone). Everything is decided from levels, so that a lost event or a restart changes nothing.

#[path = "subtask_view.rs"]
mod view;

pub use view::{Action, Decided, PodState, PodView, RunView, SubTaskPlan, SubTaskView};

use super::rerun::{self, Reruns};
use crate::acceptance;
use crate::backoff;
use crate::settle::{self, Settlement, Stop, Verdict};
use agentrun_api::{Attempt, Outcome, SubTaskPhase, SubTaskReason, SubTaskStatus};
use jiff::Timestamp;
use std::time::Duration;

/// From a stop to the deletion of a Pod that still runs: the gateway's cancel has 5 s between SIGTERM and
/// SIGKILL, the rest is for the result to arrive.
pub const STOP_BACKSTOP: Duration = Duration::from_secs(15);

/// The runtime keeps the deadline; the operator steps in this much later.
pub const DEADLINE_BACKSTOP: Duration = Duration::from_secs(30);

/// A deletion that is unconfirmed for this long means that the node is lost.
pub const LOST_NODE_AFTER: Duration = Duration::from_mins(1);

/// How often a Pod that waits for something is looked at again: some causes are final only after a while (an image
/// that is not pulled), and no event comes with the passing of time.
pub const PENDING_LOOK: Duration = Duration::from_secs(15);

const SUSPENDED: &str = "the run is suspended";

/// Decides what to do next for a sub-task.
pub fn plan(view: &SubTaskView<'_>, now: Timestamp) -> SubTaskPlan {
    if view.status.outcome.is_some() {
        return release(view, now);
    }
    if !view.has_lease && view.deleted.is_none() {
        return SubTaskPlan::of(vec![Action::TakeLease]);
    }
    if let Some(decided) = &view.decided {
        return SubTaskPlan::of(vec![Action::Finish(decided.clone())]);
    }
    match current_attempt(view.status) {
        Some(attempt) => watch_attempt(view, attempt, now),
        None => start_or_stop(view, now),
    }
}

/// The attempt that has begun and not ended.
fn current_attempt(status: &SubTaskStatus) -> Option<&Attempt> {
    newest(status).filter(|attempt| attempt.outcome.is_none())
}

fn newest(status: &SubTaskStatus) -> Option<&Attempt> {
    status.attempts.iter().max_by_key(|attempt| attempt.number)
}

/// What stops the sub-task, and since when.
fn stop_of(view: &SubTaskView<'_>, now: Timestamp) -> (Stop, Timestamp) {
    if let Some(deleted) = view.deleted {
        return (Stop::Cancelled, deleted);
    }
    match view.run {
        // Nobody is left to tell us when it went: no grace.
        RunView::Gone => return (Stop::Cancelled, now - STOP_BACKSTOP),
        RunView::Live {
            stopped_at: Some(at), ..
        } => return (Stop::Cancelled, at),
        RunView::Live {
            deadline: Some(deadline),
            ..
        } if deadline <= now => {
            return (Stop::RunDeadline, deadline);
        }
        RunView::Live { .. } => {}
    }
    view.marked.unwrap_or((Stop::None, now))
}

/// A terminal sub-task gives back what it holds.
fn release(view: &SubTaskView<'_>, now: Timestamp) -> SubTaskPlan {
    let keep_until = kept_until(view).filter(|until| *until > now);
    let mut actions = Vec::new();
    if keep_until.is_none() {
        actions.extend(
            view.pods
                .iter()
                .filter(|pod| pod.deleting_since.is_none())
                .map(delete),
        );
    }
    let reachable: Vec<_> = view.pods.iter().filter(|pod| !is_lost(pod, now)).collect();
    // Deleted under a live run it keeps its name taken, so that the run's plan cannot make it again.
    let name_is_needed = view.deleted.is_some() && matches!(view.run, RunView::Live { finished: false, .. });
    if view.has_lease && !name_is_needed && (reachable.is_empty() || tree_is_empty(view.status)) {
        actions.push(Action::ReleaseLease);
    }
    let mut plan = SubTaskPlan::of(actions);
    if let Some(until) = keep_until.filter(|_| !view.pods.is_empty()) {
        plan = plan
            .at(until)
            .waiting(format!("keepOnFailure: the sandbox is kept until {until}"));
    }
    // A deletion may never be confirmed, and no event says so.
    let overdue = reachable.iter().filter_map(|pod| pod.deleting_since).min();
    if let Some(since) = overdue.filter(|_| view.has_lease) {
        plan = plan.at(since + LOST_NODE_AFTER);
    }
    plan
}

/// The end of `keepOnFailure` for a sub-task that failed by itself.
fn kept_until(view: &SubTaskView<'_>) -> Option<Timestamp> {
    let failed = matches!(
        view.status.outcome?,
        Outcome::Error | Outcome::Timeout | Outcome::ParseError
    );
    let stopped = view.deleted.is_some() || view.run == RunView::Gone;
    if !failed || stopped || view.keep_on_failure.is_zero() {
        return None;
    }
    Some(newest(view.status)?.finished.as_ref()?.0 + view.keep_on_failure)
}

/// No process of the newest attempt is left, by the runtime's own evidence.
fn tree_is_empty(status: &SubTaskStatus) -> bool {
    status
        .sandbox
        .as_ref()
        .and_then(|sandbox| sandbox.process_tree_empty)
        == Some(true)
}

fn delete(pod: &PodView) -> Action {
    Action::DeletePod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

fn is_lost(pod: &PodView, now: Timestamp) -> bool {
    pod.deleting_since
        .is_some_and(|since| since + LOST_NODE_AFTER <= now)
}

/// No attempt runs: finish, wait, or begin the next one.
fn start_or_stop(view: &SubTaskView<'_>, now: Timestamp) -> SubTaskPlan {
    let next = newest(view.status).map_or(1, |attempt| attempt.number + 1);
    let (stop, _) = stop_of(view, now);
    let suspended = matches!(view.run, RunView::Live { suspended: true, .. });
    // The deadline of a run at rest moves when it goes on.
    let stop = if suspended && stop == Stop::RunDeadline {
        Stop::None
    } else {
        stop
    };
    // A Pod of the next attempt may be there already: made before a crash, not yet assigned.
    let (ours, older): (Vec<_>, Vec<_>) = view.pods.iter().partition(|pod| pod.attempt == next);
    if let Some((outcome, reason)) = stop.outcome() {
        return finish_stopped(
            view,
            &Decided {
                outcome,
                reason,
                message: String::new(),
            },
        );
    }
    let leftovers: Vec<_> = older
        .iter()
        .filter(|pod| pod.deleting_since.is_none())
        .map(|pod| delete(pod))
        .collect();
    if let Some(reruns) = view.reruns {
        return settle_success(view, reruns, leftovers, suspended, now);
    }
    if !leftovers.is_empty() {
        return SubTaskPlan::of(leftovers).at(now + Duration::from_secs(1));
    }
    if !older.is_empty() && !tree_is_empty(view.status) {
        return SubTaskPlan::default()
            .waiting("the Pod of the attempt before has not gone yet")
            .at(now + LOST_NODE_AFTER);
    }
    if suspended {
        return SubTaskPlan::default().waiting(SUSPENDED);
    }
    let not_before = view
        .status
        .next_attempt_time
        .as_ref()
        .map_or(view.created, |time| time.0);
    if not_before > now {
        return SubTaskPlan::default()
            .waiting(format!("back-off until {not_before}"))
            .at(not_before);
    }
    if let Some(pod) = ours.first() {
        return assign(next, pod);
    }
    // While the run was at rest nothing could start.
    let could_start = going_since(view).map_or(not_before, |since| since.max(not_before));
    let give_up = could_start + view.start_timeout;
    if give_up <= now {
        let last = view
            .status
            .waiting_for
            .as_deref()
            .or(view.blocked)
            .unwrap_or("no Pod could be made");
        let message = format!("not started within {:?}: {last}", view.start_timeout);
        return SubTaskPlan::of(vec![Action::Finish(Decided {
            outcome: Outcome::Error,
            reason: SubTaskReason::StartTimeout,
            message,
        })]);
    }
    match view.blocked {
        Some(why) => SubTaskPlan::default().waiting(why).at(give_up),
        // Where that fails for a quota or a name, no event tells that it could go through now.
        None => SubTaskPlan::of(vec![Action::StartPod { attempt: next }])
            .at(give_up.min(now + backoff::try_again(waited(not_before, now)))),
    }
}

fn going_since(view: &SubTaskView<'_>) -> Option<Timestamp> {
    match view.run {
        RunView::Live { going_since, .. } => going_since,
        RunView::Gone => None,
    }
}

/// The newest attempt has succeeded, and its criteria are run again. Its own Pod is of no use meanwhile.
fn settle_success(
    view: &SubTaskView<'_>,
    reruns: &Reruns,
    leftovers: Vec<Action>,
    suspended: bool,
    now: Timestamp,
) -> SubTaskPlan {
    let mut plan = SubTaskPlan::of(leftovers);
    let verdicts = match reruns {
        Reruns::Done(verdicts) => verdicts,
        Reruns::Running { name } => return plan.waiting(format!("SubTask {name} runs a criterion again")),
        Reruns::Due { .. } if suspended => return plan.waiting(SUSPENDED),
        Reruns::Due { .. } => return plan.waiting(rerun::WAITING),
    };
    let verdict = acceptance::standing(verdicts).verdict(view.spec.acceptance_policy);
    let settlement = settle::settle(
        view.spec,
        view.uid,
        &view.status.attempts,
        verdict,
        Stop::None,
        now,
    );
    plan.actions.extend(settlement.map(|settlement| Action::Settle {
        verdicts: verdicts.clone(),
        settlement,
    }));
    plan
}

fn waited(since: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(since).try_into().unwrap_or_default()
}

fn assign(attempt: i32, pod: &PodView) -> SubTaskPlan {
    SubTaskPlan::of(vec![Action::Assign {
        attempt,
        pod_name: pod.name.clone(),
        pod_uid: pod.uid.clone(),
    }])
}

/// Pods that were never assigned ran nothing: they go, then the outcome is written.
fn finish_stopped(view: &SubTaskView<'_>, decided: &Decided) -> SubTaskPlan {
    let mut actions: Vec<_> = view
        .pods
        .iter()
        .filter(|pod| pod.deleting_since.is_none())
        .map(delete)
        .collect();
    actions.push(Action::Finish(decided.clone()));
    SubTaskPlan::of(actions)
}

/// An attempt has its Pod: watch it until its end.
fn watch_attempt(view: &SubTaskView<'_>, attempt: &Attempt, now: Timestamp) -> SubTaskPlan {
    let pod = view
        .pods
        .iter()
        .find(|pod| Some(&pod.uid) == attempt.pod_uid.as_ref());
    let (stop, since) = stop_of(view, now);
    if let Some(reason) = attempt.reason.as_deref() {
        return finish_ending(view, attempt, pod, reason, stop, now);
    }
    let Some(pod) = pod else {
        let message = format!("Pod {} is gone", attempt.pod_name.as_deref().unwrap_or_default());
        return end(
            view,
            attempt,
            stop,
            &stopped_or(stop, SubTaskReason::PodLost),
            &message,
            now,
        );
    };
    match &pod.state {
        PodState::Lost { settled: false, .. } => SubTaskPlan::default().at(now + Duration::from_secs(1)),
        PodState::Lost {
            reason,
            message,
            nothing_runs: true,
            ..
        } => end(view, attempt, stop, &stopped_or(stop, *reason), message, now),
        PodState::Broken { reason, message } | PodState::Lost { reason, message, .. } => {
            ending(attempt, pod, *reason, message)
        }
        PodState::Pending { message } => watch_pending(view, attempt, pod, message.as_deref(), stop, now),
        PodState::Running { since: started } => {
            watch_running(view, attempt, pod, *started, (stop, since), now)
        }
    }
}

fn watch_pending(
    view: &SubTaskView<'_>,
    attempt: &Attempt,
    pod: &PodView,
    message: Option<&str>,
    stop: Stop,
    now: Timestamp,
) -> SubTaskPlan {
    if let Some((_, reason)) = stop.outcome() {
        return ending(attempt, pod, reason, "stopped before it started");
    }
    if pod.deleting_since.is_some() {
        return ending(
            attempt,
            pod,
            SubTaskReason::PodLost,
            "the Pod was deleted before it started",
        );
    }
    let give_up = attempt.started.as_ref().map_or(view.created, |time| time.0) + view.start_timeout;
    if give_up <= now {
        let last = message.unwrap_or("its containers did not start");
        let message = format!("not started within {:?}: {last}", view.start_timeout);
        return ending(attempt, pod, SubTaskReason::StartTimeout, &message);
    }
    let plan = SubTaskPlan::default().at(give_up);
    match message {
        Some(message) => plan.at(now + PENDING_LOOK).waiting(message),
        None => plan,
    }
}

fn watch_running(
    view: &SubTaskView<'_>,
    attempt: &Attempt,
    pod: &PodView,
    started: Timestamp,
    (stop, stopped): (Stop, Timestamp),
    now: Timestamp,
) -> SubTaskPlan {
    if let Some((_, reason)) = stop.outcome() {
        let patience = stopped + STOP_BACKSTOP;
        return match patience <= now {
            true => ending(
                attempt,
                pod,
                reason,
                "it did not end by itself when it was stopped",
            ),
            false => SubTaskPlan::default().at(patience),
        };
    }
    if pod.deleting_since.is_some() {
        return ending(
            attempt,
            pod,
            SubTaskReason::PodLost,
            "the Pod was deleted while it ran",
        );
    }
    let deadline = started + view.timeout + DEADLINE_BACKSTOP;
    if deadline > now || !view.backstop {
        return SubTaskPlan::default().at(deadline.max(now + DEADLINE_BACKSTOP.min(Duration::from_secs(5))));
    }
    let message = format!(
        "no result {DEADLINE_BACKSTOP:?} after its deadline of {:?}",
        view.timeout
    );
    ending(attempt, pod, SubTaskReason::DeadlineExceeded, &message)
}

/// Writes down why, then deletes the Pod; the end is written when the Pod is gone.
fn ending(attempt: &Attempt, pod: &PodView, reason: SubTaskReason, message: &str) -> SubTaskPlan {
    let note = Action::NoteEnding {
        attempt: attempt.number,
        reason,
        message: message.to_owned(),
    };
    let mut actions = vec![note];
    if pod.deleting_since.is_none() {
        actions.push(delete(pod));
    }
    SubTaskPlan::of(actions)
}

/// The reason is written down; the end follows when nothing can run any more.
fn finish_ending(
    view: &SubTaskView<'_>,
    attempt: &Attempt,
    pod: Option<&PodView>,
    reason: &str,
    stop: Stop,
    now: Timestamp,
) -> SubTaskPlan {
    let message = view.status.message.as_deref().unwrap_or_default();
    match pod {
        None => end(view, attempt, stop, reason, message, now),
        Some(pod) if pod.deleting_since.is_none() => SubTaskPlan::of(vec![delete(pod)]),
        Some(pod) if is_lost(pod, now) => {
            let lost = "its node does not confirm that the Pod ended; the volume is quarantined";
            end(view, attempt, stop, SubTaskReason::NodeLost.as_str(), lost, now)
        }
        Some(pod) => SubTaskPlan::default().at(pod.deleting_since.unwrap_or(now) + LOST_NODE_AFTER),
    }
}

/// A stop explains a lost Pod better than its absence does.
fn stopped_or(stop: Stop, reason: SubTaskReason) -> String {
    stop.outcome()
        .map_or(reason, |(_, stopped)| stopped)
        .as_str()
        .to_owned()
}

fn end(
    view: &SubTaskView<'_>,
    attempt: &Attempt,
    stop: Stop,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> SubTaskPlan {
    let outcome = outcome_of(reason);
    let mut attempts = view.status.attempts.clone();
    for known in attempts.iter_mut().filter(|known| known.number == attempt.number) {
        known.outcome = Some(outcome);
        known.reason = Some(reason.to_owned());
    }
    let settled = settle::settle(view.spec, view.uid, &attempts, Verdict::Accepted, stop, now);
    let settlement = settled.unwrap_or_else(|| Settlement::Final {
        outcome,
        reason: reason.to_owned(),
    });
    SubTaskPlan::of(vec![Action::EndAttempt {
        attempt: attempt.number,
        outcome,
        reason: reason.to_owned(),
        message: message.to_owned(),
        settlement,
    }])
}

/// The outcome that goes with a reason which the operator writes.
fn outcome_of(reason: &str) -> Outcome {
    let is = |known: SubTaskReason| known.as_str() == reason;
    if is(SubTaskReason::Cancelled) || is(SubTaskReason::RunFailedFast) {
        return Outcome::Cancelled;
    }
    if is(SubTaskReason::DeadlineExceeded) {
        return Outcome::Timeout;
    }
    Outcome::Error
}

/// The phase that goes with a status, for every writer.
pub fn phase_of(status: &SubTaskStatus) -> SubTaskPhase {
    match (status.outcome, current_attempt(status)) {
        (Some(_), _) => SubTaskPhase::Finished,
        (None, Some(_)) => SubTaskPhase::Running,
        (None, None) if rerun::unsettled(status).is_some() => SubTaskPhase::Running,
        (None, None) => SubTaskPhase::Pending,
    }
}

#[cfg(test)]
#[path = "subtask_tests.rs"]
mod tests;
