//! Making a task's sub-tasks, and what its expressions say before.

use super::{MAX_INPUT_BYTES, MAX_NEW_PER_ROUND, NewSubTask, Round};
use crate::agents::delegate::MAX_PROMPT;
use crate::expr::{ExprError, Output, Scope, TaskResult, TemplateError};
use crate::names;
use crate::plan::lead::{self, Told};
use crate::plan::outcome::TaskEnd;
use crate::plan::parsed::TaskExpressions;
use crate::plan::resolve::{Evaluated, ItemId, subtask_spec};
use crate::plan::subtask::Decided;
use agentrun_api::{Outcome, RunRef, SubTask, SubTaskReason, TaskTemplate};
use serde_json::Value;

impl<'a> Round<'a> {
    pub(super) fn is_full(&self) -> bool {
        self.plan.create.len() >= MAX_NEW_PER_ROUND
    }

    /// The lead is told what the tasks before it came to.
    pub(super) fn with_results(&self, task: &TaskTemplate, made: Evaluated) -> Evaluated {
        let is_lead = lead::is_lead(self.view.spec, &task.name);
        let (true, Some(goal)) = (is_lead, &made.prompt) else {
            return made;
        };
        let told = self.view.spec.tasks.iter().filter_map(|task| {
            Some(Told {
                task: &task.name,
                end: self.plan.ends.get(&task.name).copied().flatten()?,
                output: self.results.get(task.name.as_str())?,
                children: self.children_of(&task.name),
            })
        });
        let told: Vec<_> = told.collect();
        Evaluated {
            prompt: Some(lead::prompt(goal.clone(), &told)),
            ..made
        }
    }

    /// Evaluates guard, input and prompt; `Err` is the outcome that needs no Pod.
    pub(super) fn evaluate(expressions: &TaskExpressions, scope: &Scope<'_>) -> Result<Evaluated, Decided> {
        if let Some(guard) = &expressions.guard {
            let holds = guard
                .evaluate_guard(scope)
                .map_err(|error| failed("if", &error))?;
            if !holds {
                return Err(skipped(SubTaskReason::ConditionFalse, "its `if` is false".into()));
            }
        }
        let prompt = match &expressions.prompt {
            Some(prompt) => Some(prompt.render(scope).map_err(|error| failed("prompt", &error))?),
            None => None,
        };
        if let Some(found) = prompt
            .as_ref()
            .map(|prompt| prompt.chars().count())
            .filter(|found| *found > MAX_PROMPT)
        {
            let message = format!(
                "the prompt has {found} characters, at most {MAX_PROMPT} are allowed: put what is long into a file and name \
                 it"
            );
            return Err(error(SubTaskReason::ExpressionFailed, message));
        }
        let Some(input) = &expressions.input else {
            return Ok(Evaluated { input: None, prompt });
        };
        let input = input.evaluate(scope).map_err(|error| failed("input", &error))?;
        let bytes = input.to_string().len();
        if bytes > MAX_INPUT_BYTES {
            let message = format!(
                "input has {bytes} bytes of JSON, at most {MAX_INPUT_BYTES} are allowed: use inputFrom"
            );
            return Err(error(SubTaskReason::ExpressionFailed, message));
        }
        Ok(Evaluated {
            input: Some(input),
            prompt,
        })
    }

    /// Makes a sub-task that runs if a place is free, or one that is decided. Says whether a place was taken.
    pub(super) fn create(
        &mut self,
        task: &TaskTemplate,
        item: Option<&ItemId>,
        made: Result<Evaluated, Decided>,
    ) -> bool {
        match made {
            Err(decided) => self.create_decided(task, item, decided),
            Ok(_) if self.free == 0 || self.view.suspended || self.is_full() => {}
            Ok(evaluated) => {
                self.free -= 1;
                self.push(task, item, evaluated, None);
                return true;
            }
        }
        false
    }

    pub(super) fn create_decided(&mut self, task: &TaskTemplate, item: Option<&ItemId>, decided: Decided) {
        if !self.is_full() {
            self.push(task, item, Evaluated::default(), Some(decided));
        }
    }

    pub(super) fn push(
        &mut self,
        task: &TaskTemplate,
        item: Option<&ItemId>,
        evaluated: Evaluated,
        decided: Option<Decided>,
    ) {
        let view = self.view;
        let key = item.and_then(|item| item.key.as_deref());
        let name = names::subtask_name(view.name, &task.name, view.uid, item.map(|item| item.index), key);
        let function = task
            .function
            .as_ref()
            .and_then(|work| view.functions.get(&(work.skill.clone(), work.name.clone())));
        let run_ref = RunRef {
            name: view.name.to_owned(),
            uid: view.uid.to_owned(),
        };
        let spec = subtask_spec(view.spec, run_ref, task, item, evaluated, function.copied());
        self.plan.create.push(NewSubTask {
            name,
            spec: Box::new(spec),
            decided,
        });
    }

    /// Makes a task's result readable for expressions.
    pub(super) fn publish(
        &mut self,
        task: &'a TaskTemplate,
        end: TaskEnd,
        output: Output<'a>,
        children: &[&SubTask],
    ) {
        let artifacts = children
            .iter()
            .filter_map(|child| child.status.as_ref())
            .flat_map(|status| &status.artifacts);
        let artifacts = serde_json::to_value(artifacts.collect::<Vec<_>>()).unwrap_or(Value::Null);
        self.results.insert(&task.name, output.clone());
        self.scope.insert(
            &task.name,
            TaskResult {
                output,
                outcome: Some(end.word()),
                artifacts,
            },
        );
    }
}

pub(super) fn skipped(reason: SubTaskReason, message: String) -> Decided {
    Decided {
        outcome: Outcome::Skipped,
        reason,
        message,
    }
}

pub(super) fn error(reason: SubTaskReason, message: String) -> Decided {
    Decided {
        outcome: Outcome::Error,
        reason,
        message,
    }
}

pub(super) fn failed(field: &str, failure: &TemplateError) -> Decided {
    let reason = match failure.error {
        ExprError::OutputNotInline { .. } => SubTaskReason::OutputNotInline,
        _ => SubTaskReason::ExpressionFailed,
    };
    error(reason, format!("{field}: {failure}"))
}
