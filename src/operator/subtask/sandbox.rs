//! Makes the sandbox of an attempt: account and policy first, then the Pod.

use super::dereference::Facts;
use crate::error::{ReconcileError, already_exists, exceeded_quota, is_refused, is_terminating};
use crate::pods::template::{FunctionNeeds, Layers, ResolvedSandbox, pool_name, resolve};
use crate::pods::{Claim, FileClaim, PodInput, Skill, SkillSource, Timeouts, build_pod};
use crate::world::World;
use crate::{fixtures, run};
use agentrun_api::names::{labels, paths};
use agentrun_api::{AgentRun, Resources, SubTask};
use agentrun_core::names;
use agentrun_core::plan::rerun;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::PostParams;
use kube::{Api, ResourceExt as _};

/// What became of the wish for a Pod.
pub(super) enum Made {
    /// It is there and ours.
    Pod(Box<Pod>),
    /// It cannot be made now, for this reason; another try may go through.
    Waits(String),
    /// It can never be made.
    Refused(String),
}

/// Makes the Pod of an attempt, or finds the one that was made before a crash.
pub(super) async fn make(world: &World, facts: &Facts, attempt: i32) -> Result<Made, ReconcileError> {
    let Some(run) = &facts.run else {
        return Err(ReconcileError::Gone);
    };
    let subtask = &facts.subtask;
    let namespace = subtask.namespace().unwrap_or_default();
    let resolved = match resolved(world, subtask, &namespace) {
        Ok(resolved) => resolved,
        Err(why) => return Ok(why),
    };
    let skills = match skills(world, subtask, &namespace) {
        Ok(skills) => skills,
        Err(why) => return Ok(Made::Waits(why)),
    };
    let installation = world.installation()?;
    if let Err(error) = fixtures::ensure(world, &namespace, &resolved.egress).await? {
        return Ok(Made::Refused(error));
    }
    let Some(claim) = claim(world, run, &namespace).await? else {
        let name = run
            .status
            .as_ref()
            .and_then(|status| status.claim_name.clone())
            .unwrap_or_default();
        return Ok(Made::Waits(format!(
            "VolumeSetupFailed: claim {name} does not exist"
        )));
    };
    let (user, thread) = run::owner_of_data(run);
    let input = PodInput {
        name: names::pod_name(&subtask.name_any(), u32::try_from(attempt).unwrap_or_default()),
        namespace: namespace.clone(),
        run_name: run.name_any(),
        run_uid: run.uid().unwrap_or_default(),
        subtask_name: subtask.name_any(),
        subtask_uid: subtask.uid().unwrap_or_default(),
        attempt,
        claim,
        folder: paths::thread_folder(&user, &thread),
        sandbox: &resolved,
        skills,
        file_claims: file_claims(world, run, &namespace),
        read_only: rerun::is_rerun(subtask),
        timeouts: Timeouts {
            start: facts.start_timeout,
            attempt: facts.timeout,
        },
        platform: &installation.platform,
    };
    create(world, &namespace, build_pod(&input), &input).await
}

async fn create(
    world: &World,
    namespace: &str,
    pod: Pod,
    input: &PodInput<'_>,
) -> Result<Made, ReconcileError> {
    let api: Api<Pod> = Api::namespaced(world.operator.client.clone(), namespace);
    match api.create(&PostParams::default(), &pod).await {
        Ok(pod) => {
            world.pods.wrote(pod.clone());
            Ok(Made::Pod(Box::new(pod)))
        }
        Err(error) if already_exists(&error) => {
            let there = api.get_opt(&input.name).await?.ok_or(ReconcileError::Conflict)?;
            if !is_ours(&there, input) {
                let taken = ReconcileError::NameTaken {
                    kind: "Pod",
                    name: input.name.clone(),
                };
                return Ok(Made::Waits(taken.to_string()));
            }
            world.pods.wrote(there.clone());
            Ok(Made::Pod(Box::new(there)))
        }
        Err(error) if is_terminating(&error) => Err(ReconcileError::Gone),
        Err(error) => match (exceeded_quota(&error), is_refused(&error)) {
            (Some(message), _) => Ok(Made::Waits(format!("QuotaExceeded: {message}"))),
            (None, Some(message)) if message.contains("serviceaccount") => {
                world.memory.forget(namespace);
                Ok(Made::Waits(message))
            }
            (None, Some(message)) => Ok(Made::Refused(message)),
            (None, None) => Err(error.into()),
        },
    }
}

/// Both the controller owner and the sub-task must match: a Pod that a user made under this name is not ours.
fn is_ours(pod: &Pod, input: &PodInput<'_>) -> bool {
    let owned = pod
        .owner_references()
        .iter()
        .any(|owner| owner.uid == input.run_uid && owner.controller == Some(true));
    owned && pod.labels().get(labels::MADE_FOR) == Some(&input.subtask_uid)
}

