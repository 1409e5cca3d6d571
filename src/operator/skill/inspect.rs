//! A skill that is a mount is read by one Pod; what follows is decided by `agentrun_core::skill::inspect`.

use super::condition;
use crate::error::{ReconcileError, already_exists, exceeded_quota, is_refused, is_terminating};
use crate::pods::{SkillSource, Subject, inspection_pod, read_inspection};
use crate::world::World;
use crate::{fixtures, write};
use agentrun_api::names::conditions::READY;
use agentrun_api::{ReadyReason, Skill, SkillInspection, SkillStatus};
use agentrun_core::conditions::{self, Is};
use agentrun_core::skill::inspect::{Failure, Step, step};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use std::time::Duration;

/// How long until what is missing is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Where the files of a skill that is a mount are.
pub(super) fn source(skill: &Skill) -> Option<SkillSource> {
    if let Some(reference) = skill.spec.image.clone() {
        return Some(SkillSource::Image { reference });
    }
    skill.spec.claim.as_ref().map(|claim| SkillSource::Claim {
        claim: claim.name.clone(),
        sub_path: claim.path.clone().unwrap_or_default(),
    })
}

/// One round.
pub(super) async fn reconcile(
    world: &World,
    skill: &Skill,
    source: SkillSource,
) -> Result<Action, ReconcileError> {
    let (namespace, name, uid) = (
        skill.namespace().unwrap_or_default(),
        skill.name_any(),
        skill.uid().unwrap_or_default(),
    );
    let now = world.now();
    let subject = Subject {
        namespace: &namespace,
        name: &name,
        uid: &uid,
        generation: skill.metadata.generation.unwrap_or_default(),
        source,
    };
    let pods: Vec<_> = world
        .pods
        .under(&uid)
        .iter()
        .map(|pod| read_inspection(pod, now))
        .collect();
    let status = skill.status.clone().unwrap_or_default();
    match step(
        skill.metadata.generation,
        &status,
        &subject.pod_name(),
        &pods,
        now,
    ) {
        Step::Settled { delete } => {
            for name in &delete {
                self::delete(world, &namespace, name).await?;
            }
            Ok(Action::await_change())
        }
        Step::Delete(name) => {
            delete(world, &namespace, &name).await?;
            Ok(Action::requeue(Duration::from_secs(1)))
        }
        Step::Wait => Ok(Action::requeue(LOOK_AGAIN)),
        Step::Announce(inspection) => {
            let told = being_read(skill, &status);
            write_pending(world, skill, status, Some(inspection), &told, now).await?;
            Ok(Action::requeue(LOOK_AGAIN))
        }
        Step::Failed { failure, again } => {
            // The Pod may still start, so it stays the one that is believed.
            let inspection = status.inspection.clone();
            write_pending(world, skill, status, inspection, &failure, now).await?;
            let pause = Duration::try_from(again.duration_since(now)).unwrap_or_default();
            Ok(Action::requeue(pause.max(Duration::from_secs(1))))
        }
        Step::Create => match create(world, &subject).await? {
            Ok(pod) => {
                let inspection = SkillInspection {
                    pod_name: pod.name_any(),
                    pod_uid: pod.uid().unwrap_or_default(),
                };
                let told = being_read(skill, &status);
                write_pending(world, skill, status, Some(inspection), &told, now).await?;
                Ok(Action::requeue(LOOK_AGAIN))
            }
            Err(failure) => {
                write_pending(world, skill, status, None, &failure, now).await?;
                Ok(Action::requeue(LOOK_AGAIN))
            }
        },
    }
}

/// While another try goes on, the image that could not be pulled stays named.
fn being_read(skill: &Skill, status: &SkillStatus) -> Failure {
    let ready = conditions::get(&status.conditions, READY);
    let pull = ready.filter(|ready| {
        let current = status.observed_generation == skill.metadata.generation;
        current && ready.reason == ReadyReason::ImagePullFailed.as_str()
    });
    match pull {
        Some(ready) => Failure {
            reason: ReadyReason::ImagePullFailed,
            message: ready.message.clone(),
        },
        None => Failure {
            reason: ReadyReason::Pending,
            message: "its files are being read".to_owned(),
        },
    }
}

/// Nothing that was found in an older generation stays: a run must not start with it.
async fn write_pending(
    world: &World,
    skill: &Skill,
    before: SkillStatus,
    inspection: Option<SkillInspection>,
    failure: &Failure,
    now: Timestamp,
) -> Result<(), ReconcileError> {
    let mut status = SkillStatus {
        observed_generation: skill.metadata.generation,
        conditions: before.conditions,
        inspection,
        ..SkillStatus::default()
    };
    condition(
        &mut status,
        Is::False,
        failure.reason,
        &failure.message,
        skill.metadata.generation,
        now,
    );
    if Some(&status) != skill.status.as_ref() {
        let api: Api<Skill> = Api::namespaced(
            world.operator.client.clone(),
            &skill.namespace().unwrap_or_default(),
        );
        world.skills.wrote(write::status(&api, skill, &status).await?);
    }
    Ok(())
}

/// Makes the Pod, or says why it cannot be made now.
async fn create(world: &World, subject: &Subject<'_>) -> Result<Result<Pod, Failure>, ReconcileError> {
    let waits = |reason, message: String| Ok(Err(Failure { reason, message }));
    if let SkillSource::Claim { claim, .. } = &subject.source {
        let api: Api<PersistentVolumeClaim> =
            Api::namespaced(world.operator.client.clone(), subject.namespace);
        if api.get_opt(claim).await?.is_none() {
            let message = format!("PersistentVolumeClaim {claim} does not exist");
            return waits(ReadyReason::ClaimNotFound, message);
        }
    }
    let installation = world.installation()?;
    if let Err(message) = fixtures::ensure(world, subject.namespace, &[]).await? {
        return waits(ReadyReason::Pending, message);
    }
    let Some(pod) = inspection_pod(subject, &installation.platform) else {
        return Err(ReconcileError::Gone);
    };
    let api: Api<Pod> = Api::namespaced(world.operator.client.clone(), subject.namespace);
    let pod = match api.create(&PostParams::default(), &pod).await {
        Ok(pod) => pod,
        Err(error) if already_exists(&error) => {
            let name = subject.pod_name();
            let there = api.get_opt(&name).await?.ok_or(ReconcileError::Conflict)?;
            let owners = there.owner_references();
            if !owners
                .iter()
                .any(|owner| owner.uid == subject.uid && owner.controller == Some(true))
            {
                return Err(ReconcileError::NameTaken { kind: "Pod", name });
            }
            there
        }
        Err(error) if is_terminating(&error) => return Err(ReconcileError::Gone),
        Err(error) => {
            if let Some(message) = exceeded_quota(&error) {
                return waits(ReadyReason::Pending, format!("QuotaExceeded: {message}"));
            }
            let Some(message) = is_refused(&error) else {
                return Err(error.into());
            };
            if message.contains("serviceaccount") {
                world.memory.forget(subject.namespace);
            }
            return waits(ReadyReason::Pending, message);
        }
    };
    world.pods.wrote(pod.clone());
    Ok(Ok(pod))
}

async fn delete(world: &World, namespace: &str, name: &str) -> Result<(), ReconcileError> {
    let api: Api<Pod> = Api::namespaced(world.operator.client.clone(), namespace);
    match api
        .delete(name, &DeleteParams::default())
        .await
        .map_err(ReconcileError::from)
    {
        Ok(_) | Err(ReconcileError::Gone) => Ok(()),
        Err(error) => Err(error),
    }
}
