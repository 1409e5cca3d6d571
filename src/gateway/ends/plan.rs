//! From a report to the one status write that stores it; pure.

use crate::ends::Report;
use crate::placement::newest;
use agentrun_api::{
    Attempt, Outcome, Review, StopReason, SubTask, SubTaskPhase, SubTaskStatus, SubTaskUsage, Timing,
};
use agentrun_core::acceptance::{self, Standing};
use agentrun_core::agents::{money, role};
use agentrun_core::plan::rerun;
use agentrun_core::settle::{Settlement, Stop, Verdict, settle};
use agentrun_core::text::one_line;
use agentrun_protocol::agent::{self, AgentFacts};
use agentrun_protocol::work::AttemptId;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::ResourceExt as _;
use serde::Serialize;
use serde_json::{Value, json};

/// What a report is about: results count only with all three.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// SubTask UID and attempt.
    pub(crate) id: AttemptId,
    /// The Pod that the stream is bound to.
    pub(crate) pod_uid: String,
    /// From the operator's assignment to the gateway's message, when this stream sent it.
    pub(crate) waited: Option<SignedDuration>,
}

/// What to do with a report.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// Nothing: it is of no interest any more, for this cause.
    Drop(&'static str),
    /// Write this JSON Patch.
    Write(Value),
}

/// Plans the write for `subtask` as it is now. `stopped` says that the run shows that nothing may follow: then the end
/// is an `attempts[]` entry, and the operator decides the outcome.
pub(crate) fn plan(subtask: &SubTask, key: &Key, report: &Report, stopped: bool, now: Timestamp) -> Plan {
    let empty = SubTaskStatus::default();
    let status = subtask.status.as_ref().unwrap_or(&empty);
    let place = match place(subtask, status, key) {
        Ok(place) => place,
        Err(cause) => return Plan::Drop(cause),
    };
    let mut patch = Patch::new(subtask);
    // A runtime that was told to go (drain, eviction) cancels its work too. Why it had to go is the Pod's to say.
    let unasked = report.outcome == Some(Outcome::Cancelled) && !stopped;
    match report.outcome {
        Some(outcome) if !unasked => {
            end_attempt(&mut patch, place, outcome, report, now);
            details(&mut patch, status, report);
            let accepted = accepted(&mut patch, subtask, status, report, now);
            measures(&mut patch, subtask, status, place, key, report, now);
            match accepted {
                _ if stopped => {}
                Accepted::Decided(verdict) => settled(&mut patch, subtask, place, report, verdict, now),
                // The operator runs them and settles the sub-task.
                Accepted::RunAgain => patch.add("waitingFor", rerun::WAITING),
            }
        }
        _ => evidence(&mut patch, status, report),
    }
    patch.finish()
}

/// The index of the attempt that the report ends, or why it ends none.
fn place(subtask: &SubTask, status: &SubTaskStatus, key: &Key) -> Result<usize, &'static str> {
    if subtask.uid().as_deref() != Some(key.id.uid.as_str()) {
        return Err("another object has that name now");
    }
    if status.outcome.is_some() {
        return Err("the sub-task has its outcome");
    }
    let newest = newest(&status.attempts).ok_or("there is no attempt")?;
    if newest.number != key.id.attempt {
        return Err("it is not the newest attempt");
    }
    if newest.pod_uid.as_deref() != Some(key.pod_uid.as_str()) {
        return Err("the attempt belongs to another Pod");
    }
    if newest.outcome.is_some() || newest.finished.is_some() {
        return Err("the attempt has its end");
    }
    let index = status
        .attempts
        .iter()
        .position(|attempt| attempt.number == key.id.attempt);
    index.ok_or("there is no attempt")
}

fn attempt_of(subtask: &SubTask, place: usize) -> Option<&Attempt> {
    subtask.status.as_ref()?.attempts.get(place)
}

fn end_attempt(patch: &mut Patch, place: usize, outcome: Outcome, report: &Report, now: Timestamp) {
    patch.add(&format!("attempts/{place}/outcome"), outcome);
    if let Some(reason) = &report.reason {
        patch.add(&format!("attempts/{place}/reason"), reason);
    }
    patch.add(&format!("attempts/{place}/finished"), MicroTime(now));
}

