//! Admission: everything that the spec names is there. What it was is written down once, so that the run keeps to
//! it: the skills' digests, the files' digests, start and deadline.

use super::dereference::Admission;
use super::draft::Draft;
use crate::world::World;
use agentrun_api::names::conditions as kind;
use agentrun_api::{AdmittedReason, AgentRun, AgentRunStatus, Provenance, RunPhase, SkillDigest};
use agentrun_core::conditions::{self, Is};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use std::time::Duration;

/// Whether a run was admitted.
pub(super) fn is_admitted(status: &AgentRunStatus) -> bool {
    conditions::is_true(&status.conditions, kind::ADMITTED)
}

/// The first thing that is missing.
pub(super) fn waits_for(facts: &Admission) -> Option<(AdmittedReason, String)> {
    facts.missing.first().cloned()
}

/// Writes the admission into the draft.
pub(super) fn admit(draft: &mut Draft, run: &AgentRun, facts: &Admission, world: &World) {
    let now = draft.now;
    draft.condition(kind::ADMITTED, Is::True, AdmittedReason::Valid.as_str(), "");
    let timeout = run
        .spec
        .limits
        .as_ref()
        .and_then(|limits| limits.timeout.as_ref());
    let timeout: Option<Duration> = timeout.and_then(|text| text.parse().ok());
    draft.status.start_time = Some(MicroTime(now));
    draft.status.deadline = timeout.map(|timeout| Time(now + timeout));
    draft.status.files.clone_from(&facts.files);
    draft.status.phase = Some(RunPhase::Running);
    draft.status.waiting_for = None;
    draft.status.reason = None;
    let skills = facts.skills.iter().map(|(name, digest)| SkillDigest {
        name: name.clone(),
        digest: digest.clone(),
    });
    draft.status.provenance = Some(Provenance {
        skills: skills.collect(),
        models: facts.models.clone(),
        runtime_digest: world
            .installation()
            .ok()
            .map(|known| known.platform.runtime_digest.clone()),
        operator_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        ..Provenance::default()
    });
}
