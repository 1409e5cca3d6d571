//! What to do next for a run: which sub-tasks to make, which to stop, and whether it is over.
//!
//! Everything follows from the spec and from the sub-tasks that exist; nothing is remembered between two
//! rounds. A sub-task is made when it may start, so its existence is its permission.

mod end;
mod items;
mod make;

use self::make::skipped;
use super::delegates::{Delegates, is_delegate};
use super::graph::Graph;
use super::lead;
use super::outcome::{TaskEnd, end_of};
use super::output::{self, RunOutput};
use super::parsed::Expressions;
use super::rerun::{self, Reruns};
use super::resolve::PinnedFunction;
use super::subtask::Decided;
use crate::expr::{Output, RunFacts, RunScope};
use agentrun_api::{
    AgentRunSpec, FailurePolicy, SubTask, SubTaskReason, SubTaskSpec, TaskTemplate, Verdict, When,
};
use serde_json::Value;
use std::collections::BTreeMap;

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
}

/// Whether our lease finalizer is on a sub-task.
pub fn has_lease(child: &SubTask) -> bool {
    let finalizers = child.metadata.finalizers.iter().flatten();
    finalizers
        .into_iter()
        .any(|finalizer| finalizer == agentrun_api::names::labels::LEASE)
}
