//! Runs and sub-tasks as the API shows them.

use agentrun_api::names::conditions::{COMPLETE, FAILED};
use agentrun_api::{
    AgentRun, AgentRunSpec, AgentRunStatus, Artifact, Conditions, FileRef, Outcome, RunPhase, SubTask,
    SubTaskPhase, TaskTemplate, Verdict, Work,
};
use agentrun_core::plan::parsed::Expressions;
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum TaskStatus {
    /// Nothing has started.
    Pending,
    /// Work is going on.
    Running,
    /// It waits for an answer or an approval.
    NeedsInput,
    /// Its run is suspended.
    Suspended,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Where a run stands. One that the operator has not seen yet is pending.
    pub(crate) fn of(run: &AgentRun) -> Self {
        match run.status.as_ref().and_then(|status| status.phase) {
            None | Some(RunPhase::Pending) => Self::Pending,
            Some(RunPhase::Running) => Self::Running,
            Some(RunPhase::NeedsInput) => Self::NeedsInput,
            Some(RunPhase::Suspended) => Self::Suspended,
            Some(RunPhase::Succeeded) => Self::Succeeded,
            Some(RunPhase::Failed) => Self::Failed,
            Some(RunPhase::Cancelled) => Self::Cancelled,
        }
    }

    /// Whether it will never change again.
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// Where to go on from here; paths of this server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Links {
    /// The task.
    #[serde(rename = "self")]
    pub(crate) this: String,
    /// Its events.
    pub(crate) stream: String,
    /// POST here to cancel it.
    pub(crate) cancel: String,
}

impl Links {
    pub(crate) fn of(namespace: &str, id: &str) -> Self {
        let this = format!("/api/namespaces/{namespace}/tasks/{id}");
        Self {
            stream: format!("{this}/stream"),
            cancel: format!("{this}/cancel"),
            this,
        }
    }
}

/// A task that was taken or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    /// Name of its AgentRun.
    pub(crate) task_id: String,
    /// Where it stands.
    pub(crate) status: TaskStatus,
    /// Where to go on.
    pub(crate) links: Links,
}

impl Accepted {
    pub(crate) fn of(namespace: &str, run: &AgentRun) -> Self {
        let task_id = run.name_any();
        Self {
            status: TaskStatus::of(run),
            links: Links::of(namespace, &task_id),
            task_id,
        }
    }
}

/// A task in a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Summary {
    /// Name of its AgentRun.
    pub(crate) task_id: String,
    /// Where it stands.
    pub(crate) status: TaskStatus,
    /// What it waits for, or why it ended, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The goal, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instruction: Option<String>,
    /// Whose data it works on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// The thread it is a turn of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thread: Option<String>,
    /// Ended sub-tasks of all, for example `7/12`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<String>,
    /// When it was made (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created_at: Option<String>,
    /// When it was admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) completed_at: Option<String>,
}

impl Summary {
    pub(crate) fn of(run: &AgentRun) -> Self {
        let status = run.status.clone().unwrap_or_default();
        let data = run.spec.user_data.as_ref();
        Self {
            task_id: run.name_any(),
            status: TaskStatus::of(run),
            reason: status.reason,
            instruction: run.spec.goal.clone(),
            user: data.and_then(|data| data.user.clone()),
            thread: data.and_then(|data| data.thread.clone()),
            progress: status.done,
            created_at: run.creation_timestamp().map(|time| time.0.to_string()),
            started_at: status.start_time.map(|time| time.0.to_string()),
            completed_at: status.completion_time.map(|time| time.0.to_string()),
        }
    }
}

/// One page of tasks, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct TaskList {
    /// The tasks.
    pub(crate) tasks: Vec<Summary>,
    /// What `?continue=` takes for the next page. Absent on the last one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A task with its plan and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Task {
    /// What a list shows of it.
    #[serde(flatten)]
    pub(crate) summary: Summary,
    /// Why it ended badly, or what it waits for, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// When it must have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<String>,
    /// Its steps in the order in which they may start, each with its sub-tasks.
    pub(crate) plan: Vec<PlanStep>,
    /// Whether `plan` leaves out sub-tasks, since there are too many.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) subtasks_cut: bool,
    /// Its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Value>,
    /// The file that holds its output instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output_ref: Option<File>,
    /// What the acceptance criteria of the whole task say, in a word or two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<String>,
    /// What each of them says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) acceptance: Vec<Criterion>,
    /// What was delivered in `outputs`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<File>,
    /// What was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage: Option<Usage>,
    /// Where to go on.
    pub(crate) links: Links,
}

