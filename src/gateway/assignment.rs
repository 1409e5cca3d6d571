//! From a sub-task and what it names to the one message that leaves the runtime nothing to look up; pure.

use crate::agents;
use crate::limits::{command_limits, function_limits};
use agentrun_api::names::paths::{UPLOADS, WORKSPACE};
use agentrun_api::{
    AcceptancePolicy, AdmittedReason, AgentRun, CommandWork, FileSource, FunctionFiles, FunctionWork,
    GoDuration, Model, SandboxPool, SandboxSpec, SandboxTemplate, Skill, SkillFunction, SubTask,
    SubTaskReason, WarmFunction, Work as ApiWork,
};
use agentrun_core::acceptance;
use agentrun_core::names::source_folder;
use agentrun_protocol::work::{
    Assignment, AttemptId, CacheKey, FileAccess, FileCopy, FileRef, Input, Limits, SkillFiles, Warm, Work,
};
use jiff::Timestamp;
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::time::Duration;

/// Time of an attempt whose sub-task says none (docs/reference.md).
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// Why nothing is assigned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotAssignable {
    /// Something may still come.
    Wait {
        /// What is waited for.
        what: String,
        /// The reason of the error if it does not come; without one the wait has no end of its own.
        or_else: Option<&'static str>,
    },
    /// It will never work.
    Never {
        /// A reason from the documented lists.
        reason: &'static str,
        /// What was found and what to do.
        message: String,
    },
}

/// Everything that an assignment is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// Which attempt.
    pub(crate) id: &'a AttemptId,
    /// The sub-task.
    pub(crate) subtask: &'a SubTask,
    /// Its run, if it was seen.
    pub(crate) run: Option<&'a AgentRun>,
    /// The Skills of its function or agent, in their order.
    pub(crate) skills: &'a [SkillFacts<'a>],
    /// The Models of its namespace.
    pub(crate) models: &'a [&'a Model],
    /// How deep it is in the chain of those who delegate, if that is known.
    pub(crate) depth: Option<u32>,
    /// The pool that its sandbox is of, if it was seen.
    pub(crate) pool: Option<&'a SandboxPool>,
    /// The sub-task that `inputFrom.task` names, if it is there.
    pub(crate) input_task: Option<&'a SubTask>,
    /// The time.
    pub(crate) now: Timestamp,
}

/// A Skill that a sub-task names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkillFacts<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// The Skill, if it was seen.
    pub(crate) skill: Option<&'a Skill>,
    /// Its files, when they travel.
    pub(crate) files: Option<&'a SkillFiles>,
}

/// Makes the assignment.
pub(crate) fn assignment(facts: Facts<'_>) -> Result<Assignment, NotAssignable> {
    let run = facts.run.ok_or_else(|| wait("the AgentRun", None))?;
    let spec = &facts.subtask.spec;
    let (work, limits, skills) = work(&facts)?;
    let sandbox = spec.sandbox.clone().unwrap_or_default();
    let template = template(&sandbox, facts.pool)?;
    let namespace = facts.subtask.namespace().unwrap_or_default();
    Ok(Assignment {
        id: facts.id.clone(),
        subtask: format!("{namespace}/{}", facts.subtask.name_any()),
        run_uid: spec.run_ref.uid.clone(),
        task: spec.task.clone(),
        work,
        input: input(&facts)?,
        files: files(run),
        copies: copies(run),
        skills,
        env: env(&sandbox, template),
        inherit_env: inherit_env(&sandbox),
        tcp: has_egress(&sandbox, template),
        remaining_ms: remaining_ms(spec.timeout.as_ref(), run, facts.now)?,
        limits,
        acceptance: spec.acceptance.clone(),
        notes: notes(facts.subtask),
        cache: spec.cache.as_ref().map(cache_key),
    })
}

/// What the attempt before left unmet, when that is why another one follows.
fn notes(subtask: &SubTask) -> Vec<String> {
    let required = subtask.spec.acceptance_policy == Some(AcceptancePolicy::Require);
    let verdicts = subtask.status.iter().flat_map(|status| &status.acceptance);
    let verdicts: Vec<_> = verdicts.filter(|_| required).cloned().collect();
    acceptance::notes(&verdicts)
}

/// Relative paths start at the workspace, as everywhere.
fn cache_key(cache: &agentrun_api::Cache) -> CacheKey {
    let absolute = |path: &String| match path.starts_with('/') {
        true => path.clone(),
        false => format!("{WORKSPACE}/{path}"),
    };
    CacheKey {
        reads: cache.reads.iter().map(absolute).collect(),
    }
}

