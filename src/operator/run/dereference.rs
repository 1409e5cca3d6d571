//! Reads what a run names, before it is admitted.

use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::names::conditions as kind;
use agentrun_api::{AdmittedReason, AgentRun, FileRef, FileSource, SandboxSpec, Skill};
use agentrun_core::{conditions, digest};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};

/// What a run names.
#[derive(Default)]
pub(super) struct Admission {
    /// What is not there, in the order of the spec.
    pub missing: Vec<(AdmittedReason, String)>,
    /// `files[]` with size and digest.
    pub files: Vec<FileRef>,
    /// Skills by name with their digest.
    pub skills: BTreeMap<String, String>,
}

/// Reads everything that the run names.
pub(super) async fn admission(world: &World, run: &AgentRun) -> Result<Admission, ReconcileError> {
    let namespace = run.namespace().unwrap_or_default();
    let mut found = Admission::default();
    skills(world, run, &namespace, &mut found);
    pools(world, run, &namespace, &mut found);
    for file in &run.spec.files {
        self::file(world, file, &namespace, &mut found).await?;
    }
    secrets(world, run, &namespace, &mut found).await?;
    Ok(found)
}

fn skills(world: &World, run: &AgentRun, namespace: &str, found: &mut Admission) {
    for function in run.spec.tasks.iter().filter_map(|task| task.function.as_ref()) {
        let Some(skill) = world.skills.get(namespace, &function.skill) else {
            found.missing.push((
                AdmittedReason::SkillNotFound,
                format!("Skill {} does not exist", function.skill),
            ));
            continue;
        };
        let digest = skill.status.as_ref().and_then(|status| status.digest.clone());
        let (Some(digest), true) = (digest, is_ready(&skill)) else {
            found
                .missing
                .push((AdmittedReason::SkillNotReady, not_ready(&skill)));
            continue;
        };
        let functions = skill.status.iter().flat_map(|status| &status.functions);
        let names: Vec<_> = functions.map(|declared| declared.name.clone()).collect();
        if !names.contains(&function.name) {
            let message = format!(
                "Skill {} has no function {:?}, it has: {}",
                function.skill,
                function.name,
                names.join(", ")
            );
            found.missing.push((AdmittedReason::FunctionNotFound, message));
            continue;
        }
        found.skills.insert(function.skill.clone(), digest);
    }
}

fn is_ready(skill: &Skill) -> bool {
    skill
        .status
        .as_ref()
        .is_some_and(|status| conditions::is_true(&status.conditions, kind::READY))
}

fn not_ready(skill: &Skill) -> String {
    let status = skill.status.as_ref();
    let why = status.and_then(|status| conditions::get(&status.conditions, kind::READY));
    let why = why.map_or("it has not been read yet", |condition| condition.message.as_str());
    format!("Skill {} is not ready: {why}", skill.name_any())
}

fn sandboxes(run: &AgentRun) -> impl Iterator<Item = &SandboxSpec> {
    run.spec
        .sandbox
        .iter()
        .chain(run.spec.tasks.iter().filter_map(|task| task.sandbox.as_ref()))
}

fn pools(world: &World, run: &AgentRun, namespace: &str, found: &mut Admission) {
    let names: BTreeSet<_> = sandboxes(run)
        .filter_map(|sandbox| sandbox.pool.as_deref())
        .collect();
    let missing = names
        .into_iter()
        .filter(|name| world.pools.get(namespace, name).is_none());
    found.missing.extend(missing.map(|name| {
        (
            AdmittedReason::PoolNotFound,
            format!("SandboxPool {name} does not exist"),
        )
    }));
}

async fn file(
    world: &World,
    file: &FileSource,
    namespace: &str,
    found: &mut Admission,
) -> Result<(), ReconcileError> {
    let content = match (&file.content, &file.config_map_key_ref) {
        (Some(content), _) => Some(content.clone().into_bytes()),
        (None, Some(source)) => {
            let api: Api<ConfigMap> = Api::namespaced(world.operator.client.clone(), namespace);
            let Some(map) = api.get_opt(&source.name).await? else {
                let message = format!("ConfigMap {} does not exist (files[{}])", source.name, file.path);
                found.missing.push((AdmittedReason::ConfigMapNotFound, message));
                return Ok(());
            };
            let text = map
                .data
                .as_ref()
                .and_then(|data| data.get(&source.key))
                .map(|text| text.clone().into_bytes());
            text.or_else(|| Some(map.binary_data.as_ref()?.get(&source.key)?.0.clone()))
        }
        (None, None) => None,
    };
    if let Some(content) = content {
        found.files.push(FileRef {
            path: file.path.clone(),
            bytes: i64::try_from(content.len()).unwrap_or(i64::MAX),
            sha256: digest::sha256_hex(&content),
        });
    } else {
        let key = file
            .config_map_key_ref
            .as_ref()
            .map(|source| source.key.clone())
            .unwrap_or_default();
        let message = format!("files[{}]: the ConfigMap has no key {key:?}", file.path);
        found.missing.push((AdmittedReason::FileSourceNotFound, message));
    }
    Ok(())
}

/// Only whether they exist: the metadata is asked for, never the content.
async fn secrets(
    world: &World,
    run: &AgentRun,
    namespace: &str,
    found: &mut Admission,
) -> Result<(), ReconcileError> {
    let names: BTreeSet<_> = sandboxes(run)
        .flat_map(|sandbox| sandbox.secrets.iter().flatten())
        .map(|secret| &secret.name)
        .collect();
    let api: Api<Secret> = Api::namespaced(world.operator.client.clone(), namespace);
    for name in names {
        match api.get_metadata_opt(name).await {
            Ok(Some(_)) => {}
            Ok(None) => {
                let message = format!("Secret {name} does not exist");
                found.missing.push((AdmittedReason::SecretNotFound, message));
            }
            // Installed without the right to look: the kubelet will tell, and the sub-task will say what it waits for.
            Err(kube::Error::Api(status)) if status.code == 403 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