fn resolved(world: &World, subtask: &SubTask, namespace: &str) -> Result<ResolvedSandbox, Made> {
    let spec = &subtask.spec;
    let function = spec.function.as_ref();
    let memory = spec
        .resources
        .as_ref()
        .and_then(|resources| resources.memory.as_ref());
    // A function's memory is the bound of its process; its container must hold the executor and /tmp besides.
    let cpu_only = Resources {
        memory: None,
        cpu: spec
            .resources
            .as_ref()
            .and_then(|resources| resources.cpu.clone()),
    };
    let needs = function.map(|_| FunctionNeeds {
        image: None,
        memory_bytes: memory.and_then(|memory| memory.bytes().ok()).unwrap_or_default(),
    });
    let mut layers = Layers {
        resources: if function.is_some() {
            Some(&cpu_only)
        } else {
            spec.resources.as_ref()
        },
        task: spec.sandbox.as_ref(),
        function: needs,
        default_image: &world.operator.settings.default_image,
        ..Layers::default()
    };
    let pool = match pool_name(&layers) {
        None => None,
        Some(name) => match world.pools.get(namespace, name) {
            Some(pool) => Some(pool),
            None => {
                return Err(Made::Waits(format!(
                    "PoolNotFound: SandboxPool {name} does not exist"
                )));
            }
        },
    };
    layers.pool = pool.as_ref().map(|pool| &pool.spec.template);
    resolve(&layers).map_err(|error| Made::Refused(error.to_string()))
}

/// The skills that a sub-task's sandbox sees.
fn skills(world: &World, subtask: &SubTask, namespace: &str) -> Result<Vec<Skill>, String> {
    let parent = subtask.spec.parent_ref.as_ref();
    let parent = parent.and_then(|parent| world.subtasks.get(namespace, &parent.name));
    let names = rerun::skills(subtask, parent.as_deref());
    let found = names.into_iter().map(|name| skill(world, name, namespace));
    found.collect()
}

fn skill(world: &World, name: &str, namespace: &str) -> Result<Skill, String> {
    let Some(skill) = world.skills.get(namespace, name) else {
        return Err(format!("SkillNotFound: Skill {name} does not exist"));
    };
    let source = match (&skill.spec.image, &skill.spec.claim) {
        (Some(reference), _) => SkillSource::Image {
            reference: reference.clone(),
        },
        (None, Some(claim)) => SkillSource::Claim {
            claim: claim.name.clone(),
            sub_path: claim.path.clone().unwrap_or_default(),
        },
        (None, None) => SkillSource::Channel,
    };
    Ok(Skill {
        name: name.to_owned(),
        source,
    })
}

/// The claims that the run's files are copied from. A run that is gone is left out: what was copied before is enough,
/// and the runtime names what was not.
fn file_claims(world: &World, run: &AgentRun, namespace: &str) -> Vec<FileClaim> {
    let mut claims: Vec<FileClaim> = Vec::new();
    for file in &run.spec.files {
        let Some(name) = names::source_folder(file) else {
            continue;
        };
        let place = match (&file.from, &file.claim) {
            (Some(from), _) => world.runs.get(namespace, &from.run).and_then(|other| {
                let claim = other.status.as_ref()?.claim_name.clone()?;
                let (user, thread) = run::owner_of_data(&other);
                Some((claim, paths::outputs_folder(&user, &thread)))
            }),
            (None, claim) => claim.as_ref().map(|claim| (claim.name.clone(), String::new())),
        };
        if let Some((claim, sub_path)) = place.filter(|_| claims.iter().all(|known| known.name != name)) {
            claims.push(FileClaim {
                name,
                claim,
                sub_path,
            });
        }
    }
    claims
}

/// The run's claim, from the cache if it is ours, else from the API server.
async fn claim(world: &World, run: &AgentRun, namespace: &str) -> Result<Option<Claim>, ReconcileError> {
    let Some(name) = run.status.as_ref().and_then(|status| status.claim_name.clone()) else {
        return Ok(None);
    };
    let claim = if let Some(claim) = world.claims.get(namespace, &name) {
        (*claim).clone()
    } else {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(world.operator.client.clone(), namespace);
        match api.get_opt(&name).await? {
            Some(claim) => claim,
            None => return Ok(None),
        }
    };
    if claim.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    let spec = claim.spec.clone().unwrap_or_default();
    let modes = spec.access_modes.unwrap_or_default();
    Ok(Some(Claim {
        uid: claim.uid().unwrap_or_default(),
        name,
        rwx: modes.iter().any(|mode| mode == "ReadWriteMany"),
        class: spec.storage_class_name.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::build_pod;
    use crate::pods::fixtures::{input, platform, sandbox};

    // F111
    #[test]
    fn labels_alone_make_no_pod_ours() {
        let (sandbox, platform) = (sandbox(), platform(crate::pods::Injection::Image));
        let input = input(&sandbox, &platform);
        let pod = build_pod(&input);
        assert!(is_ours(&pod, &input));
        let mut forged = pod.clone();
        forged.metadata.owner_references = None;
        assert!(
            !is_ours(&forged, &input),
            "the labels are there, the owner is not"
        );
        let mut adopted = pod.clone();
        for owner in adopted.metadata.owner_references.iter_mut().flatten() {
            owner.controller = Some(false);
        }
        assert!(!is_ours(&adopted, &input));
        let mut other = pod;
        other.labels_mut().remove(labels::MADE_FOR);
        assert!(!is_ours(&other, &input));
    }
}