/// What the attempt left: replaces everything that an earlier one had left.
fn details(patch: &mut Patch, old: &SubTaskStatus, report: &Report) {
    patch.set("message", report.message.as_ref(), old.message.is_some());
    let stopped = report.agent.as_ref().and_then(|agent| agent.stop_reason);
    patch.set("stopReason", stopped.map(stop_reason), old.stop_reason.is_some());
    let review = report.agent.as_ref().and_then(|agent| agent.review.as_ref());
    patch.set("review", review.map(bounded_review), old.review.is_some());
    patch.set("exitCode", report.exit_code, old.exit_code.is_some());
    patch.set("output", report.output.as_ref(), old.output.is_some());
    patch.set("outputRef", report.output_ref.as_ref(), old.output_ref.is_some());
    patch.set(
        "stdoutTail",
        report.stdout_tail.as_ref(),
        old.stdout_tail.is_some(),
    );
    patch.set(
        "stderrTail",
        report.stderr_tail.as_ref(),
        old.stderr_tail.is_some(),
    );
    let artifacts = (!report.artifacts.is_empty()).then_some(&report.artifacts);
    patch.set("artifacts", artifacts, !old.artifacts.is_empty());
    patch.set("waitingFor", None::<()>, old.waiting_for.is_some());
}

/// What the criteria say together.
enum Accepted {
    /// Whether a success stands.
    Decided(Verdict),
    /// Some are to be run again, in sandboxes of their own.
    RunAgain,
}

/// Writes what the criteria say and the condition, and gives back what they say together. When the attempt did not end
/// well nothing was delivered that could be checked, and the outcome speaks.
fn accepted(
    patch: &mut Patch,
    subtask: &SubTask,
    old: &SubTaskStatus,
    report: &Report,
    now: Timestamp,
) -> Accepted {
    let (criteria, policy) = (&subtask.spec.acceptance, subtask.spec.acceptance_policy);
    if criteria.is_empty() {
        return Accepted::Decided(Verdict::Accepted);
    }
    let ended_well = report.outcome == Some(Outcome::Success);
    let mut verdicts = ended_well.then(|| acceptance::of_report(criteria, &report.acceptance));
    let run_again = verdicts
        .as_mut()
        .is_some_and(|verdicts| acceptance::leave_open(policy, verdicts));
    patch.set("acceptance", verdicts.as_ref(), !old.acceptance.is_empty());
    let standing = verdicts.map_or_else(Standing::not_checked, |verdicts| acceptance::standing(&verdicts));
    let mut conditions = old.conditions.clone();
    standing.show(&mut conditions, subtask.metadata.generation, now);
    patch.add("conditions", conditions);
    match (run_again, ended_well) {
        (true, _) => Accepted::RunAgain,
        (false, true) => Accepted::Decided(standing.verdict(policy)),
        (false, false) => Accepted::Decided(Verdict::Accepted),
    }
}

fn evidence(patch: &mut Patch, old: &SubTaskStatus, report: &Report) {
    patch.set(
        "stdoutTail",
        report.stdout_tail.as_ref(),
        old.stdout_tail.is_some(),
    );
    patch.set(
        "stderrTail",
        report.stderr_tail.as_ref(),
        old.stderr_tail.is_some(),
    );
}

fn measures(
    patch: &mut Patch,
    subtask: &SubTask,
    old: &SubTaskStatus,
    place: usize,
    key: &Key,
    report: &Report,
    now: Timestamp,
) {
    let started = attempt_of(subtask, place).and_then(|attempt| Some(attempt.started.as_ref()?.0));
    if let Some(measured) = &report.timing {
        let created = subtask.creation_timestamp().map(|created| created.0);
        let queued = started
            .zip(created)
            .map(|(started, created)| milliseconds(started, created));
        let queued = old.timing.as_ref().and_then(|timing| timing.queued_ms).or(queued);
        let waited = key.waited.map_or(0, |waited| waited.as_millis());
        let waited = i64::try_from(waited).unwrap_or_default().max(0);
        // Never more than has passed: a message that was sent again had waited for the work itself, too.
        let most = started.map_or(i64::MAX, |started| milliseconds(now, started) - measured.run_ms);
        let start = (measured.start_ms + waited)
            .min(most)
            .max(measured.start_ms.max(0));
        let run = measured.run_ms.max(0);
        patch.add(
            "timing",
            Timing {
                queued_ms: queued,
                start_ms: Some(start),
                run_ms: Some(run),
            },
        );
    }
    if report.usage.is_some() || report.agent.is_some() {
        let mut usage = spent(old.usage.as_ref(), report.agent.as_ref());
        if let Some(used) = &report.usage {
            usage.peak_memory = Some(used.peak_memory_bytes);
            usage.cpu = Some(used.cpu_ms);
        }
        patch.add("usage", usage);
    }
    if let Some(isolation) = report.isolation.filter(|_| old.sandbox.is_some()) {
        patch.add("sandbox/isolation", isolation);
    }
    if let Some(empty) = report.process_tree_empty.filter(|_| old.sandbox.is_some()) {
        patch.add("sandbox/processTreeEmpty", empty);
    }
}