pub(crate) fn wait(what: &str, or_else: Option<&'static str>) -> NotAssignable {
    NotAssignable::Wait {
        what: what.to_owned(),
        or_else,
    }
}

pub(crate) fn never(reason: &'static str, message: impl Into<String>) -> NotAssignable {
    NotAssignable::Never {
        reason,
        message: message.into(),
    }
}

fn work(facts: &Facts<'_>) -> Result<(Work, Limits, Vec<SkillFiles>), NotAssignable> {
    match facts.subtask.spec.work() {
        Some(ApiWork::Function(function)) => function_work(function, facts),
        Some(ApiWork::Command(command)) => {
            let skills = facts.skills.iter();
            let folders = skills.map(|skill| agents::skill_of(skill, facts).map(|(_, folder)| folder));
            let folders = folders.collect::<Result<_, _>>()?;
            Ok((command_work(command), command_limits(), folders))
        }
        Some(ApiWork::Agent(work)) => {
            let (terms, skills) = agents::terms(work, facts)?;
            Ok((Work::Agent(Box::new(terms)), command_limits(), skills))
        }
        None => Err(never(
            AdmittedReason::Invalid.as_str(),
            "the sub-task needs exactly one of function, command and agent",
        )),
    }
}

fn command_work(command: &CommandWork) -> Work {
    Work::Command {
        argv: command.argv.clone(),
        working_dir: command.working_dir.clone(),
    }
}

fn function_work(
    work: &FunctionWork,
    facts: &Facts<'_>,
) -> Result<(Work, Limits, Vec<SkillFiles>), NotAssignable> {
    let found = facts.skills.first();
    let skill = found.and_then(|found| found.skill).ok_or_else(|| {
        wait(
            &format!("Skill {}", work.skill),
            Some(AdmittedReason::SkillNotFound.as_str()),
        )
    })?;
    let status = skill.status.clone().unwrap_or_default();
    if let Some(pinned) = work.digest.as_deref()
        && status.digest.as_deref() != Some(pinned)
    {
        let found = status.digest.as_deref().unwrap_or("none");
        return Err(never(
            SubTaskReason::InputChanged.as_str(),
            format!(
                "Skill {} has digest {found}, the run started with {pinned}: start a new run",
                work.skill
            ),
        ));
    }
    let declared = status
        .functions
        .iter()
        .find(|function| function.name == work.name)
        .ok_or_else(|| {
            let known: Vec<_> = status
                .functions
                .iter()
                .map(|function| function.name.as_str())
                .collect();
            never(
                AdmittedReason::FunctionNotFound.as_str(),
                format!(
                    "Skill {} has no function {}, it has: {}",
                    work.skill,
                    work.name,
                    known.join(", ")
                ),
            )
        })?;
    let limits = function_limits(declared, facts.subtask.spec.resources.as_ref());
    let files = found.and_then(|found| found.files);
    let skills = vec![agents::folder(skill, status.digest.as_deref(), files)?];
    let work = Work::Function {
        skill: work.skill.clone(),
        name: work.name.clone(),
        file: program(declared)?,
        files: match declared.files {
            None | Some(FunctionFiles::None) => FileAccess::None,
            Some(FunctionFiles::Read) => FileAccess::Read,
            Some(FunctionFiles::Write) => FileAccess::Write,
        },
        warm: declared.warm.as_ref().map(warm),
    };
    Ok((work, limits, skills))
}

fn warm(declared: &WarmFunction) -> Warm {
    let count = |number: i32| u32::try_from(number).unwrap_or(1).max(1);
    Warm {
        instances: count(declared.instances),
        max_calls: declared.max_calls.map(count),
    }
}

/// The program of a function; whoever parsed the skill filled it in.
fn program(function: &SkillFunction) -> Result<String, NotAssignable> {
    let missing = || {
        let message = format!(
            "function {} has no program: see the conditions of its Skill",
            function.name
        );
        never(AdmittedReason::FunctionNotFound.as_str(), message)
    };
    function.file.clone().ok_or_else(missing)
}

fn input(facts: &Facts<'_>) -> Result<Option<Input>, NotAssignable> {
    let spec = &facts.subtask.spec;
    if let Some(input) = &spec.input {
        return Ok(Some(Input::Inline {
            value: input.value().clone(),
        }));
    }
    let Some(from) = &spec.input_from else {
        return Ok(None);
    };
    if let Some(path) = &from.path {
        return Ok(Some(Input::File { path: path.clone() }));
    }
    let Some(task) = &from.task else { return Ok(None) };
    let gone = Some(SubTaskReason::InputChanged.as_str());
    let status = facts.input_task.and_then(|task| task.status.as_ref());
    let status = status.ok_or_else(|| wait(&format!("the output of task {task}"), gone))?;
    match (&status.output_ref, &status.output) {
        (Some(file), _) => Ok(Some(Input::Stored {
            file: file_ref(&file.path, file),
        })),
        (None, Some(output)) => Ok(Some(Input::Inline {
            value: output.value().clone(),
        })),
        (None, None) => Err(wait(&format!("the output of task {task}"), gone)),
    }
}

