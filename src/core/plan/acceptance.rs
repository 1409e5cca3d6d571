//! A run's own acceptance criteria: checked after the last task by one more sub-task, whose work is nothing and whose
//! criteria are the run's. It has a sandbox on the run's volume like any other, so cancel, suspend, deadlines, losses
//! and leases need no rule of their own.

use super::lead;
use super::outcome::end_of;
use super::rerun;
use super::validate::FieldError;
use crate::acceptance::{Criterion, Standing, of_report, parse, rerun_command, standing};
use crate::settle;
use agentrun_api::names::paths::EXECUTOR;
use agentrun_api::{AcceptancePolicy, AgentRunSpec, CommandWork, Outcome, SubTask, TaskTemplate, Verdict};

/// Name of the task that checks; no task of a plan with criteria may have it.
pub const TASK: &str = "agentrun-acceptance";

/// How long checking may take, start-up aside.
const TIMEOUT: &str = "2m";

/// Where the check stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Check<'a> {
    /// There is nothing to check.
    None,
    /// Its sub-task has to be made.
    Due,
    /// It goes on.
    Running(&'a SubTask),
    /// It is over.
    Done(Vec<Verdict>),
}

/// Where the check of a run stands whose tasks have all ended well.
pub(super) fn check<'a>(spec: &AgentRunSpec, children: &[&'a SubTask]) -> Check<'a> {
    if spec.acceptance.is_empty() {
        return Check::None;
    }
    // Nothing runs after the lead: what it left is what the run leaves, and was checked then.
    let name = if spec.goal.is_some() { lead::TASK } else { TASK };
    let Some(child) = children.iter().find(|child| child.spec.task == name) else {
        return Check::Due;
    };
    if end_of(child).is_none() {
        return Check::Running(child);
    }
    let status = child.status.as_ref();
    let checked = status.filter(|status| status.outcome == Some(Outcome::Success));
    let reported = checked.map_or(&[][..], |status| &status.acceptance);
    Check::Done(of_report(&spec.acceptance, reported))
}

/// The task that checks. Its program is in every sandbox, whatever the image has, and only prints a list.
pub(super) fn task(spec: &AgentRunSpec) -> TaskTemplate {
    TaskTemplate {
        name: TASK.to_owned(),
        description: Some("Checks the acceptance criteria of the run".to_owned()),
        command: Some(CommandWork {
            argv: vec![EXECUTOR.to_owned(), "tools".to_owned()],
            working_dir: None,
        }),
        timeout: Some(TIMEOUT.into()),
        acceptance: spec.acceptance.clone(),
        acceptance_policy: Some(AcceptancePolicy::Report),
        ..TaskTemplate::default()
    }
}

/// Whether what the criteria say lets a run succeed.
pub(super) fn is_accepted(spec: &AgentRunSpec, verdicts: &[Verdict]) -> bool {
    standing(verdicts).verdict(spec.acceptance_policy) == settle::Verdict::Accepted
}

/// What the run's condition says; nothing without criteria.
pub fn of_run(spec: &AgentRunSpec, verdicts: Option<&[Verdict]>) -> Option<Standing> {
    let has_criteria = !spec.acceptance.is_empty();
    has_criteria.then(|| verdicts.map_or_else(Standing::not_checked, standing))
}

/// Mistakes that only the criteria of a whole run can have.
pub(super) fn mistakes(spec: &AgentRunSpec, errors: &mut Vec<FieldError>) {
    for criterion in &spec.acceptance {
        let fix = match parse(criterion) {
            Ok(Criterion::FileWritten { .. }) => "use file:PATH exists",
            Ok(Criterion::TestsPassed { .. }) => "use it in the task that runs the tests",
            _ => continue,
        };
        let message = format!("{criterion:?} asks what one task did, a run has many: {fix}");
        errors.push(FieldError::new("spec.acceptance", message));
    }
    if !spec.acceptance.is_empty() && spec.tasks.iter().any(|task| task.name == TASK) {
        let message = format!("a task is called {TASK:?}, which is the name of the run's own check");
        errors.push(FieldError::new("spec.tasks", message));
    }
    let tasks = || spec.tasks.iter();
    let mut criteria = tasks().flat_map(|task| &task.acceptance).chain(&spec.acceptance);
    let reruns = criteria.any(|criterion| rerun_command(criterion).is_some());
    if reruns && tasks().any(|task| task.name == rerun::TASK) {
        let found = rerun::TASK;
        let message = format!("a task is called {found:?}, which is the name of what runs criteria again");
        errors.push(FieldError::new("spec.tasks", message));
    }
}