/// What an agent has used through all its attempts. One that lost its memory of earlier ones tells less than is known.
fn spent(old: Option<&SubTaskUsage>, agent: Option<&AgentFacts>) -> SubTaskUsage {
    let mut usage = old.cloned().unwrap_or_default();
    let Some(agent) = agent else { return usage };
    for (role, tokens) in &agent.spent.tokens {
        // A role that is none would make the object invalid, and with it the whole result.
        if role::named(role).is_none() {
            continue;
        }
        let tokens = i64::try_from(*tokens).unwrap_or(i64::MAX);
        let known = usage.tokens_by_role.entry(role.clone()).or_default();
        *known = tokens.max(*known);
    }
    let total = usage
        .tokens_by_role
        .values()
        .fold(0_i64, |sum, tokens| sum.saturating_add(*tokens));
    usage.tokens = Some(total);
    let before = usage.cost.as_deref().and_then(money::parse).unwrap_or_default();
    let cost = agent.spent.cost_micros.max(before);
    usage.cost = (cost > 0).then(|| money::written(cost));
    usage
}

/// Within the bounds of the schema, whatever a runtime sends.
fn bounded_review(review: &agent::Review) -> Review {
    let notes = review.notes.iter().take(agent::Review::MAX_NOTES);
    Review {
        accepted: review.accepted,
        notes: notes
            .map(|note| one_line(note, agent::Review::MAX_NOTE))
            .collect(),
    }
}

fn stop_reason(reason: agent::StopReason) -> StopReason {
    match reason {
        agent::StopReason::TokenCapped => StopReason::TokenCapped,
        agent::StopReason::TurnCapped => StopReason::TurnCapped,
        agent::StopReason::LoopCapped => StopReason::LoopCapped,
    }
}

fn milliseconds(later: Timestamp, earlier: Timestamp) -> i64 {
    i64::try_from(later.duration_since(earlier).as_millis())
        .unwrap_or_default()
        .max(0)
}

fn settled(
    patch: &mut Patch,
    subtask: &SubTask,
    place: usize,
    report: &Report,
    verdict: Verdict,
    now: Timestamp,
) {
    let mut attempts = subtask
        .status
        .as_ref()
        .map(|status| status.attempts.clone())
        .unwrap_or_default();
    if let Some(attempt) = attempts.get_mut(place) {
        attempt.outcome = report.outcome;
        attempt.reason.clone_from(&report.reason);
        attempt.finished = Some(MicroTime(now));
    }
    let uid = subtask.uid().unwrap_or_default();
    match settle(&subtask.spec, &uid, &attempts, verdict, Stop::None, now) {
        Some(Settlement::Final { outcome, reason }) => {
            patch.add("outcome", outcome);
            patch.add("reason", reason);
            patch.add("phase", SubTaskPhase::Finished);
        }
        Some(Settlement::Retry { next_attempt_time }) => {
            patch.add("nextAttemptTime", MicroTime(next_attempt_time));
            patch.add("phase", SubTaskPhase::Pending);
        }
        None => {}
    }
}

/// A JSON Patch on the status.
struct Patch {
    operations: Vec<Value>,
}

impl Patch {
    /// Begins with the test that makes the write conditional on what was read.
    fn new(subtask: &SubTask) -> Self {
        let version = subtask.resource_version().unwrap_or_default();
        Self {
            operations: vec![json!({"op": "test", "path": "/metadata/resourceVersion", "value": version})],
        }
    }

    fn add(&mut self, path: &str, value: impl Serialize) {
        self.operations
            .push(json!({"op": "add", "path": format!("/status/{path}"), "value": json!(value)}));
    }

    /// Adds, or removes what is there and shall not be any more.
    fn set(&mut self, path: &str, value: Option<impl Serialize>, is_there: bool) {
        match value {
            Some(value) => self.add(path, value),
            None if is_there => {
                self.operations
                    .push(json!({"op": "remove", "path": format!("/status/{path}")}));
            }
            None => {}
        }
    }

    /// The write, unless nothing but the test is in it.
    fn finish(self) -> Plan {
        match self.operations.len() {
            1 => Plan::Drop("there is nothing to store"),
            _ => Plan::Write(Value::Array(self.operations)),
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
