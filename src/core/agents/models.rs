//! Which Model serves an agent: the one that was asked for, else the one that the run gives the role, else the
//! namespace's Model with the role, else its default Model.

use super::caps::Caps;
use super::{role, tools, types};
use agentrun_api::{AdmittedReason, AgentRunSpec, Model, SubTaskRole};
use agentrun_protocol::chat::Role;
use std::collections::BTreeMap;

/// Tokens of a conversation when a Model says none (docs/reference.md).
pub const DEFAULT_CONTEXT_TOKENS: u64 = 32_000;

/// Why no Model serves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoModel {
    /// The Model that was named is not there.
    #[error("Model {name} does not exist; it was named for role {role}")]
    Unknown {
        /// The name.
        name: String,
        /// The role.
        role: Role,
    },
    /// Nothing serves the role.
    #[error(
        "no Model of the namespace serves role {role}: give one `roles: [{role}]`, make one `default: true`, or name one \
         in spec.models.{role}"
    )]
    Missing {
        /// The role.
        role: Role,
    },
    /// More than one does.
    #[error(
        "Models {} all serve role {role} ({by}): name one in spec.models.{role}, or leave it to one of them", names.join(" and ")
    )]
    Ambiguous {
        /// The role.
        role: Role,
        /// By which field.
        by: &'static str,
        /// Their names, sorted.
        names: Vec<String>,
    },
}

impl NoModel {
    /// The reason of `Admitted` that goes with it.
    pub fn reason(&self) -> AdmittedReason {
        match self {
            Self::Unknown { .. } | Self::Missing { .. } => AdmittedReason::ModelNotFound,
            Self::Ambiguous { .. } => AdmittedReason::AmbiguousModel,
        }
    }
}

/// Chooses among the Models of a namespace. `asked` is the Model that the agent itself names, `by_role` are the run's
/// `models`.
pub fn choose<'a>(
    models: &[&'a Model],
    asked: Option<&str>,
    by_role: &BTreeMap<String, String>,
    role: Role,
) -> Result<&'a Model, NoModel> {
    if let Some(wanted) = asked.or_else(|| by_role.get(role.as_str()).map(String::as_str)) {
        let mut known = models.iter().filter(|model| name(model) == wanted);
        return known.next().copied().ok_or_else(|| NoModel::Unknown {
            name: wanted.to_owned(),
            role,
        });
    }
    let is_default = |model: &&&Model| model.spec.default == Some(true);
    let with_role: Vec<_> = models
        .iter()
        .filter(|model| has_role(model, role))
        .copied()
        .collect();
    if let Some(model) = only(&with_role, role, "roles")? {
        return Ok(model);
    }
    let defaults: Vec<_> = models.iter().filter(is_default).copied().collect();
    only(&defaults, role, "default")?.ok_or(NoModel::Missing { role })
}

/// Whether a role has a Model of its own: the run names one, or one of the namespace's has the role. A default Model is
/// none: plans and reviews are made for those who asked for them.
pub fn has_own(models: &[&Model], by_role: &BTreeMap<String, String>, role: Role) -> bool {
    by_role.contains_key(role.as_str()) || models.iter().any(|model| has_role(model, role))
}

fn has_role(model: &Model, role: Role) -> bool {
    model.spec.roles.iter().any(|known| known == role.as_str())
}

fn only<'a>(found: &[&'a Model], role: Role, by: &'static str) -> Result<Option<&'a Model>, NoModel> {
    match found {
        [] => Ok(None),
        [model] => Ok(Some(model)),
        several => {
            let mut names: Vec<String> = several.iter().map(|model| name(model).to_owned()).collect();
            names.sort_unstable();
            Err(NoModel::Ambiguous { role, by, names })
        }
    }
}

/// A Model that a run needs before it can start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Need {
    /// For agents of this role.
    pub role: Role,
    /// The Model that they name.
    pub asked: Option<String>,
}

/// The Models that a run's agents need, without repetition. Summaries do without: the agent's own Model makes them where
/// nothing serves the role.
pub fn needs(run: &AgentRunSpec) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |role, asked: Option<&String>| {
        let need = Need {
            role,
            asked: asked.cloned(),
        };
        if !needs.contains(&need) {
            needs.push(need);
        }
    };
    let lead = run.lead.clone().unwrap_or_default().agent;
    let mut delegates = false;
    if run.goal.is_some() {
        need(Role::Lead, lead.model.as_ref());
        delegates |= tools::asks_to_delegate(SubTaskRole::Lead, lead.tools.as_deref());
        let named = [Role::Planner, Role::Reviewer];
        for role in named
            .into_iter()
            .filter(|role| run.models.contains_key(role.as_str()))
        {
            need(role, None);
        }
    }
    for work in run.tasks.iter().filter_map(|task| task.agent.as_ref()) {
        need(Role::Executor, work.agent.model.as_ref());
        delegates |= tools::asks_to_delegate(SubTaskRole::Task, work.agent.tools.as_deref());
    }
    if delegates && Caps::of(run).depth > 0 {
        for kind in types::of_run(run) {
            need(role::of_type(&kind.name), kind.agent.model.as_ref());
        }
    }
    needs
}

fn name(model: &Model) -> &str {
    model.metadata.name.as_deref().unwrap_or_default()
}