impl Task {
    pub(crate) fn of(namespace: &str, run: &AgentRun, subtasks: &[SubTask], subtasks_cut: bool) -> Self {
        let status = run.status.clone().unwrap_or_default();
        Self {
            summary: Summary::of(run),
            message: message(&status),
            deadline: status.deadline.as_ref().map(|time| time.0.to_string()),
            plan: plan(&run.spec, subtasks),
            subtasks_cut,
            output: status.output.clone().map(|output| output.0),
            output_ref: status.output_ref.as_ref().map(File::stored),
            verdict: status.verdict.clone(),
            acceptance: status.acceptance.iter().map(Criterion::of).collect(),
            artifacts: status.artifacts.iter().map(File::delivered).collect(),
            usage: status.usage.as_ref().map(|usage| Usage {
                tokens: usage.tokens.clone(),
                cost: usage.cost.clone(),
                sandbox_seconds: usage.sandbox_seconds,
            }),
            links: Links::of(namespace, &run.name_any()),
        }
    }
}

/// Why a run ended badly, or what it waits for.
pub(crate) fn message(status: &AgentRunStatus) -> Option<String> {
    let said = |kind: &str| message_of(&status.conditions, kind);
    said(FAILED)
        .or_else(|| said(COMPLETE))
        .or_else(|| status.waiting_for.clone())
}

fn message_of(conditions: &Conditions, kind: &str) -> Option<String> {
    let holds = conditions
        .iter()
        .find(|it| it.type_ == kind && it.status == "True")?;
    Some(holds.message.clone()).filter(|message| !message.is_empty())
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Step {
    /// Its name; `lead` is the lead agent of a goal.
    pub(crate) name: String,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// What does it.
    pub(crate) kind: Kind,
    /// The steps that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) depends_on: Vec<String>,
    /// Whether it runs once per item of a list.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) for_each: bool,
}

/// What does a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A function of a skill.
    Function,
    /// A program.
    Command,
    /// An agent.
    Agent,
}

impl Kind {
    fn of(work: Option<Work<'_>>) -> Self {
        match work {
            Some(Work::Function(_)) => Self::Function,
            Some(Work::Command(_)) => Self::Command,
            Some(Work::Agent(_)) | None => Self::Agent,
        }
    }
}

/// The steps of a spec, in the order in which they may start. The lead agent of a goal is one of them.
pub(crate) fn steps(spec: &AgentRunSpec) -> Vec<Step> {
    let expressions = Expressions::parse(spec).unwrap_or_default();
    let graph = expressions.graph(spec).unwrap_or_default();
    let step = |task: &TaskTemplate| Step {
        name: task.name.clone(),
        description: task.description.clone(),
        kind: Kind::of(task.work()),
        depends_on: graph
            .edges(&task.name)
            .iter()
            .map(|edge| edge.task.to_owned())
            .collect(),
        for_each: task.for_each.is_some(),
    };
    let named = |name: &str| expressions.tasks_of(spec).find(|task| task.name == name);
    graph.order().into_iter().filter_map(named).map(step).collect()
}

/// A step with its sub-tasks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct PlanStep {
    /// The step.
    #[serde(flatten)]
    pub(crate) step: Step,
    /// Its sub-tasks so far.
    pub(crate) subtasks: Vec<SubTaskView>,
}

/// The plan with the sub-tasks in it. Sub-tasks that the plan did not name (delegated ones) are steps of their own.
fn plan(spec: &AgentRunSpec, subtasks: &[SubTask]) -> Vec<PlanStep> {
    let with = |step: Step| PlanStep {
        step,
        subtasks: Vec::new(),
    };
    let mut plan: Vec<_> = steps(spec).into_iter().map(with).collect();
    let mut sorted: Vec<_> = subtasks.iter().collect();
    sorted.sort_by_key(|subtask| {
        (
            subtask.spec.index,
            subtask.creation_timestamp(),
            subtask.name_any(),
        )
    });
    for subtask in sorted {
        let name = subtask.spec.task.as_str();
        let place = plan.iter().position(|entry| entry.step.name == name);
        let place = place.unwrap_or_else(|| {
            plan.push(with(Step {
                name: name.to_owned(),
                description: subtask.spec.description.clone(),
                kind: Kind::of(subtask.spec.work()),
                depends_on: Vec::new(),
                for_each: false,
            }));
            plan.len() - 1
        });
        plan[place].subtasks.push(SubTaskView::of(subtask));
    }
    plan
}

