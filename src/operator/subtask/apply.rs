//! Carries a sub-task's plan out, action by action. Each write lays its answer over the cache, so that the next
//! one starts from it; the first that fails ends the round.

use super::dereference::Facts;
use super::sandbox::{self, Made};
use crate::error::ReconcileError;
use crate::events::EventReason;
use crate::world::World;
use crate::write;
use agentrun_api::names::labels;
use agentrun_api::{Attempt, Outcome, SandboxStatus, SubTask, SubTaskReason, SubTaskStatus, Verdict};
use agentrun_core::acceptance::{self, Standing};
use agentrun_core::plan::subtask::{Action, Decided, SubTaskPlan, phase_of};
use agentrun_core::settle::Settlement;
use agentrun_core::text::cut;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource as _, ResourceExt as _};
use std::time::Duration;

/// Characters of a message in a status.
const MAX_MESSAGE: usize = 1000;

/// Why every attempt starts a Pod of its own in this version.
const COLD_REASON: &str = "NoReuseYet";

/// Seconds that a Pod gets to end when we delete it.
const DELETE_GRACE: u32 = 5;

/// The object that is written, with what the API server answered last.
struct Writer<'a> {
    world: &'a World,
    api: Api<SubTask>,
    subtask: SubTask,
    now: Timestamp,
}

/// Does what the plan says.
pub(super) async fn apply(
    world: &World,
    facts: &Facts,
    plan: &SubTaskPlan,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    let namespace = facts.subtask.namespace().unwrap_or_default();
    let api = Api::namespaced(world.operator.client.clone(), &namespace);
    let mut writer = Writer {
        world,
        api,
        subtask: (*facts.subtask).clone(),
        now,
    };
    let mut waiting = plan.waiting_for.clone();
    for action in &plan.actions {
        if let Some(waits) = writer.act(facts, action).await? {
            waiting = Some(waits);
        }
    }
    writer.waiting(waiting).await
}

