//! What to do next for a run: which sub-tasks to make, which to stop, and whether it is over.
//!
//! Everything follows from the spec and from the sub-tasks that exist; nothing is remembered between two
//! rounds. A sub-task is made when it may start, so its existence is its permission.

use super::acceptance::{self, Check};
use super::delegates::{Delegates, is_delegate};
use super::graph::Graph;
use super::lead::{self, Told};
use super::outcome::{TaskEnd, allowed_failures, collect, end_of};
use super::output::{self, RunOutput};
use super::parsed::{Expressions, TaskExpressions};
use super::rerun::{self, Reruns};
use super::resolve::{Evaluated, ItemId, PinnedFunction, subtask_spec};
use super::subtask::Decided;
use crate::agents::delegate::MAX_PROMPT;
use crate::expr::{ExprError, Output, RunFacts, RunScope, Scope, TaskResult, TemplateError};
use crate::names;
use agentrun_api::{
    AgentRunSpec, FailedReason, FailurePolicy, Outcome, RunRef, SubTask, SubTaskReason, SubTaskSpec,
    TaskTemplate, Verdict, When,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How many sub-tasks of a run may run at once when nothing says otherwise (docs/reference.md).
pub const DEFAULT_MAX_PARALLEL: usize = 5;

/// The most items of a `forEach` that this version takes: one window.
pub const MAX_ITEMS: usize = 200;

/// The largest evaluated input that an object may carry, in bytes of JSON (docs/reference.md).
pub const MAX_INPUT_BYTES: usize = 64 * 1024;

/// The most sub-tasks that one round makes: a round stays short, the next follows at once.
pub const MAX_NEW_PER_ROUND: usize = 50;

/// All that the decision depends on.
pub struct RunView<'a> {
    /// `metadata.name`.
    pub name: &'a str,
    /// `metadata.namespace`.
    pub namespace: &'a str,
    /// `metadata.uid`.
    pub uid: &'a str,
    /// Name of its thread, or its UID.
    pub thread: &'a str,
    /// The spec.
    pub spec: &'a AgentRunSpec,
    /// Its parsed expressions.
    pub expressions: &'a Expressions,
    /// Its sub-tasks.
    pub children: &'a [&'a SubTask],
    /// Functions of pinned skills, by (skill, function).
    pub functions: &'a BTreeMap<(String, String), PinnedFunction<'a>>,
    /// Nothing may start any more: cancelled, deleted, or out of time.
    pub stopped: bool,
    /// `spec.suspend`.
    pub suspended: bool,
}

/// A sub-task to make.
#[derive(Clone, Debug, PartialEq)]
pub struct NewSubTask {
    /// Its deterministic name.
    pub name: String,
    /// Its spec.
    pub spec: Box<SubTaskSpec>,
    /// Its outcome, where it needs no Pod.
    pub decided: Option<Decided>,
}

/// How a run ended, apart from its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// Every task ended well, or its failure was handled.
    Succeeded,
    /// A task failed.
    TaskFailed,
    /// A task failed under `FailFast`.
    FailedFast,
    /// Every task ended well, but what the run requires does not all hold.
    NotAccepted,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPlan {
    /// Sub-tasks to make, in order.
    pub create: Vec<NewSubTask>,
    /// Names of sub-tasks to stop because a sibling failed.
    pub stop: Vec<String>,
    /// Names of delegates to stop because nobody waits for them any more.
    pub orphans: Vec<String>,
    /// Set when every task has ended and every lease is gone.
    pub end: Option<RunEnd>,
    /// Tasks that ended badly and were not handled, for the message.
    pub failed: Vec<String>,
    /// The lead ended without an answer since tokens or money were used up.
    pub budget_exceeded: bool,
    /// What the lead says in the end.
    pub summary: Option<String>,
    /// By task: what it came to, or `None` while it goes on.
    pub ends: BTreeMap<String, Option<TaskEnd>>,
    /// Items of each `forEach` task, once known.
    pub totals: BTreeMap<String, usize>,
    /// What the run's own criteria say, once they are checked.
    pub acceptance: Option<Vec<Verdict>>,
    /// The run's output, once it has succeeded.
    pub output: Option<RunOutput>,
}