/// A piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct SubTaskView {
    /// Name of its SubTask.
    pub(crate) id: String,
    /// Its step, with the key or index of its item in brackets.
    pub(crate) name: String,
    /// Where it stands.
    pub(crate) phase: SubTaskPhase,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<Outcome>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Why, or what it waits for, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Number of its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<i32>,
    /// What its criteria say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) acceptance: Vec<Criterion>,
    /// What it delivered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) artifacts: Vec<File>,
    /// How long the work itself took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<i64>,
    /// Tokens of its model calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<i64>,
}

impl SubTaskView {
    fn of(subtask: &SubTask) -> Self {
        let status = subtask.status.clone().unwrap_or_default();
        Self {
            id: subtask.name_any(),
            name: name_of(subtask),
            phase: status.phase.unwrap_or(SubTaskPhase::Pending),
            outcome: status.outcome,
            reason: status.reason,
            message: status.message.or(status.waiting_for),
            attempt: status.attempts.iter().map(|attempt| attempt.number).max(),
            acceptance: status.acceptance.iter().map(Criterion::of).collect(),
            artifacts: status.artifacts.iter().map(File::delivered).collect(),
            duration_ms: status.timing.and_then(|timing| timing.run_ms),
            tokens: status.usage.and_then(|usage| usage.tokens),
        }
    }
}

/// A sub-task's name for people: `parse[q-7]` for an item.
pub(crate) fn name_of(subtask: &SubTask) -> String {
    let step = &subtask.spec.task;
    match (&subtask.spec.key, subtask.spec.index) {
        (Some(key), _) => format!("{step}[{key}]"),
        (None, Some(index)) => format!("{step}[{index}]"),
        (None, None) => step.clone(),
    }
}

/// What one criterion says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Criterion {
    /// The criterion as it was written.
    #[serde(rename = "criterion")]
    pub(crate) written: String,
    /// What it says.
    pub(crate) verdict: Says,
    /// What was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// What a criterion says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) enum Says {
    /// It holds.
    Holds,
    /// It does not hold.
    DoesNotHold,
    /// It could not be decided.
    Unverified,
}

impl Criterion {
    fn of(verdict: &Verdict) -> Self {
        Self {
            written: verdict.criterion.clone(),
            verdict: match (verdict.checked, verdict.holds) {
                (true, true) => Says::Holds,
                (true, false) => Says::DoesNotHold,
                (false, _) => Says::Unverified,
            },
            detail: verdict.detail.clone(),
        }
    }
}

/// A file with its digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct File {
    /// Where it is in the sandbox, for example `/mnt/user-data/outputs/report.pdf`, or below the thread's `state` folder.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: i64,
    /// SHA-256 of its bytes in lower-case hexadecimal.
    pub(crate) sha256: String,
    /// Its media type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) media_type: Option<String>,
}

impl File {
    pub(crate) fn delivered(artifact: &Artifact) -> Self {
        Self {
            path: artifact.path.clone(),
            bytes: artifact.bytes,
            sha256: artifact.sha256.clone(),
            media_type: artifact.media_type.clone(),
        }
    }

    pub(crate) fn stored(file: &FileRef) -> Self {
        Self {
            path: file.path.clone(),
            bytes: file.bytes,
            sha256: file.sha256.clone(),
            media_type: None,
        }
    }
}

/// What a task used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Usage {
    /// Tokens by role.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tokens: BTreeMap<String, i64>,
    /// Money, as a decimal in the Models' currency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cost: Option<String>,
    /// Seconds that sandboxes existed, added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sandbox_seconds: Option<i64>,
}

#[cfg(test)]
#[path = "tests/view.rs"]
mod tests;
