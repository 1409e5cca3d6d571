//! Stores what a Pod has found in a skill that is a mount. It is believed only if the Skill's status, which the operator
//! writes, names this Pod.

use crate::auth::PodIdentity;
use crate::backoff::Backoff;
use crate::board::Name;
use crate::bounds;
use crate::ends::Stored;
use crate::gateway::Gateway;
use crate::text::chain;
use agentrun_api::names::conditions::READY;
use agentrun_api::{ReadyReason, Skill, SkillFunction, SkillStatus};
use agentrun_core::conditions::{self, Is};
use agentrun_protocol::inspection::SkillFound;
use agentrun_protocol::work::AttemptId;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

/// What is to be done with a report.
#[derive(Debug, PartialEq)]
enum Plan {
    /// It is of no interest: the reason.
    Drop(&'static str),
    /// The operator has not written yet which Pod may report, or the watch has not shown it.
    Wait,
    /// This JSON Patch.
    Write(Value),
}

/// Stores a report; gives up after [`bounds::REFERENCE`], and the Pod reports again.
pub(crate) async fn store(gateway: &Gateway, pod: &PodIdentity, id: &AttemptId, found: SkillFound) -> Stored {
    let give_up = Instant::now() + bounds::REFERENCE;
    let mut backoff = Backoff::new(bounds::STORE_PAUSE);
    while Instant::now() < give_up {
        let skill = gateway.board().skill_by_uid(&id.uid);
        let (Some(skill), plan) = (
            skill.as_deref(),
            plan(skill.as_deref(), pod, id, &found, Timestamp::now()),
        ) else {
            backoff.pause().await;
            continue;
        };
        let patch = match plan {
            Plan::Drop(cause) => {
                tracing::warn!(skill_uid = id.uid, cause, "report of a skill dropped");
                return Stored::Dropped;
            }
            Plan::Wait => {
                backoff.pause().await;
                continue;
            }
            Plan::Write(patch) => patch,
        };
        match gateway.objects.patch_skill(&Name::of(skill), patch).await {
            Ok(()) => return Stored::Written,
            Err(error) => {
                tracing::info!(
                    error = chain(&error),
                    "a Skill could not be written, trying again"
                );
                backoff.pause().await;
            }
        }
    }
    tracing::warn!(skill_uid = id.uid, "the report of a skill could not be stored");
    Stored::GivenUp
}

fn plan(
    skill: Option<&Skill>,
    pod: &PodIdentity,
    id: &AttemptId,
    found: &SkillFound,
    now: Timestamp,
) -> Plan {
    let Some(skill) = skill else { return Plan::Wait };
    if skill.metadata.namespace.as_deref() != Some(&pod.namespace) {
        return Plan::Drop("the Pod is of another namespace");
    }
    let generation = skill.metadata.generation;
    if generation > Some(i64::from(id.attempt)) {
        return Plan::Drop("the Skill has changed");
    }
    let status = skill.status.clone().unwrap_or_default();
    let named = status.inspection.as_ref().map(|inspection| &inspection.pod_uid);
    if generation != Some(i64::from(id.attempt)) || named != Some(&pod.uid) {
        return Plan::Wait;
    }
    let version = skill.metadata.resource_version.clone().unwrap_or_default();
    Plan::Write(json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "add", "path": "/status", "value": after(status, generation, found, now)},
    ]))
}

fn after(status: SkillStatus, generation: Option<i64>, found: &SkillFound, now: Timestamp) -> SkillStatus {
    let mut next = SkillStatus {
        observed_generation: generation,
        conditions: status.conditions,
        ..SkillStatus::default()
    };
    let mut ready = |is, reason: ReadyReason, message: &str| {
        let reason = reason.as_str();
        conditions::set(&mut next.conditions, READY, is, reason, message, generation, now);
    };
    let (name, description, triggers, allowed_tools, functions, digest) = match found {
        SkillFound::Invalid { message } => {
            ready(Is::False, ReadyReason::Invalid, message);
            return next;
        }
        SkillFound::Valid {
            name,
            description,
            triggers,
            allowed_tools,
            functions,
            digest,
        } => (name, description, triggers, allowed_tools, functions, digest),
    };
    let functions: Result<Vec<SkillFunction>, _> =
        functions.iter().cloned().map(serde_json::from_value).collect();
    match functions {
        Ok(functions) => {
            ready(Is::True, ReadyReason::Ready, "");
            next.name = Some(name.clone());
            next.description = Some(description.clone());
            next.triggers.clone_from(triggers);
            next.allowed_tools.clone_from(allowed_tools);
            next.functions = functions;
            next.digest = Some(digest.clone());
        }
        Err(error) => ready(
            Is::False,
            ReadyReason::Invalid,
            &format!("the functions cannot be read: {error}"),
        ),
    }
    next
}

#[cfg(test)]
#[path = "inspection_tests.rs"]
mod tests;