/// Decides what to do next for a run.
pub fn plan(view: &RunView<'_>) -> RunPlan {
    let Ok(graph) = view.expressions.graph(view.spec) else {
        return RunPlan::default(); // `validate` refuses such a spec before it comes here
    };
    let params = view.spec.params.clone().map_or(Value::Null, Value::Object);
    let facts = RunFacts {
        name: view.name,
        namespace: view.namespace,
        uid: view.uid,
        thread: view.thread,
    };
    let tasks: BTreeMap<_, _> = view
        .expressions
        .tasks_of(view.spec)
        .map(|task| (task.name.as_str(), task))
        .collect();
    let delegates = Delegates::of(view.spec, view.children);
    let planned: Vec<_> = view
        .children
        .iter()
        .copied()
        .filter(|child| !is_delegate(child))
        .collect();
    let order: Vec<_> = graph
        .order()
        .into_iter()
        .filter_map(|name| tasks.get(name).copied())
        .collect();
    let go = |failed_fast: bool| {
        let mut round = Round {
            view,
            graph: &graph,
            children: by_task(&planned),
            planned: &planned,
            delegates: &delegates,
            scope: RunScope::new(facts, &params),
            results: BTreeMap::new(),
            free: delegates.free_places(),
            failed_fast,
            awaits_check: false,
            plan: RunPlan::default(),
        };
        for task in &order {
            round.task(task);
        }
        round
    };
    let round = go(false);
    // A failure stops tasks that were decided before it was seen: decide again with that knowledge.
    if round.failed_fast {
        go(true).finish()
    } else {
        round.finish()
    }
}

type Children<'a> = BTreeMap<&'a str, Vec<&'a SubTask>>;

fn by_task<'a>(children: &'a [&'a SubTask]) -> Children<'a> {
    let mut by_task: Children<'a> = BTreeMap::new();
    for child in children {
        by_task.entry(child.spec.task.as_str()).or_default().push(child);
    }
    by_task
}

fn is_live(child: &SubTask) -> bool {
    end_of(child).is_none()
}

/// What the dependencies of a task allow.
enum Gate {
    Wait,
    Open,
    Never(Decided),
}

struct Round<'a> {
    view: &'a RunView<'a>,
    graph: &'a Graph<'a>,
    children: Children<'a>,
    /// The plan's own sub-tasks, and what runs criteria again.
    planned: &'a [&'a SubTask],
    delegates: &'a Delegates<'a>,
    scope: RunScope<'a>,
    results: BTreeMap<&'a str, Output<'a>>,
    free: usize,
    failed_fast: bool,
    /// The run's own criteria are not checked yet.
    awaits_check: bool,
    plan: RunPlan,
}

impl<'a> Round<'a> {
    fn children_of(&self, task: &str) -> &[&'a SubTask] {
        self.children.get(task).map_or(&[], Vec::as_slice)
    }

    /// Decides for one task; its dependencies have been decided before.
    fn task(&mut self, task: &'a TaskTemplate) {
        let end = match &task.for_each {
            None => self.single(task),
            Some(_) => self.fan_out(task),
        };
        if self.view.spec.failure_policy == Some(FailurePolicy::FailFast)
            && matches!(end, Some(TaskEnd::Failed(_)))
        {
            self.failed_fast = true;
        }
        let children = self.children_of(&task.name).to_vec();
        if self.failed_fast && !self.is_handler(&task.name) {
            self.stop(&children);
        } else {
            self.run_again(&children);
        }
        self.plan.ends.insert(task.name.clone(), end);
    }

    /// Stops what goes on of a task.
    fn stop(&mut self, children: &[&SubTask]) {
        let stop = self.with_reruns(children);
        self.plan.stop.extend(stop);
    }

    /// Names of what goes on of these, and of what runs their criteria again.
    fn with_reruns(&self, children: &[&SubTask]) -> Vec<String> {
        let is_theirs = |other: &SubTask| children.iter().any(|child| rerun::is_rerun_of(other, child));
        let checks = self.view.children.iter().filter(|other| is_theirs(other));
        let live = children.iter().chain(checks).filter(|child| is_live(child));
        live.filter_map(|child| child.metadata.name.clone()).collect()
    }

    /// Sees to what agents have asked for: it has no place in the graph.
    fn delegates(&mut self) {
        let orphans = self.delegates.orphans();
        let (orphaned, kept): (Vec<_>, Vec<_>) = self.delegates.all().iter().copied().partition(|child| {
            child
                .metadata
                .name
                .as_ref()
                .is_some_and(|name| orphans.contains(name))
        });
        self.plan.orphans = self.with_reruns(&orphaned);
        self.run_again(&kept);
    }

