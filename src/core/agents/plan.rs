//! What a planner answers: steps, and what each waits for. The rules are those of `spec.tasks`.

use crate::plan::graph::{Graph, GraphError};
use agentrun_api::{DNS_LABEL, Dependency, TaskTemplate};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Steps of a plan.
pub const MAX_STEPS: usize = 20;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanStep {
    /// Its name, unique in its plan.
    pub name: String,
    /// What is to be done.
    pub description: String,
    /// The type of agent that is to do it; the planned agent itself when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Names of the steps that have to be done before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
}

/// Why steps are no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Two steps have one name.
    #[error("two steps are named {0:?}: give each a name of its own")]
    Twice(String),
    /// There is no such type of agent.
    #[error("step {step:?} is for agent {found:?}; there are: {known}. Leave agent out for what needs none")]
    Agent {
        /// The step.
        step: String,
        /// The type that it names.
        found: String,
        /// The types that there are.
        known: String,
    },
    /// The dependencies are no graph without a circle.
    #[error("{}", of_graph(.0))]
    Graph(Vec<GraphError>),
}

fn of_graph(errors: &[GraphError]) -> String {
    let of_one = |error: &GraphError| format!("step {:?}: {error}", error.task());
    errors.iter().map(of_one).collect::<Vec<_>>().join("; ")
}

/// JSON Schema of a planner's answer, an object with `steps`.
pub fn schema() -> Value {
    let name = json!({"type": "string", "pattern": DNS_LABEL, "maxLength": 40});
    json!({
        "type": "object",
        "properties": {"steps": {
            "type": "array", "minItems": 1, "maxItems": MAX_STEPS,
            "items": {
                "type": "object",
                "properties": {
                    "name": name,
                    "description": {"type": "string", "minLength": 1, "maxLength": 200},
                    "agent": {"type": "string"},
                    "dependsOn": {"type": "array", "items": {"type": "string"}, "maxItems": MAX_STEPS}
                },
                "required": ["name", "description"],
                "additionalProperties": false
            }
        }},
        "required": ["steps"],
        "additionalProperties": false
    })
}

/// The steps in the order in which they may be done: what waits for nothing first, then by name. `agents` are the types
/// that work can be given to.
///
/// # Errors
///
/// What makes them no plan, with what is allowed.
pub fn ordered(mut steps: Vec<PlanStep>, agents: &[&str]) -> Result<Vec<PlanStep>, PlanError> {
    let mut names = BTreeSet::new();
    for step in &steps {
        if !names.insert(step.name.as_str()) {
            return Err(PlanError::Twice(step.name.clone()));
        }
        if let Some(found) = step.agent.as_deref().filter(|agent| !agents.contains(agent)) {
            return Err(PlanError::Agent {
                step: step.name.clone(),
                found: found.to_owned(),
                known: agents.join(", "),
            });
        }
    }
    let tasks: Vec<TaskTemplate> = steps.iter().map(task).collect();
    let no_references = BTreeMap::new();
    let order = Graph::build(&tasks, &no_references)
        .map_err(PlanError::Graph)?
        .order();
    steps.sort_by_key(|step| order.iter().position(|name| *name == step.name));
    Ok(steps)
}

fn task(step: &PlanStep) -> TaskTemplate {
    let wait = |task: &String| Dependency {
        task: task.clone(),
        when: None,
    };
    TaskTemplate {
        name: step.name.clone(),
        depends_on: step.depends_on.iter().map(wait).collect(),
        ..TaskTemplate::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, depends_on: &[&str]) -> PlanStep {
        PlanStep {
            name: name.to_owned(),
            description: format!("do {name}"),
            agent: None,
            depends_on: depends_on.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn steps_come_in_the_order_in_which_they_may_be_done() {
        let steps = vec![
            step("report", &["chart", "clean"]),
            step("chart", &["clean"]),
            step("clean", &[]),
        ];
        let names: Vec<_> = ordered(steps, &[])
            .unwrap()
            .into_iter()
            .map(|step| step.name)
            .collect();
        assert_eq!(names, ["clean", "chart", "report"]);
    }

    #[test]
    fn what_is_no_plan_is_refused_with_what_is_allowed() {
        let of = |steps| ordered(steps, &["bash"]).unwrap_err().to_string();
        assert!(of(vec![step("a", &[]), step("a", &[])]).starts_with("two steps are named \"a\""));
        assert!(of(vec![step("a", &["b"]), step("b", &["a"])]).contains("a → b → a"));
        assert!(of(vec![step("a", &["z"])]).contains("(there are: a)"));
        let stranger = PlanStep {
            agent: Some("painter".to_owned()),
            ..step("a", &[])
        };
        assert!(of(vec![stranger]).contains("\"painter\"; there are: bash"));
    }
}
