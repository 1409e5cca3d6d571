//! Fields that the schema has and this version has no behaviour for. Using one is refused with its path
//! instead of being ignored: a run must never do less than it says.

use super::validate::FieldError;
use agentrun_api::{AgentRunSpec, AgentType, ForEach, SandboxSpec, Start, TaskTemplate};

/// Every use of such a field.
pub fn find(spec: &AgentRunSpec) -> Vec<FieldError> {
    let run = [
        ("approval", spec.approval.is_some()),
        ("resumeFrom", spec.resume_from.is_some()),
    ];
    let mut found = used("spec", &run);
    found.extend(
        spec.sandbox
            .iter()
            .flat_map(|sandbox| in_sandbox("spec.sandbox", sandbox)),
    );
    found.extend(spec.tasks.iter().flat_map(in_task));
    let types = spec.delegation.iter().flat_map(|delegation| &delegation.agents);
    found.extend(types.filter_map(in_type).flatten());
    found
}

fn in_task(task: &TaskTemplate) -> Vec<FieldError> {
    let prefix = format!("spec.tasks[{}]", task.name);
    let mut found = used(&prefix, &[("approval", task.approval.is_some())]);
    found.extend(
        task.sandbox
            .iter()
            .flat_map(|sandbox| in_sandbox(&format!("{prefix}.sandbox"), sandbox)),
    );
    found.extend(
        task.for_each
            .iter()
            .flat_map(|each| in_for_each(&format!("{prefix}.forEach"), each)),
    );
    found
}

fn in_type(kind: &AgentType) -> Option<Vec<FieldError>> {
    let sandbox = kind.sandbox.as_ref()?;
    let prefix = format!("spec.delegation.agents[{}].sandbox", kind.name);
    Some(in_sandbox(&prefix, sandbox))
}

fn in_sandbox(prefix: &str, sandbox: &SandboxSpec) -> Vec<FieldError> {
    used(prefix, &[("start: Eager", sandbox.start == Some(Start::Eager))])
}

fn in_for_each(prefix: &str, each: &ForEach) -> Vec<FieldError> {
    let fields = [
        ("itemsFrom", each.items_from.is_some()),
        ("window", each.window.is_some()),
        ("collect", each.collect.is_some()),
    ];
    used(prefix, &fields)
}

fn used(prefix: &str, fields: &[(&str, bool)]) -> Vec<FieldError> {
    let used = fields.iter().filter(|(_, used)| *used);
    used.map(|(name, _)| FieldError::new(format!("{prefix}.{name}"), "is not supported by this version yet"))
        .collect()
}