    /// Makes what runs the next criterion of sub-tasks again that wait for that.
    fn run_again(&mut self, children: &[&SubTask]) {
        if self.view.stopped || self.view.suspended {
            return;
        }
        for child in children {
            let is_going = child.metadata.deletion_timestamp.is_some();
            let Some(Reruns::Due { criterion, name }) = rerun::reruns(child, self.view.children) else {
                continue;
            };
            if !is_going && !self.is_full() {
                self.plan.create.push(NewSubTask {
                    name,
                    spec: Box::new(rerun::subtask_spec(child, criterion)),
                    decided: None,
                });
            }
        }
    }

    /// Tasks that wait for a failure, or for any end, still run when the run fails fast.
    fn is_handler(&self, task: &str) -> bool {
        if lead::is_lead(self.view.spec, task) {
            return false;
        }
        self.graph
            .edges(task)
            .iter()
            .any(|edge| edge.when != When::Succeeded)
    }

    fn gate(&self, task: &TaskTemplate) -> Gate {
        for edge in self.graph.edges(&task.name) {
            let end = self.plan.ends.get(edge.task).copied().flatten();
            if end.is_some_and(|end| !end.satisfies(edge.when)) {
                let found = end.map_or("", TaskEnd::told);
                let message = format!("task {} ended with {found}, needed was {}", edge.task, edge.when);
                return Gate::Never(skipped(SubTaskReason::DependencyFailed, message));
            }
        }
        if self.failed_fast && !self.is_handler(&task.name) {
            return Gate::Never(skipped(
                SubTaskReason::RunFailedFast,
                "another task failed".into(),
            ));
        }
        let ended = |task: &str| self.plan.ends.get(task).copied().flatten().is_some();
        match self.graph.edges(&task.name).iter().all(|edge| ended(edge.task)) {
            true => Gate::Open,
            false => Gate::Wait,
        }
    }

    fn single(&mut self, task: &'a TaskTemplate) -> Option<TaskEnd> {
        if let Some(child) = self.children_of(&task.name).first().copied() {
            let end = end_of(child)?;
            self.publish(task, end, output::of_task(end, child), &[child]);
            return Some(end);
        }
        if self.view.stopped {
            return None;
        }
        match self.gate(task) {
            Gate::Wait => {}
            Gate::Never(decided) => self.create_decided(task, None, decided),
            Gate::Open => {
                let expressions = self.view.expressions.task(&task.name);
                let made = Self::evaluate(expressions, &self.scope.scope());
                let made = made.map(|made| self.with_results(task, made));
                self.create(task, None, made);
            }
        }
        None
    }

    fn fan_out(&mut self, task: &'a TaskTemplate) -> Option<TaskEnd> {
        // A sub-task without an index stands for the whole task: it never came to items.
        if let Some(child) = self
            .children_of(&task.name)
            .iter()
            .copied()
            .find(|child| child.spec.index.is_none())
        {
            let end = end_of(child)?;
            self.publish(task, end, Output::None, &[child]);
            return Some(end);
        }
        match self.gate(task) {
            Gate::Wait => return None,
            // Once items exist, their own ends decide; a gate can only close by a late fast failure.
            Gate::Never(decided) if self.children_of(&task.name).is_empty() => {
                if !self.view.stopped {
                    self.create_decided(task, None, decided);
                }
                return None;
            }
            Gate::Never(_) | Gate::Open => {}
        }
        let items = match self.items(task) {
            Ok(items) => items,
            Err(decided) => {
                if !self.view.stopped {
                    self.create_decided(task, None, decided);
                }
                return None;
            }
        };
        self.plan.totals.insert(task.name.clone(), items.len());
        self.items_round(task, &items)
    }

