//! Reads what an assignment needs besides the board, then makes it.

use crate::assignment::{Facts, NotAssignable, SkillFacts, assignment};
use crate::board::{Live, Name};
use crate::contents::{Allowed, Source};
use crate::gateway::Gateway;
use crate::objects::Age;
use crate::skills;
use crate::text::chain;
use agentrun_api::{Model, SandboxPool, Skill, SubTask};
use agentrun_core::names::subtask_name;
use agentrun_core::plan::rerun;
use agentrun_protocol::work::{Assignment, SkillFiles};
use jiff::Timestamp;
use kube::ResourceExt as _;
use std::sync::Arc;

/// An assignment, and what its runtime may ask for.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The message.
    pub(crate) assignment: Assignment,
    /// The contents behind its digests.
    pub(crate) allowed: Allowed,
}

/// A Skill of a sub-task as it was found.
struct Found {
    name: String,
    skill: Option<Arc<Skill>>,
    files: Option<Arc<SkillFiles>>,
}

/// Prepares the assignment of a live sub-task.
pub(crate) async fn prepare(gateway: &Gateway, live: &Live) -> Result<Prepared, NotAssignable> {
    let skills = skills_of(gateway, &live.subtask)
        .await
        .map_err(|error| unavailable(&error))?;
    let pool = pool_of(gateway, &live.subtask);
    let input_task = input_task(gateway, live)
        .await
        .map_err(|error| unavailable(&error))?;
    let found: Vec<_> = skills
        .iter()
        .map(|found| SkillFacts {
            name: &found.name,
            skill: found.skill.as_deref(),
            files: found.files.as_deref(),
        })
        .collect();
    let models = models_of(gateway, &live.subtask);
    let models: Vec<_> = models.iter().map(|model| &**model).collect();
    let depth = gateway.board().depth(&live.id.uid);
    let assignment = assignment(Facts {
        id: &live.id,
        subtask: &live.subtask,
        run: live.run.as_deref(),
        skills: &found,
        models: &models,
        depth,
        pool: pool.as_deref(),
        input_task: input_task.as_ref(),
        now: Timestamp::now(),
    })?;
    let allowed = allowed(&assignment, &skills);
    Ok(Prepared { assignment, allowed })
}

fn unavailable(error: &kube::Error) -> NotAssignable {
    tracing::warn!(
        error = chain(error),
        "the API server cannot be read, the assignment waits"
    );
    NotAssignable::Wait {
        what: "the API server".into(),
        or_else: None,
    }
}

/// The Skills that a sub-task names, each with its list of files where they travel.
async fn skills_of(gateway: &Gateway, subtask: &SubTask) -> Result<Vec<Found>, kube::Error> {
    let namespace = subtask.namespace().unwrap_or_default();
    let parent = match &subtask.spec.parent_ref {
        Some(parent) if rerun::is_rerun(subtask) => {
            let name = parent.name.clone();
            let namespace = namespace.clone();
            gateway.objects.subtask(&Name { namespace, name }).await?
        }
        _ => None,
    };
    let mut found = Vec::new();
    for name in rerun::skills(subtask, parent.as_ref()) {
        let skill = gateway.board().skill(&Name {
            namespace: namespace.clone(),
            name: name.to_owned(),
        });
        let files = match &skill {
            Some(skill) => skill_files(gateway, skill).await?,
            None => None,
        };
        found.push(Found {
            name: name.to_owned(),
            skill,
            files,
        });
    }
    Ok(found)
}

/// The Models that may serve a sub-task's agent.
fn models_of(gateway: &Gateway, subtask: &SubTask) -> Vec<Arc<Model>> {
    match &subtask.spec.agent {
        Some(_) => gateway
            .board()
            .models_of(&subtask.namespace().unwrap_or_default()),
        None => Vec::new(),
    }
}

fn pool_of(gateway: &Gateway, subtask: &SubTask) -> Option<Arc<SandboxPool>> {
    let name = subtask.spec.sandbox.as_ref()?.pool.clone()?;
    gateway.board().pool(&Name {
        namespace: subtask.namespace()?,
        name,
    })
}

/// The file list of a skill that travels, from memory if its digest is known.
async fn skill_files(gateway: &Gateway, skill: &Skill) -> Result<Option<Arc<SkillFiles>>, kube::Error> {
    let digest = skill.status.as_ref().and_then(|status| status.digest.clone());
    let Some(digest) = digest.filter(|_| skills::travels(&skill.spec)) else {
        return Ok(None);
    };
    let name = Name::of(skill);
    if let Some(known) = gateway.skills.get(&name, &digest) {
        return Ok(Some(known));
    }
    let config_map = match skills::config_map_of(skill) {
        None => None,
        Some(name) => match gateway.objects.config_map(&name, Age::Fresh).await? {
            None => return Ok(None),
            found => found,
        },
    };
    let contents = skills::contents(skill, config_map.as_deref());
    let found = agentrun_core::skill::digest(&contents);
    if found != digest {
        // The ConfigMap changed a moment ago; the operator will write the new digest into the Skill.
        tracing::info!(
            skill = name.name,
            digest,
            found,
            "the files of the Skill are not what it says"
        );
        return Ok(None);
    }
    let files = Arc::new(skills::folder(&name.name, &digest, &contents));
    gateway.skills.put(name, Arc::clone(&files));
    Ok(Some(files))
}

/// The sub-task whose stored output is the input.
async fn input_task(gateway: &Gateway, live: &Live) -> Result<Option<SubTask>, kube::Error> {
    let spec = &live.subtask.spec;
    let Some(task) = spec.input_from.as_ref().and_then(|from| from.task.as_ref()) else {
        return Ok(None);
    };
    let name = subtask_name(&spec.run_ref.name, task, &spec.run_ref.uid, None, None);
    let namespace = live.subtask.namespace().unwrap_or_default();
    gateway.objects.subtask(&Name { namespace, name }).await
}

fn allowed(assignment: &Assignment, skills: &[Found]) -> Allowed {
    let run_uid = &assignment.run_uid;
    let files = assignment.files.iter().map(|file| {
        let source = Source::RunFile {
            run_uid: run_uid.clone(),
            path: file.path.clone(),
        };
        (file.sha256.clone(), source)
    });
    let skill_files = assignment.skills.iter().flat_map(|folder| {
        let skill = skills.iter().find(|found| found.name == folder.name);
        let name = skill.and_then(|found| Some(Name::of(found.skill.as_deref()?)));
        folder.files.iter().filter_map(move |file| {
            let source = Source::Skill {
                name: name.clone()?,
                path: file.file.path.clone(),
            };
            Some((file.file.sha256.clone(), source))
        })
    });
    files.chain(skill_files).collect()
}
