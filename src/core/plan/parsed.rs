//! A run's spec with its expressions parsed and its graph built: the one form that planning works on.

use super::graph::Graph;
use super::lead;
use super::validate::FieldError;
use crate::expr::{Expression, TaskRef, Template, TemplateError, TextTemplate, Variables};
use agentrun_api::{AgentRunSpec, TaskTemplate};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The expressions of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskExpressions {
    /// `input`.
    pub input: Option<Template>,
    /// `agent.prompt`, or the run's `goal`.
    pub prompt: Option<TextTemplate>,
    /// `if`.
    pub guard: Option<Expression>,
    /// `forEach.items`.
    pub items: Option<Expression>,
    /// `forEach.key`.
    pub key: Option<Expression>,
}

/// All expressions of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expressions {
    /// By task name.
    pub tasks: BTreeMap<String, TaskExpressions>,
    /// `output`.
    pub output: Option<Template>,
    /// The task of the lead, where there is a goal.
    pub lead: Option<TaskTemplate>,
    references: BTreeMap<String, BTreeSet<String>>,
}

impl Expressions {
    /// Parses every expression; the errors name their fields.
    pub fn parse(spec: &AgentRunSpec) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let lead = lead::task(spec);
        let mut parsed = Self::default();
        for task in spec.tasks.iter().chain(&lead) {
            let (expressions, names) = parse_task(spec, task, &mut errors);
            parsed.references.insert(task.name.clone(), names);
            parsed.tasks.insert(task.name.clone(), expressions);
        }
        if let Some(output) = &spec.output {
            let value = Value::String(output.clone());
            parsed.output = keep(
                Template::parse(&value, Variables::Run),
                "spec.output",
                &mut errors,
            );
            let tasks = spec.tasks.iter().chain(&lead);
            let known: BTreeSet<_> = tasks.map(|task| task.name.as_str()).collect();
            let unknown = parsed
                .output
                .iter()
                .flat_map(Template::tasks)
                .filter(|task| !known.contains(task.task.as_str()));
            errors.extend(unknown.map(|task| {
                FieldError::new(
                    "spec.output",
                    format!("reads tasks.{}, which is not in the plan", task.task),
                )
            }));
        }
        parsed.lead = lead;
        if errors.is_empty() {
            Ok(parsed)
        } else {
            Err(errors)
        }
    }

    /// The expressions of a task.
    pub fn task(&self, name: &str) -> &TaskExpressions {
        const NONE: &TaskExpressions = &TaskExpressions {
            input: None,
            prompt: None,
            guard: None,
            items: None,
            key: None,
        };
        self.tasks.get(name).unwrap_or(NONE)
    }

    /// All tasks of the plan, the lead's included.
    pub fn tasks_of<'a>(&'a self, spec: &'a AgentRunSpec) -> impl Iterator<Item = &'a TaskTemplate> {
        spec.tasks.iter().chain(&self.lead)
    }

    /// The graph of the plan.
    pub fn graph<'a>(&'a self, spec: &'a AgentRunSpec) -> Result<Graph<'a>, Vec<FieldError>> {
        Graph::build(self.tasks_of(spec), &self.references).map_err(|errors| {
            let field = |task: &str| match lead::is_lead(spec, task) {
                true => "spec.goal".to_owned(),
                false => format!("spec.tasks[{task}].dependsOn"),
            };
            errors
                .into_iter()
                .map(|error| FieldError::new(field(error.task()), error.to_string()))
                .collect()
        })
    }
}

/// Parses the expressions of a task and collects the tasks that they read, `inputFrom.task` included.
fn parse_task(
    spec: &AgentRunSpec,
    task: &TaskTemplate,
    errors: &mut Vec<FieldError>,
) -> (TaskExpressions, BTreeSet<String>) {
    let field = |name: &str| format!("spec.tasks[{}].{name}", task.name);
    let variables = if task.for_each.is_some() {
        Variables::Item
    } else {
        Variables::Run
    };
    let for_each = task.for_each.as_ref();
    let input = task
        .input
        .as_ref()
        .and_then(|input| keep(Template::parse(&input.0, variables), &field("input"), errors));
    let prompt = task.agent.as_ref().and_then(|work| {
        let field = match lead::is_lead(spec, &task.name) {
            true => "spec.goal".to_owned(),
            false => field("agent.prompt"),
        };
        keep(TextTemplate::parse(&work.prompt, variables), &field, errors)
    });
    let mut one = |text: Option<&String>, variables, name: &str| {
        keep(Expression::parse_field(text?, variables), &field(name), errors)
    };
    let guard = one(task.if_.as_ref(), variables, "if");
    let items = one(
        for_each.and_then(|each| each.items.as_ref()),
        Variables::Run,
        "forEach.items",
    );
    let key = one(
        for_each.and_then(|each| each.key.as_ref()),
        Variables::Item,
        "forEach.key",
    );
    let mut names: BTreeSet<String> = input.iter().flat_map(Template::tasks).map(name).collect();
    names.extend(prompt.iter().flat_map(TextTemplate::tasks).map(name));
    names.extend(
        [&guard, &items, &key]
            .into_iter()
            .flatten()
            .flat_map(Expression::tasks)
            .map(name),
    );
    names.extend(task.input_from.as_ref().and_then(|from| from.task.clone()));
    (
        TaskExpressions {
            input,
            prompt,
            guard,
            items,
            key,
        },
        names,
    )
}

fn name(task: TaskRef) -> String {
    task.task
}

fn keep<T>(parsed: Result<T, TemplateError>, field: &str, errors: &mut Vec<FieldError>) -> Option<T> {
    parsed
        .map_err(|error| errors.push(FieldError::new(field, error.to_string())))
        .ok()
}
