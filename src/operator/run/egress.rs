//! Egress that nobody gets is refused before anything is made, with its field.

use crate::policies::{self, Denied};
use agentrun_api::{AgentRunSpec, SandboxSpec};
use agentrun_core::plan::validate::FieldError;

/// Whether a run asks for egress of its own.
pub(super) fn is_asked_for(spec: &AgentRunSpec) -> bool {
    sandboxes(spec).any(|(_, sandbox)| sandbox.egress.is_some())
}

/// Every egress set that is not allowed. The sets of pools are checked when a Pod is built: they can still change.
pub(super) fn forbidden(spec: &AgentRunSpec, denied: &Denied) -> Vec<FieldError> {
    let refused = sandboxes(spec).filter_map(|(field, sandbox)| {
        let error = policies::check(sandbox.egress.as_deref()?, denied).err()?;
        Some(FieldError::new(field, error.to_string()))
    });
    refused.collect()
}

fn sandboxes(spec: &AgentRunSpec) -> impl Iterator<Item = (String, &SandboxSpec)> {
    let run = spec
        .sandbox
        .iter()
        .map(|sandbox| ("spec.sandbox".to_owned(), sandbox));
    let tasks = spec.tasks.iter().filter_map(|task| {
        let sandbox = task.sandbox.as_ref()?;
        Some((format!("spec.tasks[{}].sandbox", task.name), sandbox))
    });
    let types = spec.delegation.iter().flat_map(|delegation| &delegation.agents);
    let types = types.filter_map(|kind| {
        let sandbox = kind.sandbox.as_ref()?;
        Some((format!("spec.delegation.agents[{}].sandbox", kind.name), sandbox))
    });
    run.chain(tasks).chain(types)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(sandbox: &serde_json::Value) -> Vec<String> {
        let spec = json!({"tasks": [{"name": "a", "command": {"argv": ["true"]}, "sandbox": sandbox}]});
        let spec: AgentRunSpec = serde_json::from_value(spec).unwrap();
        let denied = Denied::new(["192.0.2.1".parse().unwrap()], &[]);
        let errors = forbidden(&spec, &denied);
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn egress_to_a_denied_network_is_refused_with_its_field() {
        let rule = json!({"name": "e", "cidr": "192.0.2.1/32", "port": 443});
        assert_eq!(
            found(&json!({"egress": [rule]})),
            [
                "spec.tasks[a].sandbox: egress[e].cidr: 192.0.2.1/32 lies within 192.0.2.1/32 (the API server), which no \
                 sandbox may reach: remove the rule"
            ]
        );
    }

    #[test]
    fn egress_to_anything_else_is_allowed() {
        let rule = json!({"name": "e", "cidr": "192.0.2.2/32", "port": 443});
        assert!(found(&json!({"egress": [rule]})).is_empty());
    }
}
