//! From a sub-task's agent to the terms that its runtime works by; pure.

use crate::assignment::{Facts, NotAssignable, SkillFacts, never, wait};
use crate::skills::travels;
use agentrun_api::names::labels::SNAPSHOT;
use agentrun_api::{
    AdmittedReason, AgentWork, ContextMode, History, Model, Skill, SubTask, SubTaskReason, SubTaskSpec,
};
use agentrun_core::agents::caps::Caps;
use agentrun_core::agents::delegate::check_snapshot;
use agentrun_core::agents::models::{DEFAULT_CONTEXT_TOKENS, NoModel, choose, has_own};
use agentrun_core::agents::tools::{self, Possible};
use agentrun_core::agents::{role, types};
use agentrun_protocol::agent::{AgentTerms, DelegationTerms, ModelTraits, SkillCard};
use agentrun_protocol::chat::Role;
use agentrun_protocol::work::{FileRef, SkillFiles};
use kube::ResourceExt as _;

/// The terms of the agent of a sub-task, and the folders of its skills.
pub(crate) fn terms(
    work: &AgentWork,
    facts: &Facts<'_>,
) -> Result<(AgentTerms, Vec<SkillFiles>), NotAssignable> {
    let spec = &facts.subtask.spec;
    let run = facts.run.ok_or_else(|| wait("the AgentRun", None))?;
    let role = role::of(spec);
    let model = work.agent.model.as_deref();
    let traits = choose(facts.models, model, &run.spec.models, role)
        .map(traits)
        .map_err(|error| no_model(&error))?;
    let depth = facts
        .depth
        .ok_or_else(|| wait("the SubTask that delegated it", None))?;
    let caps = Caps::of(&run.spec);
    let possible = Possible {
        delegation: depth < caps.depth,
        skills: !facts.skills.is_empty(),
        vision: traits.vision,
    };
    let tools = tools::of(spec, possible)
        .map_err(|unknown| never(AdmittedReason::Invalid.as_str(), unknown.to_string()))?;
    let delegates = tools.iter().any(|tool| tool == tools::TASK);
    let (mut cards, mut folders) = (Vec::new(), Vec::new());
    for skill in facts.skills {
        let (card, folder) = skill_of(skill, facts)?;
        cards.push(card);
        folders.push(folder);
    }
    let is_lead = role == Role::Lead;
    let has_own = |role| is_lead && has_own(facts.models, &run.spec.models, role);
    let terms = AgentTerms {
        role,
        prompt: work.prompt.clone(),
        instructions: work.agent.instructions.clone(),
        model: work.agent.model.clone(),
        traits,
        tools,
        skills: cards,
        max_turns: types::turns(spec),
        output_schema: work
            .agent
            .output_schema
            .as_ref()
            .map(|schema| schema.value().clone()),
        delegation: delegates.then(|| DelegationTerms {
            max_per_turn: count(caps.per_turn),
            max_per_run: count(caps.per_run),
            agents: types::kinds(&run.spec),
        }),
        snapshot: snapshot(facts.subtask)?,
        continues: spec.history == Some(History::Continue),
        is_planned: has_own(Role::Planner),
        reviews: has_own(Role::Reviewer).then(|| send_backs(spec)),
    };
    Ok((terms, folders))
}

/// How often a reviewer may send an answer back: as often as there are attempts besides the first, and once at least.
fn send_backs(spec: &SubTaskSpec) -> u32 {
    let attempts = spec.retry.as_ref().and_then(|retry| retry.attempts).unwrap_or(1);
    u32::try_from(attempts - 1).unwrap_or_default().max(1)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn traits(model: &Model) -> ModelTraits {
    let tokens = model
        .spec
        .context_tokens
        .and_then(|tokens| u64::try_from(tokens).ok());
    ModelTraits {
        context_tokens: tokens.unwrap_or(DEFAULT_CONTEXT_TOKENS),
        vision: model.spec.vision == Some(true),
    }
}

/// One that is missing may come, two that compete stay until somebody decides.
fn no_model(error: &NoModel) -> NotAssignable {
    match error {
        NoModel::Ambiguous { .. } => never(error.reason().as_str(), error.to_string()),
        _ => wait(&error.to_string(), Some(error.reason().as_str())),
    }
}

/// The card and the folder of a skill, as it was when the run started.
pub(crate) fn skill_of(
    found: &SkillFacts<'_>,
    facts: &Facts<'_>,
) -> Result<(SkillCard, SkillFiles), NotAssignable> {
    let name = found.name;
    let missing = || {
        wait(
            &format!("Skill {name}"),
            Some(AdmittedReason::SkillNotFound.as_str()),
        )
    };
    let skill = found.skill.ok_or_else(missing)?;
    let digest = skill.status.as_ref().and_then(|status| status.digest.as_deref());
    if let Some(pinned) = pinned(facts, name)
        && digest != Some(pinned)
    {
        let found = digest.unwrap_or("none");
        let message =
            format!("Skill {name} has digest {found}, the run started with {pinned}: start a new run");
        return Err(never(SubTaskReason::InputChanged.as_str(), message));
    }
    Ok((card(skill), folder(skill, digest, found.files)?))
}

fn pinned<'a>(facts: &Facts<'a>, name: &str) -> Option<&'a str> {
    let provenance = facts.run?.status.as_ref()?.provenance.as_ref()?;
    let mut skills = provenance.skills.iter();
    Some(skills.find(|skill| skill.name == name)?.digest.as_str())
}

fn card(skill: &Skill) -> SkillCard {
    let status = skill.status.clone().unwrap_or_default();
    SkillCard {
        name: skill.name_any(),
        description: status.description.unwrap_or_default(),
        triggers: status.triggers,
        allowed_tools: status.allowed_tools,
    }
}

/// The folder of a skill: its list of files, or its digest where the kubelet mounts it.
pub(crate) fn folder(
    skill: &Skill,
    digest: Option<&str>,
    files: Option<&SkillFiles>,
) -> Result<SkillFiles, NotAssignable> {
    if !travels(&skill.spec) {
        return Ok(SkillFiles {
            name: skill.name_any(),
            digest: digest.unwrap_or_default().to_owned(),
            files: Vec::new(),
            mounted: true,
        });
    }
    let missing = || {
        let what = format!("the files of Skill {}", skill.name_any());
        wait(&what, Some(SubTaskReason::InputChanged.as_str()))
    };
    files.cloned().ok_or_else(missing)
}

/// The conversation that a delegate sees. Only what this gateway wrote at its making is believed, and only where this run
/// keeps such files.
fn snapshot(subtask: &SubTask) -> Result<Option<FileRef>, NotAssignable> {
    let mode = subtask.spec.context.as_ref().and_then(|context| context.mode);
    if mode != Some(ContextMode::Snapshot) {
        return Ok(None);
    }
    let invalid = |message: String| never(AdmittedReason::Invalid.as_str(), message);
    let text = subtask.annotations().get(SNAPSHOT);
    let text = text.ok_or_else(|| {
        invalid(format!(
            "context.mode is Snapshot and there is no annotation {SNAPSHOT}"
        ))
    })?;
    let file: FileRef = serde_json::from_str(text)
        .map_err(|error| invalid(format!("annotation {SNAPSHOT} names no file: {error}")))?;
    check_snapshot(&file, &subtask.spec.run_ref.uid).map_err(|error| invalid(error.to_string()))?;
    Ok(Some(file))
}