impl Writer<'_> {
    /// Does one thing. `Some` says what has to be waited for.
    async fn act(&mut self, facts: &Facts, action: &Action) -> Result<Option<String>, ReconcileError> {
        match action {
            Action::TakeLease => self.take_lease().await?,
            Action::ReleaseLease => self.release_lease().await?,
            Action::StartPod { attempt } => return self.start(facts, *attempt).await,
            Action::Assign {
                attempt,
                pod_name,
                pod_uid,
            } => self.assign(*attempt, pod_name, pod_uid).await?,
            Action::NoteEnding {
                attempt,
                reason,
                message,
            } => self.note(*attempt, *reason, message).await?,
            Action::DeletePod { name, uid } => self.delete_pod(name, uid).await?,
            Action::EndAttempt {
                attempt,
                outcome,
                reason,
                message,
                settlement,
            } => {
                self.end(*attempt, *outcome, reason, message, settlement).await?;
            }
            Action::Settle { verdicts, settlement } => self.settle(verdicts, settlement).await?,
            Action::Finish(decided) => self.finish(decided).await?,
        }
        Ok(None)
    }

    async fn take_lease(&mut self) -> Result<(), ReconcileError> {
        let mut finalizers = self.subtask.finalizers().to_vec();
        finalizers.push(labels::LEASE.to_owned());
        self.wrote(write::finalizers(&self.api, &self.subtask, &finalizers).await?);
        Ok(())
    }

    async fn release_lease(&mut self) -> Result<(), ReconcileError> {
        let finalizers: Vec<_> = self
            .subtask
            .finalizers()
            .iter()
            .filter(|finalizer| *finalizer != labels::LEASE)
            .cloned()
            .collect();
        let written = write::finalizers(&self.api, &self.subtask, &finalizers).await?;
        self.count();
        self.wrote(written);
        Ok(())
    }

    async fn start(&mut self, facts: &Facts, attempt: i32) -> Result<Option<String>, ReconcileError> {
        match sandbox::make(self.world, facts, attempt).await? {
            Made::Waits(why) => Ok(Some(why)),
            Made::Refused(message) => {
                let decided = Decided {
                    outcome: Outcome::Error,
                    reason: SubTaskReason::Rejected,
                    message,
                };
                self.finish(&decided).await.map(|()| None)
            }
            Made::Pod(pod) if pod.metadata.deletion_timestamp.is_some() => Ok(Some(format!(
                "Pod {} of this attempt is being deleted",
                pod.name_any()
            ))),
            Made::Pod(pod) => {
                self.assign(attempt, &pod.name_any(), &pod.uid().unwrap_or_default())
                    .await?;
                Ok(None)
            }
        }
    }

    async fn assign(&mut self, attempt: i32, pod_name: &str, pod_uid: &str) -> Result<(), ReconcileError> {
        let now = MicroTime(self.now);
        self.write(|status| {
            status.sandbox = Some(SandboxStatus {
                pod_name: Some(pod_name.to_owned()),
                pod_uid: Some(pod_uid.to_owned()),
                warm: Some(false),
                cold_reason: Some(COLD_REASON.to_owned()),
                ..SandboxStatus::default()
            });
            status.attempts.push(Attempt {
                number: attempt,
                pod_name: Some(pod_name.to_owned()),
                pod_uid: Some(pod_uid.to_owned()),
                started: Some(now),
                ..Attempt::default()
            });
            status.attempt = Some(attempt);
            status.next_attempt_time = None;
            status.waiting_for = None;
            status.reason = None;
            status.message = None;
        })
        .await
    }

    async fn note(
        &mut self,
        attempt: i32,
        reason: SubTaskReason,
        message: &str,
    ) -> Result<(), ReconcileError> {
        self.write(|status| {
            for known in status.attempts.iter_mut().filter(|known| known.number == attempt) {
                known.reason = Some(reason.into());
            }
            status.message = Some(cut(message, MAX_MESSAGE));
        })
        .await
    }

    async fn delete_pod(&mut self, name: &str, uid: &str) -> Result<(), ReconcileError> {
        let namespace = self.subtask.namespace().unwrap_or_default();
        let api: Api<Pod> = Api::namespaced(self.world.operator.client.clone(), &namespace);
        let preconditions = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let params = DeleteParams {
            grace_period_seconds: Some(DELETE_GRACE),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match api.delete(name, &params).await.map_err(ReconcileError::from) {
            Ok(answer) => {
                if let Some(pod) = answer.left() {
                    self.world.pods.is_going(pod);
                }
                Ok(())
            }
            // Already gone counts as released.
            Err(ReconcileError::Gone) => {
                self.world.pods.is_gone(&namespace, name);
                Ok(())
            }
            // Another UID under this name is not ours to delete; whether it is another, the Pod itself says.
            Err(ReconcileError::Conflict) => match api.get_opt(name).await? {
                Some(pod) if pod.uid().as_deref() == Some(uid) => Err(ReconcileError::Conflict),
                _ => {
                    self.world.pods.is_gone(&namespace, name);
                    Ok(())
                }
            },
            Err(error) => Err(error),
        }
    }

    async fn end(
        &mut self,
        attempt: i32,
        outcome: Outcome,
        reason: &str,
        message: &str,
        settlement: &Settlement,
    ) -> Result<(), ReconcileError> {
        let now = MicroTime(self.now);
        let unchecked = self.unchecked();
        self.write(|status| {
            unchecked(status);
            for known in status.attempts.iter_mut().filter(|known| known.number == attempt) {
                known.outcome = Some(outcome);
                known.reason = Some(reason.to_owned());
                known.finished = Some(now.clone());
            }
            status.message = Some(cut(message, MAX_MESSAGE)).filter(|message| !message.is_empty());
            follow(status, settlement);
        })
        .await?;
        let (event, word) = match settlement {
            Settlement::Final {
                outcome: Outcome::Cancelled,
                ..
            } => (EventReason::Cancelled, "cancelled"),
            Settlement::Final { .. } => (EventReason::Failed, "failed"),
            Settlement::Retry { .. } => (EventReason::Retrying, "to be tried again"),
        };
        self.publish(event, &format!("attempt {attempt} {word}: {reason}: {message}"))
            .await;
        Ok(())
    }

    async fn settle(&mut self, verdicts: &[Verdict], settlement: &Settlement) -> Result<(), ReconcileError> {
        let (generation, now) = (self.subtask.metadata.generation, self.now);
        let standing = acceptance::standing(verdicts);
        self.write(|status| {
            status.acceptance = verdicts.to_vec();
            standing.show(&mut status.conditions, generation, now);
            follow(status, settlement);
        })
        .await?;
        if matches!(settlement, Settlement::Retry { .. }) {
            let note = format!("not accepted, to be tried again: {}", standing.message);
            self.publish(EventReason::Retrying, &note).await;
        }
        Ok(())
    }

    async fn finish(&mut self, decided: &Decided) -> Result<(), ReconcileError> {
        let unchecked = self.unchecked();
        self.write(|status| {
            unchecked(status);
            status.outcome = Some(decided.outcome);
            status.reason = Some(decided.reason.into());
            status.message = Some(cut(&decided.message, MAX_MESSAGE)).filter(|message| !message.is_empty());
            status.waiting_for = None;
            status.next_attempt_time = None;
        })
        .await?;
        if decided.reason == SubTaskReason::QuotaExceeded {
            self.publish(EventReason::DelegationRefused, &decided.message)
                .await;
        }
        if decided.outcome == Outcome::Error {
            self.publish(
                EventReason::Failed,
                &format!("{}: {}", decided.reason, decided.message),
            )
            .await;
        }
        Ok(())
    }

    /// An end that did not come over the channel leaves nothing that criteria could be checked on.
    fn unchecked(&self) -> impl FnOnce(&mut SubTaskStatus) + use<> {
        let (generation, now) = (self.subtask.metadata.generation, self.now);
        let has_criteria = !self.subtask.spec.acceptance.is_empty();
        move |status| {
            status.acceptance.clear();
            if has_criteria {
                Standing::not_checked().show(&mut status.conditions, generation, now);
            }
        }
    }

    /// Says what is waited for, if that has changed.
    async fn waiting(&mut self, waiting: Option<String>) -> Result<(), ReconcileError> {
        let waiting = waiting.map(|text| cut(&text, MAX_MESSAGE));
        let known = self
            .subtask
            .status
            .as_ref()
            .and_then(|status| status.waiting_for.clone());
        if known == waiting || self.subtask.metadata.deletion_timestamp.is_some() && waiting.is_none() {
            return Ok(());
        }
        self.write(|status| status.waiting_for = waiting).await
    }

    async fn write(&mut self, change: impl FnOnce(&mut SubTaskStatus)) -> Result<(), ReconcileError> {
        let before = self.subtask.status.clone().unwrap_or_default();
        let mut status = before.clone();
        change(&mut status);
        status.phase = Some(phase_of(&status));
        status.observed_generation = self.subtask.metadata.generation;
        if status == before {
            return Ok(());
        }
        self.wrote(write::status(&self.api, &self.subtask, &status).await?);
        Ok(())
    }

    /// Counts an end, once: when the lease of the sub-task goes.
    fn count(&self) {
        let Some((outcome, status)) = self
            .subtask
            .status
            .as_ref()
            .and_then(|status| Some((status.outcome?, status)))
        else {
            return;
        };
        let metrics = &self.world.operator.metrics;
        let created = self
            .subtask
            .metadata
            .creation_timestamp
            .as_ref()
            .map_or(self.now, |time| time.0);
        let ended = status
            .attempts
            .iter()
            .filter_map(|attempt| attempt.finished.as_ref())
            .map(|time| time.0)
            .max();
        let took = ended
            .unwrap_or(self.now)
            .duration_since(created)
            .try_into()
            .unwrap_or_default();
        metrics.subtask_finished(self.subtask.spec.role.as_str(), outcome.as_str(), took);
        if let Some(start) = status.timing.as_ref().and_then(|timing| timing.start_ms) {
            metrics.sandbox_started(
                "cold",
                Duration::from_millis(u64::try_from(start).unwrap_or_default()),
            );
        }
        if !matches!(outcome, Outcome::Success | Outcome::Skipped) {
            let skill = self
                .subtask
                .spec
                .function
                .as_ref()
                .map_or("", |function| function.skill.as_str());
            metrics.subtask_failed(skill, status.reason.as_deref().unwrap_or_default());
        }
    }

    fn wrote(&mut self, subtask: SubTask) {
        self.world.subtasks.wrote(subtask.clone());
        self.subtask = subtask;
    }

    async fn publish(&self, reason: EventReason, note: &str) {
        self.world
            .operator
            .events
            .publish(&self.subtask.object_ref(&()), reason, "Reconcile", note)
            .await;
    }
}

/// Writes what follows the end of an attempt.
fn follow(status: &mut SubTaskStatus, settlement: &Settlement) {
    status.waiting_for = None;
    match settlement {
        Settlement::Final { outcome, reason } => {
            status.outcome = Some(*outcome);
            status.reason = Some(reason.clone());
        }
        Settlement::Retry { next_attempt_time } => {
            status.next_attempt_time = Some(MicroTime(*next_attempt_time));
        }
    }
}
