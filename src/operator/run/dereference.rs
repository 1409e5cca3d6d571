//! Reads what a run names, before it is admitted.

use crate::error::ReconcileError;
use crate::world::World;
use agentrun_api::names::conditions as kind;
use agentrun_api::names::paths::USER_DATA;
use agentrun_api::{
    AdmittedReason, AgentRun, AgentRunStatus, Artifact, Cache, FileRef, FileSource, FunctionFiles, RoleModel,
    RunFile, SandboxSpec, Skill, SkillFunction, TaskTemplate,
};
use agentrun_core::agents::models;
use agentrun_core::plan::agents;
use agentrun_core::plan::validate::FieldError;
use agentrun_core::{conditions, digest};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret};
use kube::{Api, ResourceExt as _};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a run names.
#[derive(Default)]
pub(super) struct Admission {
    /// What can never work with what is there.
    pub invalid: Vec<FieldError>,
    /// What is not there, in the order of the spec.
    pub missing: Vec<(AdmittedReason, String)>,
    /// `files[]` with size and digest.
    pub files: Vec<FileRef>,
    /// Skills by name with their digest.
    pub skills: BTreeMap<String, String>,
    /// Models by role.
    pub models: Vec<RoleModel>,
}

/// Reads everything that the run names.
pub(super) async fn admission(world: &World, run: &AgentRun) -> Result<Admission, ReconcileError> {
    let namespace = run.namespace().unwrap_or_default();
    let mut found = Admission::default();
    skills(world, run, &namespace, &mut found);
    agent_skills(world, run, &namespace, &mut found);
    models(world, run, &namespace, &mut found);
    pools(world, run, &namespace, &mut found);
    for file in &run.spec.files {
        self::file(world, file, &namespace, &mut found).await?;
    }
    secrets(world, run, &namespace, &mut found).await?;
    Ok(found)
}

fn skills(world: &World, run: &AgentRun, namespace: &str, found: &mut Admission) {
    for task in &run.spec.tasks {
        let Some(function) = &task.function else { continue };
        let Some((skill, digest)) = ready(world, namespace, &function.skill, found) else {
            continue;
        };
        let functions = skill.status.iter().flat_map(|status| &status.functions);
        let Some(declared) = functions.clone().find(|declared| declared.name == function.name) else {
            let names: Vec<_> = functions.map(|declared| declared.name.clone()).collect();
            let message = format!(
                "Skill {} has no function {:?}, it has: {}",
                function.skill,
                function.name,
                names.join(", ")
            );
            found.missing.push((AdmittedReason::FunctionNotFound, message));
            continue;
        };
        found.invalid.extend(
            task.cache
                .as_ref()
                .and_then(|cache| uncacheable(task, cache, declared)),
        );
        found.skills.insert(function.skill.clone(), digest);
    }
}

/// A skill that can be used, with its digest; else what is waited for is noted.
fn ready(world: &World, namespace: &str, name: &str, found: &mut Admission) -> Option<(Arc<Skill>, String)> {
    let Some(skill) = world.skills.get(namespace, name) else {
        let message = format!("Skill {name} does not exist");
        found.missing.push((AdmittedReason::SkillNotFound, message));
        return None;
    };
    let digest = skill.status.as_ref().and_then(|status| status.digest.clone());
    let (Some(digest), true) = (digest, is_ready(&skill)) else {
        found
            .missing
            .push((AdmittedReason::SkillNotReady, not_ready(&skill)));
        return None;
    };
    Some((skill, digest))
}

/// The skills that agents may use, those of delegates included: they are pinned before anybody delegates.
fn agent_skills(world: &World, run: &AgentRun, namespace: &str, found: &mut Admission) {
    for name in agents::skills(&run.spec) {
        if let Some((_, digest)) = ready(world, namespace, name, found) {
            found.skills.insert(name.to_owned(), digest);
        }
    }
}

/// The Models that the run's agents need. Which one serves is found out anew at every call; what it was at the start is
/// written down.
fn models(world: &World, run: &AgentRun, namespace: &str, found: &mut Admission) {
    let there = world.models.under(namespace);
    let there: Vec<_> = there.iter().map(|model| &**model).collect();
    for need in models::needs(&run.spec) {
        let role = need.role;
        match models::choose(&there, need.asked.as_deref(), &run.spec.models, role) {
            Ok(model) => {
                let known = found.models.iter().any(|known| known.role == role.as_str());
                if !known {
                    found.models.push(RoleModel {
                        role: role.to_string(),
                        name: model.name_any(),
                        model: Some(model.spec.model.clone()),
                    });
                }
            }
            Err(error) => found.missing.push((error.reason(), error.to_string())),
        }
    }
}

