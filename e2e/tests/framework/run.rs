//! What a test looks at when a run has ended.

use agentrun_api::{AgentRun, AgentRunStatus, Outcome, RunPhase, SubTask, SubTaskStatus};
use serde_json::Value;

/// The sub-tasks of a run.
#[derive(Debug)]
pub struct Tasks(pub Vec<SubTask>);

impl Tasks {
    /// The status of a task without items.
    pub fn get(&self, task: &str) -> &SubTaskStatus {
        let mut ours = self.0.iter().filter(|sub_task| sub_task.spec.task == task);
        let found = ours
            .next()
            .unwrap_or_else(|| panic!("the run has no sub-task {task}"));
        assert!(ours.next().is_none(), "the run has several sub-tasks {task}");
        found
            .status
            .as_ref()
            .unwrap_or_else(|| panic!("{task} has no status"))
    }

    /// Outcome and reason of a task, as one text: `Error/OOMKilled`.
    pub fn end(&self, task: &str) -> String {
        end_of(self.get(task))
    }

    /// What a task's program wrote as its output.
    pub fn output(&self, task: &str) -> Value {
        let status = self.get(task);
        let output = status.output.as_ref().map(|output| output.0.clone());
        output.unwrap_or_else(|| panic!("{task} has no output but {status:#?}"))
    }
}

/// A run that has ended.
#[derive(Debug)]
pub struct Finished {
    /// The run.
    pub run: AgentRun,
    /// Its sub-tasks.
    pub tasks: Tasks,
}

impl Finished {
    /// The run's status.
    pub fn status(&self) -> &AgentRunStatus {
        self.run.status.as_ref().expect("a run that ended has one")
    }

    /// Phase and reason, as one text: `Failed/TaskFailed`.
    pub fn end(&self) -> String {
        let status = self.status();
        let phase = status.phase.map_or("", RunPhase::as_str);
        format!("{phase}/{}", status.reason.as_deref().unwrap_or_default())
    }

    /// Panics with everything that is known unless the run succeeded.
    pub fn succeeded(&self) -> &Self {
        assert_eq!(
            self.end(),
            "Succeeded/Succeeded",
            "{:#?}\n{:#?}",
            self.status(),
            self.tasks
        );
        self
    }

    /// Panics unless a task ended like this.
    pub fn task_ended(&self, task: &str, end: &str) -> &SubTaskStatus {
        assert_eq!(self.tasks.end(task), end, "{:#?}", self.tasks.get(task));
        self.tasks.get(task)
    }
}

fn end_of(status: &SubTaskStatus) -> String {
    let outcome = status.outcome.map_or("", Outcome::as_str);
    format!("{outcome}/{}", status.reason.as_deref().unwrap_or_default())
}
