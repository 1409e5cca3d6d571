//! Mistakes in what a spec says about agents that the API server's schema cannot see.

use super::lead;
use super::validate::{FieldError, check_sandbox, duration};
use crate::agents::{role, tools};
use crate::schema::Schema;
use agentrun_api::{AgentRunSpec, AgentSpec, ContextMode, Delegation, TaskTemplate};
use agentrun_protocol::chat::Role;
use std::collections::BTreeSet;

/// The most skills of one run: as many as its provenance holds.
const MAX_SKILLS: usize = 64;

/// Names that begin so are the platform's own.
const RESERVED: &str = "agentrun-";

/// Every mistake about agents.
pub(super) fn mistakes(spec: &AgentRunSpec, errors: &mut Vec<FieldError>) {
    let mut wrong = |field: String, message: String| errors.push(FieldError::new(field, message));
    if spec.goal.is_none() && spec.lead.is_some() {
        wrong(
            "spec.lead".into(),
            "works on spec.goal: give a goal, or leave lead out".into(),
        );
    }
    let has_agents = spec.goal.is_some() || spec.tasks.iter().any(|task| task.agent.is_some());
    if spec.delegation.is_some() && !has_agents {
        let message =
            "agents delegate, and the run has none: give a goal or a task with agent, or leave it out";
        wrong("spec.delegation".into(), message.into());
    }
    if spec.goal.is_some() && spec.tasks.iter().any(|task| task.name == lead::TASK) {
        let message = format!(
            "a task is called {:?}, which is the name of the lead's own",
            lead::TASK
        );
        wrong("spec.tasks".into(), message);
    }
    let unknown = spec.models.keys().filter(|name| role::named(name).is_none());
    for name in unknown {
        let known: Vec<_> = Role::ALL.map(Role::as_str).into();
        let message = format!("there is no role {name:?}; there are {}", known.join(", "));
        wrong(format!("spec.models[{name}]"), message);
    }
    let skills = skills(spec).count();
    if skills > MAX_SKILLS {
        let message = format!("the run names {skills} Skills, at most {MAX_SKILLS} are allowed");
        wrong("spec".into(), message);
    }
    if let Some(lead) = &spec.lead {
        agent("spec.lead", &lead.agent, errors);
    }
    for task in &spec.tasks {
        in_task(task, errors);
    }
    if let Some(delegation) = &spec.delegation {
        in_delegation(delegation, errors);
    }
}

/// Names of the Skills that a run's agents may use, each once.
pub fn skills(spec: &AgentRunSpec) -> impl Iterator<Item = &str> {
    let lead = spec.lead.iter().map(|lead| &lead.agent);
    let tasks = spec
        .tasks
        .iter()
        .filter_map(|task| Some(&task.agent.as_ref()?.agent));
    let types = spec.delegation.iter().flat_map(|delegation| &delegation.agents);
    let agents = lead.chain(tasks).chain(types.map(|kind| &kind.agent));
    let names: BTreeSet<&str> = agents
        .filter_map(|agent| agent.skills.as_ref())
        .flatten()
        .map(String::as_str)
        .collect();
    names.into_iter()
}

fn in_task(task: &TaskTemplate, errors: &mut Vec<FieldError>) {
    let field = |name: &str| format!("spec.tasks[{}].{name}", task.name);
    if let Some(work) = &task.agent {
        agent(&field("agent"), &work.agent, errors);
    }
    let mode = task.context.as_ref().and_then(|context| context.mode);
    if mode == Some(ContextMode::Snapshot) {
        let message = "Snapshot is for delegates, a task of the plan has no parent whose conversation it could see: leave \
                       context out";
        errors.push(FieldError::new(field("context"), message));
    }
}

fn in_delegation(delegation: &Delegation, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for kind in &delegation.agents {
        let field = format!("spec.delegation.agents[{}]", kind.name);
        if !seen.insert(kind.name.as_str()) {
            errors.push(FieldError::new(
                &field,
                "two types have this name: names are unique",
            ));
        }
        if kind.name.starts_with(RESERVED) || kind.name == lead::TASK {
            let message = format!(
                "the name is reserved: take one that is not {:?} or {RESERVED}...",
                lead::TASK
            );
            errors.push(FieldError::new(&field, message));
        }
        agent(&field, &kind.agent, errors);
        duration(&format!("{field}.timeout"), kind.timeout.as_ref(), errors);
        if let Some(sandbox) = &kind.sandbox {
            check_sandbox(&format!("{field}.sandbox"), sandbox, errors);
        }
    }
}

fn agent(field: &str, agent: &AgentSpec, errors: &mut Vec<FieldError>) {
    for name in agent.tools.iter().flatten() {
        if let Err(unknown) = tools::parse(name) {
            errors.push(FieldError::new(format!("{field}.tools"), unknown.to_string()));
        }
    }
    let Some(schema) = &agent.output_schema else {
        return;
    };
    let field = format!("{field}.outputSchema");
    if !schema.value().is_object() {
        errors.push(FieldError::new(field, "a JSON Schema is an object"));
    } else if let Err(error) = Schema::compile(schema.value()) {
        errors.push(FieldError::new(field, error.to_string()));
    }
}