/// A result stands for the work only if the work leaves nothing else behind, and depends on nothing that is not in the
/// key.
fn uncacheable(task: &TaskTemplate, cache: &Cache, declared: &SkillFunction) -> Option<FieldError> {
    let message = match declared.files {
        None | Some(FunctionFiles::None) => return None,
        Some(FunctionFiles::Read) if !cache.reads.is_empty() => return None,
        Some(FunctionFiles::Read) => "declares `files: read`: name in `reads` the files that it reads",
        Some(FunctionFiles::Write) => {
            "declares `files: write`: a result does not bring back the files that it wrote, leave cache out"
        }
    };
    let message = format!("function {} {message}", declared.name);
    Some(FieldError::new(
        format!("spec.tasks[{}].cache", task.name),
        message,
    ))
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
    let types = run
        .spec
        .delegation
        .iter()
        .flat_map(|delegation| &delegation.agents);
    run.spec
        .sandbox
        .iter()
        .chain(run.spec.tasks.iter().filter_map(|task| task.sandbox.as_ref()))
        .chain(types.filter_map(|kind| kind.sandbox.as_ref()))
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
    if let Some(from) = &file.from {
        from_run(world, file, from, namespace, found);
        return Ok(());
    }
    if let Some(claim) = &file.claim {
        let api: Api<PersistentVolumeClaim> = Api::namespaced(world.operator.client.clone(), namespace);
        if api.get_opt(&claim.name).await?.is_none() {
            let message = format!(
                "files[{}]: PersistentVolumeClaim {} does not exist",
                file.path, claim.name
            );
            found.missing.push((AdmittedReason::FileSourceNotFound, message));
        }
        return Ok(());
    }
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

/// What another run delivered is final once that run has ended.
fn from_run(world: &World, file: &FileSource, from: &RunFile, namespace: &str, found: &mut Admission) {
    let run = world.runs.get(namespace, &from.run);
    let artifact = artifact_of(run.as_deref().and_then(|run| run.status.as_ref()), from);
    match artifact {
        Ok(artifact) => found.files.push(FileRef {
            path: file.path.clone(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.clone(),
        }),
        Err(why) => {
            let message = format!("files[{}]: AgentRun {} {why}", file.path, from.run);
            found.missing.push((AdmittedReason::FileSourceNotFound, message));
        }
    }
}

fn artifact_of<'a>(status: Option<&'a AgentRunStatus>, from: &RunFile) -> Result<&'a Artifact, String> {
    let Some(status) = status else {
        return Err("does not exist, or was made just now".to_owned());
    };
    if !super::is_over(status) {
        return Err("has not ended yet".to_owned());
    }
    let path = format!("{USER_DATA}/{}", from.path);
    let artifact = status.artifacts.iter().find(|artifact| artifact.path == path);
    artifact.ok_or_else(|| {
        let paths = status
            .artifacts
            .iter()
            .take(10)
            .map(|artifact| artifact.path.as_str());
        let paths: Vec<_> = paths.collect();
        format!(
            "delivered no {}; its artifacts are: {}",
            from.path,
            paths.join(", ")
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(status: serde_json::Value, path: &str) -> Result<String, String> {
        let status: AgentRunStatus = serde_json::from_value(status).unwrap();
        let from = RunFile {
            run: "export".to_owned(),
            path: path.to_owned(),
        };
        artifact_of(Some(&status), &from).map(|artifact| artifact.sha256.clone())
    }

    #[test]
    fn an_artifact_of_an_ended_run_is_found_and_what_is_missing_is_named() {
        let artifacts = json!([{"path": "/mnt/user-data/outputs/a.csv", "bytes": 2, "sha256": "aa"}]);
        let condition = json!({
            "type": "Complete", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2030-01-01T00:00:00Z",
        });
        let ended = json!({"conditions": [condition], "artifacts": artifacts});
        assert_eq!(found(ended.clone(), "outputs/a.csv"), Ok("aa".to_owned()));
        let missing = "delivered no outputs/b.csv; its artifacts are: /mnt/user-data/outputs/a.csv";
        assert_eq!(found(ended, "outputs/b.csv"), Err(missing.to_owned()));
        let running = found(json!({"artifacts": artifacts}), "outputs/a.csv");
        assert_eq!(running, Err("has not ended yet".to_owned()));
    }

    fn complaint(files: &str, reads: &[&str]) -> Option<String> {
        let task = json!({"name": "a", "function": {"skill": "s", "name": "f"}, "cache": {"reads": reads}});
        let declared =
            json!({"name": "f", "file": "f.py", "files": files, "maxMemoryMb": 64, "timeoutSec": 5});
        let task: TaskTemplate = serde_json::from_value(task).unwrap();
        let declared: SkillFunction = serde_json::from_value(declared).unwrap();
        let found = uncacheable(&task, task.cache.as_ref().unwrap(), &declared);
        found.map(|error| error.to_string())
    }

    #[test]
    fn a_function_is_cached_only_where_its_result_stands_for_it() {
        assert_eq!(complaint("None", &[]), None);
        assert_eq!(complaint("Read", &["table.csv"]), None);
        assert_eq!(
            complaint("Read", &[]).unwrap(),
            "spec.tasks[a].cache: function f declares `files: read`: name in `reads` the files that it reads"
        );
        assert!(
            complaint("Write", &["table.csv"])
                .unwrap()
                .contains("leave cache out")
        );
    }
}