fn file_ref(path: &str, file: &agentrun_api::FileRef) -> FileRef {
    FileRef {
        path: path.to_owned(),
        bytes: u64::try_from(file.bytes).unwrap_or_default(),
        sha256: file.sha256.clone(),
    }
}

fn files(run: &AgentRun) -> Vec<FileRef> {
    let copied = |path: &str| {
        let mut sources = run.spec.files.iter().filter(|file| file.path == path);
        sources.any(|file| source_folder(file).is_some())
    };
    let files = run.status.iter().flat_map(|status| &status.files);
    files
        .filter(|file| !copied(&file.path))
        .map(|file| file_ref(below_uploads(&file.path), file))
        .collect()
}

/// Files of claims, which the operator mounts into the runtime's container.
fn copies(run: &AgentRun) -> Vec<FileCopy> {
    let fixed: Vec<_> = run.status.iter().flat_map(|status| &status.files).collect();
    let copy = |file: &FileSource| {
        let fixed = fixed.iter().find(|fixed| fixed.path == file.path);
        let path = match (&file.from, &file.claim) {
            (Some(from), _) => from.path.strip_prefix("outputs/")?,
            (None, claim) => claim.as_ref()?.path.as_str(),
        };
        Some(FileCopy {
            path: below_uploads(&file.path).to_owned(),
            folder: source_folder(file)?,
            from: path.to_owned(),
            bytes: fixed.map(|fixed| u64::try_from(fixed.bytes).unwrap_or_default()),
            sha256: fixed.map(|fixed| fixed.sha256.clone()),
        })
    };
    run.spec.files.iter().filter_map(copy).collect()
}

/// A path of `files[]` relative to `uploads`, whichever way it is written.
pub(crate) fn below_uploads(path: &str) -> &str {
    path.strip_prefix(UPLOADS).unwrap_or(path).trim_start_matches('/')
}

/// The template of the pool that the sandbox is of.
fn template<'a>(
    sandbox: &SandboxSpec,
    pool: Option<&'a SandboxPool>,
) -> Result<Option<&'a SandboxTemplate>, NotAssignable> {
    match (&sandbox.pool, pool) {
        (None, _) => Ok(None),
        (Some(_), Some(pool)) => Ok(Some(&pool.spec.template)),
        (Some(name), None) => {
            let what = format!("SandboxPool {name}");
            Err(wait(&what, Some(AdmittedReason::PoolNotFound.as_str())))
        }
    }
}

/// The pool's variables, and over them those of the task.
fn env(sandbox: &SandboxSpec, template: Option<&SandboxTemplate>) -> BTreeMap<String, String> {
    let base = template.iter().flat_map(|template| &template.env);
    let own = sandbox.env.iter().flatten();
    base.chain(own)
        .map(|variable| (variable.name.clone(), variable.value.clone()))
        .collect()
}

fn has_egress(sandbox: &SandboxSpec, template: Option<&SandboxTemplate>) -> bool {
    let of_pool = template.is_some_and(|template| !template.egress.is_empty());
    of_pool || sandbox.egress.as_ref().is_some_and(|egress| !egress.is_empty())
}

fn inherit_env(sandbox: &SandboxSpec) -> Vec<String> {
    let items = sandbox.secrets.iter().flatten().flat_map(|secret| &secret.items);
    items.filter_map(|item| item.env.clone()).collect()
}

/// The attempt's own time, cut to what the run has left.
fn remaining_ms(timeout: Option<&GoDuration>, run: &AgentRun, now: Timestamp) -> Result<u64, NotAssignable> {
    let own = timeout
        .and_then(|timeout| timeout.parse().ok())
        .unwrap_or(DEFAULT_TIMEOUT);
    let deadline = run.status.as_ref().and_then(|status| status.deadline.as_ref());
    let left = match deadline {
        None => own,
        Some(deadline) => {
            let left = Duration::try_from(deadline.0.duration_since(now)).unwrap_or_default();
            if left.is_zero() {
                return Err(wait("the end of the run: its deadline has passed", None));
            }
            own.min(left)
        }
    };
    Ok(u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
#[path = "assignment_tests.rs"]
mod tests;