    /// The items and their keys.
    fn items(&self, task: &TaskTemplate) -> Result<Vec<(Value, Option<String>)>, Decided> {
        let expressions = self.view.expressions.task(&task.name);
        let items = match &expressions.items {
            Some(items) => items
                .evaluate_items(&self.scope.scope())
                .map_err(|error| failed("forEach.items", &error))?,
            None => Vec::new(),
        };
        if items.len() > MAX_ITEMS {
            let message = format!(
                "forEach.items has {} items, at most {MAX_ITEMS} are allowed",
                items.len()
            );
            return Err(error(SubTaskReason::ExpressionFailed, message));
        }
        let mut seen = BTreeSet::new();
        let mut keyed = Vec::with_capacity(items.len());
        for (index, item) in (0u32..).zip(items) {
            let key = match &expressions.key {
                None => None,
                Some(key) => {
                    let key = key.evaluate_key(&self.scope.item(&item, index));
                    Some(key.map_err(|error| failed("forEach.key", &error))?)
                }
            };
            if key.as_ref().is_some_and(|key| !seen.insert(key.clone())) {
                let message = format!(
                    "forEach.key gives {:?} for two items: keys must differ",
                    key.unwrap_or_default()
                );
                return Err(error(SubTaskReason::ExpressionFailed, message));
            }
            keyed.push((item, key));
        }
        Ok(keyed)
    }

    fn items_round(&mut self, task: &'a TaskTemplate, items: &[(Value, Option<String>)]) -> Option<TaskEnd> {
        let mut by_index: Vec<Option<&'a SubTask>> = vec![None; items.len()];
        for child in self.children_of(&task.name) {
            let index = child.spec.index.and_then(|index| usize::try_from(index).ok());
            if let Some(place) = index.and_then(|index| by_index.get_mut(index)) {
                *place = Some(child);
            }
        }
        let failures = by_index
            .iter()
            .flatten()
            .filter(|child| matches!(end_of(child), Some(TaskEnd::Failed(_))))
            .count();
        let for_each = task.for_each.as_ref();
        let allowed = allowed_failures(for_each.and_then(|each| each.max_failures.as_ref()), items.len());
        if by_index
            .iter()
            .all(|child| child.is_some_and(|child| !is_live(child)))
        {
            let end = if failures > allowed {
                TaskEnd::Failed(Outcome::Error)
            } else {
                TaskEnd::Succeeded
            };
            let children: Vec<_> = by_index.iter().flatten().copied().collect();
            self.publish(task, end, collect(&by_index), &children);
            return Some(end);
        }
        if self.view.stopped {
            return None;
        }
        let limit = for_each
            .and_then(|each| each.max_parallel)
            .and_then(|limit| usize::try_from(limit).ok());
        let live = by_index.iter().flatten().filter(|child| is_live(child)).count();
        let mut free_here = limit.unwrap_or(usize::MAX).saturating_sub(live);
        for (index, (item, key)) in (0u32..).zip(items) {
            if by_index.get(index as usize).is_some_and(Option::is_some) || self.is_full() {
                continue;
            }
            let id = ItemId {
                index,
                key: key.clone(),
            };
            if failures > allowed {
                let message = format!("{failures} items failed, {allowed} may");
                self.create_decided(task, Some(&id), skipped(SubTaskReason::TooManyFailures, message));
                continue;
            }
            if self.failed_fast && !self.is_handler(&task.name) {
                self.create_decided(
                    task,
                    Some(&id),
                    skipped(SubTaskReason::RunFailedFast, "another task failed".into()),
                );
                continue;
            }
            if free_here == 0 {
                continue;
            }
            let expressions = self.view.expressions.task(&task.name);
            let made = Self::evaluate(expressions, &self.scope.item(item, index));
            if self.create(task, Some(&id), made) {
                free_here -= 1;
            }
        }
        None
    }

    fn is_full(&self) -> bool {
        self.plan.create.len() >= MAX_NEW_PER_ROUND
    }

