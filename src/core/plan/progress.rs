//! The part of a run's status that follows from its sub-tasks.

use super::delegates::{Delegates, is_delegate};
use super::lead;
use super::outcome::{TaskEnd, end_of};
use super::run::{RunPlan, has_lease};
use crate::acceptance;
use crate::agents::{money, role};
use crate::conditions::{self, Is};
use agentrun_api::names::conditions as kind;
use agentrun_api::{
    AgentRunSpec, AgentRunStatus, Artifact, Counts, FanOut, Isolation, NetworkIsolatedReason, Outcome,
    RunUsage, SubTask, SubTaskPhase, SubTaskUsage,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The most artifacts that a run's status names; all of them stand in the sub-tasks.
pub const MAX_ARTIFACTS: usize = 100;

/// Fills in counts, fan-out, leases, artifacts, usage and what is known of the network.
pub fn fill(
    status: &mut AgentRunStatus,
    spec: &AgentRunSpec,
    children: &[&SubTask],
    plan: &RunPlan,
    generation: Option<i64>,
    now: Timestamp,
) {
    let delegates = Delegates::of(spec, children);
    let mut counts = counts(spec, children, plan);
    add(&mut counts, delegates.all());
    status.done = Some(format!(
        "{}/{}",
        counts.total - counts.pending - counts.running,
        counts.total
    ));
    status.counts = Some(counts);
    status.delegation = delegates.status();
    status.fan_out = fan_outs(spec, children, plan);
    let leases = children
        .iter()
        .filter(|child| has_lease(child) && child.metadata.deletion_timestamp.is_none())
        .count();
    status.leases = Some(count(leases));
    status.artifacts = artifacts(children);
    status.usage = usage(children);
    status.verdict = verdict(children);
    isolation(status, children, generation, now);
}

/// The worst that the criteria of any sub-task of the plan say stands for the run; nothing where none has been checked.
/// What delegates deliver is judged, and repaired, by those who asked for it.
fn verdict(children: &[&SubTask]) -> Option<String> {
    let planned = children.iter().filter(|child| !is_delegate(child));
    let checked = planned
        .filter_map(|child| child.status.as_ref())
        .filter(|status| !status.acceptance.is_empty());
    let standings = checked.map(|status| acceptance::standing(&status.acceptance));
    let worst = standings.max_by_key(|standing| match standing.is {
        Is::True => 0,
        Is::Unknown => 1,
        Is::False => 2,
    });
    worst.map(|standing| standing.reason.as_str().to_owned())
}

fn count(n: usize) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// How a sub-task counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Pending,
    Running,
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

fn place(child: &SubTask) -> Place {
    match end_of(child) {
        Some(TaskEnd::Succeeded) => Place::Succeeded,
        Some(TaskEnd::Skipped) => Place::Skipped,
        Some(TaskEnd::Failed(Outcome::Cancelled)) => Place::Cancelled,
        Some(TaskEnd::Failed(_)) => Place::Failed,
        None => match child.status.as_ref().and_then(|status| status.phase) {
            Some(SubTaskPhase::Running) => Place::Running,
            _ => Place::Pending,
        },
    }
}

fn places<'a>(children: &'a [&'a SubTask], task: &str) -> Vec<Place> {
    children
        .iter()
        .filter(|child| child.spec.task == task && !is_delegate(child))
        .map(|child| place(child))
        .collect()
}

/// Every task counts once, a `forEach` task once an item as soon as its items are known.
fn counts(spec: &AgentRunSpec, children: &[&SubTask], plan: &RunPlan) -> Counts {
    let mut counts = Counts::default();
    let tasks = spec
        .tasks
        .iter()
        .map(|task| (task.name.as_str(), task.for_each.is_some()));
    for (task, is_fan_out) in tasks.chain(spec.goal.is_some().then_some((lead::TASK, false))) {
        let places = places(children, task);
        let total = plan.totals.get(task).copied().unwrap_or(1).max(places.len());
        let total = if is_fan_out && plan.totals.get(task) == Some(&0) {
            0
        } else {
            total
        };
        let of = |place| count(places.iter().filter(|found| **found == place).count());
        counts.total += count(total);
        counts.running += of(Place::Running);
        counts.succeeded += of(Place::Succeeded);
        counts.failed += of(Place::Failed);
        counts.skipped += of(Place::Skipped);
        counts.cancelled += of(Place::Cancelled);
        counts.pending += count(total.saturating_sub(places.len())) + of(Place::Pending);
    }
    counts
}

/// Every delegate counts once.
fn add(counts: &mut Counts, delegates: &[&SubTask]) {
    counts.total += count(delegates.len());
    for delegate in delegates {
        let counted = match place(delegate) {
            Place::Pending => &mut counts.pending,
            Place::Running => &mut counts.running,
            Place::Succeeded => &mut counts.succeeded,
            Place::Failed => &mut counts.failed,
            Place::Skipped => &mut counts.skipped,
            Place::Cancelled => &mut counts.cancelled,
        };
        *counted += 1;
    }
}

fn fan_outs(spec: &AgentRunSpec, children: &[&SubTask], plan: &RunPlan) -> Vec<FanOut> {
    let known = spec
        .tasks
        .iter()
        .filter_map(|task| Some((task, *plan.totals.get(&task.name)?)));
    let fan_out = known.map(|(task, total)| {
        let places = places(children, &task.name);
        let of = |place| count(places.iter().filter(|found| **found == place).count());
        FanOut {
            task: task.name.clone(),
            total: count(total),
            running: of(Place::Running),
            succeeded: of(Place::Succeeded),
            failed: of(Place::Failed),
            skipped: of(Place::Skipped),
            cancelled: of(Place::Cancelled),
            folded: 0,
        }
    });
    fan_out.collect()
}

/// The newest word on each path, in path order.
fn artifacts(children: &[&SubTask]) -> Vec<Artifact> {
    let mut newest: BTreeMap<&str, (Option<Timestamp>, &Artifact)> = BTreeMap::new();
    for child in children {
        let Some(status) = &child.status else { continue };
        let finished = status
            .attempts
            .iter()
            .filter_map(|attempt| attempt.finished.as_ref())
            .map(|time| time.0)
            .max();
        for artifact in &status.artifacts {
            let known = newest.get(artifact.path.as_str());
            if known.is_none_or(|(known, _)| *known <= finished) {
                newest.insert(&artifact.path, (finished, artifact));
            }
        }
    }
    newest
        .into_values()
        .take(MAX_ARTIFACTS)
        .map(|(_, artifact)| artifact.clone())
        .collect()
}

/// What sub-tasks that have ended, or at least one attempt, have used.
fn usage(children: &[&SubTask]) -> Option<RunUsage> {
    let attempts = children
        .iter()
        .filter_map(|child| child.status.as_ref())
        .flat_map(|status| &status.attempts);
    let seconds = attempts.filter_map(|attempt| {
        let (started, finished) = (attempt.started.as_ref()?.0, attempt.finished.as_ref()?.0);
        Some(finished.duration_since(started).as_secs())
    });
    let seconds: i64 = seconds.sum();
    let mut tokens: BTreeMap<String, i64> = BTreeMap::new();
    let mut cost = None;
    for (child, used) in children
        .iter()
        .filter_map(|child| Some((child, child.status.as_ref()?.usage.as_ref()?)))
    {
        for (role, count) in by_role(child, used) {
            *tokens.entry(role).or_default() += count;
        }
        if let Some(micros) = used.cost.as_deref().and_then(money::parse) {
            cost = Some(cost.unwrap_or(0_u64).saturating_add(micros));
        }
    }
    (seconds > 0 || !tokens.is_empty() || cost.is_some()).then(|| RunUsage {
        tokens,
        cost: cost.map(money::written),
        sandbox_seconds: (seconds > 0).then_some(seconds),
    })
}

/// A sub-task's tokens by the roles that used them: summaries are another role than the agent's own.
fn by_role(child: &SubTask, used: &SubTaskUsage) -> BTreeMap<String, i64> {
    match used.tokens {
        Some(total) if used.tokens_by_role.is_empty() => {
            BTreeMap::from([(role::of(&child.spec).to_string(), total)])
        }
        _ => used.tokens_by_role.clone(),
    }
}

/// The worst that any sub-task's sandbox found stands for the run.
fn isolation(status: &mut AgentRunStatus, children: &[&SubTask], generation: Option<i64>, now: Timestamp) {
    let found = children
        .iter()
        .filter_map(|child| child.status.as_ref()?.sandbox.as_ref()?.isolation);
    let worst = found.max_by_key(|found| match found {
        Isolation::Verified => 0,
        Isolation::NotRequired => 1,
        Isolation::NotIsolated => 2,
    });
    let Some(worst) = worst else { return };
    let (is, reason, message) = match worst {
        Isolation::Verified => (
            Is::True,
            NetworkIsolatedReason::Verified,
            "all that must be closed was closed before user code ran",
        ),
        Isolation::NotRequired => (
            Is::False,
            NetworkIsolatedReason::NotRequired,
            "a sandbox reached what must be closed; the installation allows it",
        ),
        Isolation::NotIsolated => (
            Is::False,
            NetworkIsolatedReason::NotIsolated,
            "a sandbox reached what must be closed; no user code ran in it",
        ),
    };
    conditions::set(
        &mut status.conditions,
        kind::NETWORK_ISOLATED,
        is,
        reason.as_str(),
        message,
        generation,
        now,
    );
}
