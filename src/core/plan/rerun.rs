//! The criterion `rerun:COMMAND`: after an attempt has succeeded, its sub-task waits without an outcome while its
//! commands run in fresh sandboxes, each as a sub-task of its own. They run one after another in the place of the one
//! that waits, so that no limit needs a rule of its own; neither do cancel, suspend, deadlines, losses and leases.
//!
//! Both reconcilers ask [`reruns`]: the run's makes what is due, the waiting sub-task's writes what was found.

use super::acceptance;
use crate::acceptance::{decide_rerun, is_idle, not_run_again, of_report, rerun_command};
use crate::names;
use crate::text::one_line;
use agentrun_api::{
    Attempt, CommandWork, Outcome, Resources, SandboxSpec, SubTask, SubTaskRef, SubTaskRole, SubTaskSpec,
    SubTaskStatus, Verdict,
};

/// Name of the task of such a sub-task; no task of a plan that has such a criterion may have it.
pub const TASK: &str = "agentrun-rerun";

/// What a sub-task waits for until one of its criteria is run again.
pub const WAITING: &str = "a criterion is run again in a fresh sandbox";

/// The most characters of a description.
const MAX_DESCRIPTION: usize = 200;

/// How far the criteria of an attempt have been run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reruns {
    /// The sub-task for this criterion, by its place in the list, has to be made.
    Due {
        /// Place of the criterion.
        criterion: usize,
        /// Name of the sub-task.
        name: String,
    },
    /// It goes on.
    Running {
        /// Name of the sub-task.
        name: String,
    },
    /// All that can be found is found: what each criterion of the sub-task says.
    Done(Vec<Verdict>),
}

/// The attempt whose success is not settled yet. A sub-task that is stopped before it is settled ends as stopped.
pub fn unsettled(status: &SubTaskStatus) -> Option<&Attempt> {
    if status.outcome.is_some() || status.next_attempt_time.is_some() {
        return None;
    }
    let newest = status.attempts.iter().max_by_key(|attempt| attempt.number)?;
    (newest.outcome == Some(Outcome::Success)).then_some(newest)
}

/// How far the criteria of `subtask` have been run again, by the sub-tasks of its run. `None` unless it waits for that.
pub fn reruns(subtask: &SubTask, children: &[&SubTask]) -> Option<Reruns> {
    let (spec, status) = (&subtask.spec, subtask.status.as_ref()?);
    let attempt = unsettled(status)?.number;
    let is_rerun = |criterion: &String| rerun_command(criterion).is_some();
    if !spec.acceptance.iter().any(is_rerun) {
        return None;
    }
    let mut verdicts = of_report(&spec.acceptance, &status.acceptance);
    for index in 0..verdicts.len() {
        if !is_rerun(&verdicts[index].criterion) {
            continue;
        }
        let others = || verdicts.iter().enumerate().filter(|(other, _)| *other != index);
        let others: Vec<_> = others().map(|(_, verdict)| verdict.clone()).collect();
        if is_idle(spec.acceptance_policy, &others) {
            not_run_again().put(&mut verdicts[index]);
            continue;
        }
        let name = name(subtask, attempt, index);
        let check = children
            .iter()
            .find(|child| child.spec.task == TASK && child.metadata.name.as_ref() == Some(&name));
        let Some(check) = check else {
            return Some(Reruns::Due {
                criterion: index,
                name,
            });
        };
        match check.status.as_ref().and_then(decide_rerun) {
            None => return Some(Reruns::Running { name }),
            Some(found) => found.put(&mut verdicts[index]),
        }
    }
    Some(Reruns::Done(verdicts))
}

fn name(subtask: &SubTask, attempt: i32, criterion: usize) -> String {
    let own = subtask.metadata.name.as_deref().unwrap_or_default();
    names::rerun_name(&subtask.spec.run_ref.name, TASK, own, attempt, criterion)
}

/// Whether a sub-task runs a criterion of another one again: its sandbox sees the user data read-only.
pub fn is_rerun(subtask: &SubTask) -> bool {
    subtask.spec.task == TASK && subtask.spec.role == SubTaskRole::Task && subtask.spec.parent_ref.is_some()
}

/// Whether `subtask` runs a criterion of `parent` again.
pub(super) fn is_rerun_of(subtask: &SubTask, parent: &SubTask) -> bool {
    let named = subtask.spec.parent_ref.as_ref().map(|parent| &parent.name);
    is_rerun(subtask) && named == parent.metadata.name.as_ref()
}

/// The Skills that the sandbox of a sub-task sees: that of its function, or those of its agent; where a criterion is run
/// again, those of `parent`, whose criterion it is: a Skill's own check is a good one.
pub fn skills<'a>(subtask: &'a SubTask, parent: Option<&'a SubTask>) -> Vec<&'a str> {
    let parent = parent.filter(|parent| is_rerun_of(subtask, parent));
    let spec = &parent.unwrap_or(subtask).spec;
    let function = spec.function.iter().map(|work| work.skill.as_str());
    let agent = spec.agent.iter().filter_map(|work| work.agent.skills.as_ref());
    function.chain(agent.flatten().map(String::as_str)).collect()
}

/// The sub-task that runs a criterion of `parent` again: with its image, its sandbox and its time.
pub(super) fn subtask_spec(parent: &SubTask, criterion: usize) -> SubTaskSpec {
    let spec = &parent.spec;
    let text = spec.acceptance.get(criterion).map_or("", String::as_str);
    let command = rerun_command(text).unwrap_or_default();
    let description = format!("Criterion of {}: {text}", spec.task);
    SubTaskSpec {
        run_ref: spec.run_ref.clone(),
        parent_ref: Some(SubTaskRef {
            name: parent.metadata.name.clone().unwrap_or_default(),
            uid: parent.metadata.uid.clone().unwrap_or_default(),
        }),
        task: TASK.to_owned(),
        role: SubTaskRole::Task,
        description: Some(one_line(&description, MAX_DESCRIPTION)),
        command: Some(CommandWork {
            argv: vec!["sh".to_owned(), "-c".to_owned(), command],
            working_dir: spec.command.as_ref().and_then(|work| work.working_dir.clone()),
        }),
        sandbox: spec.sandbox.clone().map(|sandbox| SandboxSpec {
            keep_on_failure: None,
            ..sandbox
        }),
        resources: resources(spec),
        // The run's own check has little time, since it only looks at files, and an agent has much, since it thinks.
        timeout: spec
            .timeout
            .clone()
            .filter(|_| spec.task != acceptance::TASK && spec.agent.is_none()),
        ..SubTaskSpec::default()
    }
}

/// A function's memory is the bound of its process, not of a sandbox.
fn resources(spec: &SubTaskSpec) -> Option<Resources> {
    let resources = spec.resources.clone()?;
    let memory = resources.memory.filter(|_| spec.function.is_none());
    Some(Resources { memory, ..resources })
}

#[cfg(test)]
#[path = "rerun_tests.rs"]
mod tests;