    /// The lead is told what the tasks before it came to.
    fn with_results(&self, task: &TaskTemplate, made: Evaluated) -> Evaluated {
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
    fn evaluate(expressions: &TaskExpressions, scope: &Scope<'_>) -> Result<Evaluated, Decided> {
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
    fn create(
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

    fn create_decided(&mut self, task: &TaskTemplate, item: Option<&ItemId>, decided: Decided) {
        if !self.is_full() {
            self.push(task, item, Evaluated::default(), Some(decided));
        }
    }

    fn push(
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
    fn publish(&mut self, task: &'a TaskTemplate, end: TaskEnd, output: Output<'a>, children: &[&SubTask]) {
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

    fn finish(mut self) -> RunPlan {
        self.delegates();
        let failed = self
            .plan
            .ends
            .iter()
            .filter(|(_, end)| matches!(end, Some(TaskEnd::Failed(_))));
        let unhandled = failed
            .filter(|(task, _)| !self.is_handled(task))
            .map(|(task, _)| task.clone());
        self.plan.failed = unhandled.collect();
        let ended = match self.view.stopped {
            true => self.view.children.iter().all(|child| !is_live(child)),
            false => self.plan.ends.values().all(Option::is_some) && !self.delegates.is_any_live(),
        };
        // The lead's criteria are the run's: what it did not meet, the run did not.
        if self.is_lead_unaccepted() {
            self.plan.failed.clear();
        }
        if ended && self.plan.failed.is_empty() && !self.view.stopped {
            self.check();
        }
        let over = self.plan.create.is_empty() && ended;
        let released = self
            .view
            .children
            .iter()
            .all(|child| child.metadata.deletion_timestamp.is_some() || !has_lease(child));
        let accepted = |verdicts: &Vec<_>| acceptance::is_accepted(self.view.spec, verdicts);
        let end = match (self.plan.failed.is_empty(), self.failed_fast) {
            (true, _) if !self.plan.acceptance.as_ref().is_none_or(accepted) => RunEnd::NotAccepted,
            (true, _) => RunEnd::Succeeded,
            (false, true) => RunEnd::FailedFast,
            (false, false) => RunEnd::TaskFailed,
        };
        self.lead_end();
        self.plan.end = (over && released && !self.awaits_check).then_some(end);
        if self.plan.end == Some(RunEnd::Succeeded) && !self.view.stopped {
            let leaves = self.graph.leaves();
            self.plan.output = Some(output::of_run(
                self.view.expressions,
                &leaves,
                &self.results,
                &self.scope.scope(),
            ));
        }
        self.plan
    }

    /// What the run's status says of its lead besides the outcome.
    fn lead_end(&mut self) {
        let lead = self
            .children_of(lead::TASK)
            .first()
            .filter(|_| self.view.spec.goal.is_some());
        let Some(status) = lead.and_then(|lead| lead.status.as_ref()) else {
            return;
        };
        let budget = FailedReason::BudgetExceeded.as_str();
        self.plan.budget_exceeded =
            status.outcome == Some(Outcome::Error) && status.reason.as_deref() == Some(budget);
        self.plan.summary = lead::summary(status);
    }

    fn is_lead_unaccepted(&self) -> bool {
        let only = matches!(self.plan.failed.as_slice(), [task] if lead::is_lead(self.view.spec, task));
        let unaccepted = Some(TaskEnd::Failed(Outcome::Success));
        only && self.plan.ends.get(lead::TASK).copied().flatten() == unaccepted
    }

    /// All tasks ended well: what the run as a whole asks for is checked next.
    fn check(&mut self) {
        match acceptance::check(self.view.spec, self.planned) {
            Check::None => {}
            Check::Due => {
                self.awaits_check = true;
                if !self.view.suspended {
                    self.push(
                        &acceptance::task(self.view.spec),
                        None,
                        Evaluated::default(),
                        None,
                    );
                }
            }
            Check::Running(child) => {
                self.awaits_check = true;
                self.run_again(&[child]);
            }
            Check::Done(verdicts) => self.plan.acceptance = Some(verdicts),
        }
    }

    /// A failure is handled when a task that waits for it `when: Failed` has succeeded.
    fn is_handled(&self, task: &str) -> bool {
        self.graph.dependants(task).any(|(handler, when)| {
            when == When::Failed && self.plan.ends.get(handler).copied().flatten() == Some(TaskEnd::Succeeded)
        })
    }
}

/// Whether our lease finalizer is on a sub-task.
pub fn has_lease(child: &SubTask) -> bool {
    let finalizers = child.metadata.finalizers.iter().flatten();
    finalizers
        .into_iter()
        .any(|finalizer| finalizer == agentrun_api::names::labels::LEASE)
}

fn skipped(reason: SubTaskReason, message: String) -> Decided {
    Decided {
        outcome: Outcome::Skipped,
        reason,
        message,
    }
}

fn error(reason: SubTaskReason, message: String) -> Decided {
    Decided {
        outcome: Outcome::Error,
        reason,
        message,
    }
}

fn failed(field: &str, failure: &TemplateError) -> Decided {
    let reason = match failure.error {
        ExprError::OutputNotInline { .. } => SubTaskReason::OutputNotInline,
        _ => SubTaskReason::ExpressionFailed,
    };
    error(reason, format!("{field}: {failure}"))
}
