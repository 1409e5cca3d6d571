use super::super::parsed::Expressions;
use super::super::progress;
use super::super::run::{self, RunEnd, RunPlan, RunView};
use super::super::validate::{Validated, validate};
use super::*;
use agentrun_api::names::labels;
use agentrun_api::{AgentRunSpec, AgentRunStatus, SubTaskReason};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A run that is driven without a cluster: what its plan makes exists.
struct World {
    spec: AgentRunSpec,
    expressions: Expressions,
    children: Vec<SubTask>,
    stopped: bool,
    suspended: bool,
}

impl World {
    fn new(spec: Value) -> Self {
        let spec: AgentRunSpec = serde_json::from_value(spec).unwrap();
        let Validated::Valid(expressions) = validate(&spec) else {
            panic!("{:?}", validate(&spec));
        };
        Self {
            spec,
            expressions: *expressions,
            children: Vec::new(),
            stopped: false,
            suspended: false,
        }
    }

    /// One task with these criteria whose first attempt has succeeded.
    fn of_task(policy: &str, criteria: &[&str]) -> Self {
        let mut world = Self::new(json!({"tasks": [{
            "name": "a", "command": {"argv": ["true"], "workingDir": "/mnt/user-data/outputs"}, "timeout": "5m",
            "sandbox": {"image": "image", "keepOnFailure": "1h"}, "resources": {"memory": "1Gi", "cpu": "1"},
            "acceptance": criteria, "acceptancePolicy": policy,
        }], "limits": {"maxParallel": 1}}));
        world.round();
        world.children[0].status = Some(succeeded(1));
        world
    }

    fn plan(&self) -> RunPlan {
        let children: Vec<_> = self.children.iter().collect();
        run::plan(&RunView {
            name: "r",
            namespace: "n",
            uid: "u",
            thread: "u",
            spec: &self.spec,
            expressions: &self.expressions,
            children: &children,
            functions: &BTreeMap::new(),
            stopped: self.stopped,
            suspended: self.suspended,
        })
    }

    /// Makes what the plan wants; gives the tasks that were made.
    fn round(&mut self) -> Vec<String> {
        let mut made = Vec::new();
        for new in self.plan().create {
            let mut child = SubTask::new(&new.name, (*new.spec).clone());
            child.metadata.uid = Some(format!("uid of {}", new.name));
            made.push(child.spec.task.clone());
            self.children.push(child);
        }
        made
    }

    fn of(&self, task: &str) -> &SubTask {
        self.children
            .iter()
            .rfind(|child| child.spec.task == task)
            .unwrap()
    }

    /// Ends the newest of the sub-tasks that run a criterion again.
    fn end(&mut self, outcome: Outcome, reason: SubTaskReason, exit_code: Option<i32>) {
        let check = self.children.iter_mut().rfind(|child| is_rerun(child)).unwrap();
        check.status = Some(SubTaskStatus {
            outcome: Some(outcome),
            reason: Some(reason.into()),
            exit_code,
            stdout_tail: Some("said\n".into()),
            ..SubTaskStatus::default()
        });
    }

    fn exit(&mut self, code: i32) {
        match code {
            0 => self.end(Outcome::Success, SubTaskReason::Completed, Some(0)),
            _ => self.end(Outcome::Error, SubTaskReason::ExitCode, Some(code)),
        }
    }

    fn reruns(&self, task: &str) -> Option<Reruns> {
        let children: Vec<_> = self.children.iter().collect();
        reruns(self.of(task), &children)
    }

    /// What is written in the end, as `holds`, `fails` or `open` with the detail.
    fn found(&self) -> Vec<String> {
        let Some(Reruns::Done(verdicts)) = self.reruns("a") else {
            panic!("{:?}", self.reruns("a"));
        };
        let said = verdicts.iter().map(|verdict| {
            let word = match (verdict.checked, verdict.holds) {
                (true, true) => "holds",
                (true, false) => "fails",
                (false, _) => "open",
            };
            format!("{word}: {}", verdict.detail.as_deref().unwrap_or_default())
        });
        said.collect()
    }
}

fn succeeded(number: i32) -> SubTaskStatus {
    SubTaskStatus {
        attempts: vec![Attempt {
            number,
            outcome: Some(Outcome::Success),
            reason: Some(SubTaskReason::Completed.into()),
            ..Attempt::default()
        }],
        ..SubTaskStatus::default()
    }
}

fn says(criterion: &str, holds: bool) -> Verdict {
    Verdict {
        criterion: criterion.into(),
        checked: true,
        holds,
        ..Verdict::default()
    }
}

#[test]
fn commands_run_again_one_after_another_in_the_place_of_the_task_that_waits() {
    let mut world = World::of_task(
        "Require",
        &["rerun:make check", "file:x exists", "rerun:make lint"],
    );
    world.children[0].status.as_mut().unwrap().acceptance = vec![says("file:x exists", true)];
    assert_eq!(world.round(), [TASK], "though the run may have only one at once");
    assert!(world.round().is_empty(), "it is made once");
    assert!(matches!(world.reruns("a"), Some(Reruns::Running { .. })));
    world.exit(0);
    assert_eq!(world.round(), [TASK]);
    assert_ne!(world.children[1].metadata.name, world.children[2].metadata.name);
    world.exit(0);
    assert!(world.round().is_empty());
    assert_eq!(
        world.found(),
        ["holds: exit code 0", "holds: ", "holds: exit code 0"]
    );
    assert_eq!(world.plan().end, None, "until that is written");
}

#[test]
fn what_runs_again_has_the_tasks_sandbox_but_none_of_its_contract() {
    let mut world = World::of_task("Require", &["file:x exists", "rerun:make check && true"]);
    world.round();
    let (task, check) = (world.of("a"), world.of(TASK));
    assert!(is_rerun(check) && is_rerun_of(check, task) && !is_rerun(task));
    let spec = &check.spec;
    let command = spec.command.as_ref().unwrap();
    assert_eq!(command.argv, ["sh", "-c", "make check && true"]);
    assert_eq!(command.working_dir.as_deref(), Some("/mnt/user-data/outputs"));
    let sandbox = spec.sandbox.as_ref().unwrap();
    assert_eq!(
        (sandbox.image.as_deref(), &sandbox.keep_on_failure),
        (Some("image"), &None)
    );
    assert_eq!(
        (&spec.resources, &spec.timeout),
        (&task.spec.resources, &task.spec.timeout)
    );
    assert_eq!((spec.index, spec.acceptance.len(), &spec.retry), (None, 0, &None));
}

#[test]
fn what_runs_again_sees_the_skills_of_the_task_whose_criterion_it_is() {
    let mut world = World::new(json!({"tasks": [
        {"name": "a", "agent": {"prompt": "p", "skills": ["s", "t"]}, "acceptance": ["rerun:/mnt/skills/s/check"]},
        {"name": "b", "agent": {"prompt": "p", "skills": ["u"]}},
    ]}));
    world.round();
    world.children[0].status = Some(succeeded(1));
    assert_eq!(world.round(), [TASK]);
    let (task, other, check) = (world.of("a"), world.of("b"), world.of(TASK));
    assert_eq!(skills(check, Some(task)), ["s", "t"]);
    assert!(skills(check, Some(other)).is_empty() && skills(check, None).is_empty());
    assert_eq!(skills(other, Some(task)), ["u"], "only what runs again");
}

#[test]
fn a_function_leaves_the_memory_of_its_process_out() {
    let spec = SubTaskSpec {
        function: Some(agentrun_api::FunctionWork::default()),
        resources: Some(Resources {
            memory: Some(agentrun_api::Quantity("64Mi".into())),
            cpu: Some(agentrun_api::Quantity("1".into())),
        }),
        acceptance: vec!["rerun:true".into()],
        ..SubTaskSpec::default()
    };
    let resources = subtask_spec(&SubTask::new("s", spec), 0).resources.unwrap();
    assert_eq!(
        (resources.memory, resources.cpu.unwrap().0),
        (None, "1".to_owned())
    );
}

#[test]
fn only_an_exit_code_decides() {
    let rows = [
        (
            Outcome::Success,
            SubTaskReason::Completed,
            Some(0),
            "holds: exit code 0",
        ),
        (
            Outcome::ParseError,
            SubTaskReason::InvalidOutput,
            Some(0),
            "holds: exit code 0",
        ),
        (
            Outcome::Error,
            SubTaskReason::ExitCode,
            Some(2),
            "fails: exit code 2: said",
        ),
        (
            Outcome::Error,
            SubTaskReason::ModuleNotFound,
            Some(1),
            "fails: exit code 1: said",
        ),
        (
            Outcome::Error,
            SubTaskReason::OOMKilled,
            Some(137),
            "open: Error, OOMKilled",
        ),
        (
            Outcome::Error,
            SubTaskReason::ExitCode,
            None,
            "open: Error, ExitCode",
        ),
        (
            Outcome::Error,
            SubTaskReason::NodeLost,
            None,
            "open: Error, NodeLost",
        ),
        (
            Outcome::Error,
            SubTaskReason::InterpreterNotFound,
            None,
            "open: Error, InterpreterNotFound",
        ),
        (
            Outcome::Timeout,
            SubTaskReason::DeadlineExceeded,
            None,
            "open: Timeout, DeadlineExceeded",
        ),
        (
            Outcome::Cancelled,
            SubTaskReason::Cancelled,
            None,
            "open: Cancelled, Cancelled",
        ),
    ];
    for (outcome, reason, code, expected) in rows {
        let mut world = World::of_task("Report", &["rerun:make check"]);
        world.round();
        world.end(outcome, reason, code);
        assert_eq!(world.found(), [expected]);
    }
}

#[test]
fn nothing_runs_again_where_another_criterion_does_not_hold_and_all_must() {
    let idle = "open: not run again: another criterion does not hold";
    let mut world = World::of_task("Require", &["rerun:make check", "file:x exists"]);
    world.children[0].status.as_mut().unwrap().acceptance = vec![says("file:x exists", false)];
    assert!(world.round().is_empty());
    assert_eq!(world.found(), [idle, "fails: "]);
    let mut world = World::of_task("Require", &["rerun:make check", "rerun:make lint"]);
    world.round();
    world.exit(1);
    assert!(world.round().is_empty());
    assert_eq!(world.found(), ["fails: exit code 1: said", idle]);
    let mut world = World::of_task("Report", &["rerun:make check", "rerun:make lint"]);
    world.round();
    world.exit(1);
    assert_eq!(world.round(), [TASK], "what is only reported is all of interest");
}

#[test]
fn every_attempt_has_runs_of_its_own() {
    let mut world = World::of_task("Require", &["rerun:make check"]);
    world.round();
    world.exit(1);
    let first = world.of(TASK).metadata.name.clone();
    let status = world.children[0].status.as_mut().unwrap();
    status.next_attempt_time = Some(MicroTime(Timestamp::UNIX_EPOCH));
    assert_eq!(world.reruns("a"), None, "it waits for its next attempt");
    assert!(world.round().is_empty());
    let status = world.children[0].status.as_mut().unwrap();
    status.next_attempt_time = None;
    status.attempts.push(Attempt {
        number: 2,
        ..Attempt::default()
    });
    assert!(world.round().is_empty(), "it runs");
    world.children[0].status.as_mut().unwrap().attempts[1].outcome = Some(Outcome::Success);
    assert_eq!(world.round(), [TASK]);
    assert_ne!(world.of(TASK).metadata.name, first);
    world.exit(0);
    assert_eq!(world.found(), ["holds: exit code 0"]);
}

#[test]
fn what_is_stopped_or_suspended_makes_none() {
    let mut world = World::of_task("Report", &["rerun:make check"]);
    world.suspended = true;
    assert!(world.round().is_empty());
    world.suspended = false;
    world.stopped = true;
    assert!(world.round().is_empty());
    world.stopped = false;
    world.children[0].metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert!(world.round().is_empty());
}

#[test]
fn a_run_waits_for_what_runs_again_and_does_not_count_it() {
    let mut world = World::of_task("Report", &["rerun:make check"]);
    world.round();
    world.children[0].status.as_mut().unwrap().outcome = Some(Outcome::Success);
    world.children[1].metadata.finalizers = Some(vec![labels::LEASE.into()]);
    let plan = world.plan();
    assert_eq!(plan.end, None, "its sandbox is still there");
    let mut status = AgentRunStatus::default();
    let children: Vec<_> = world.children.iter().collect();
    progress::fill(
        &mut status,
        &world.spec,
        &children,
        &plan,
        None,
        Timestamp::UNIX_EPOCH,
    );
    assert_eq!(status.done.as_deref(), Some("1/1"));
    world.exit(0);
    world.children[1].metadata.finalizers = None;
    assert_eq!(world.plan().end, Some(RunEnd::Succeeded));
}

#[test]
fn a_run_that_fails_fast_stops_what_runs_again_too() {
    let mut world = World::new(json!({"failurePolicy": "FailFast", "tasks": [
        {"name": "a", "command": {"argv": ["true"]}, "acceptance": ["rerun:make check"]},
        {"name": "b", "command": {"argv": ["true"]}},
    ]}));
    world.round();
    world.children[0].status = Some(succeeded(1));
    world.round();
    world.children[1].status = Some(SubTaskStatus {
        outcome: Some(Outcome::Error),
        ..SubTaskStatus::default()
    });
    let both = [0, 2].map(|place| world.children[place].metadata.name.clone().unwrap());
    assert_eq!(world.plan().stop, both);
}

#[test]
fn the_criteria_of_a_whole_run_are_run_again_after_its_check() {
    let mut world = World::new(json!({
        "tasks": [{"name": "a", "command": {"argv": ["true"]}}], "acceptance": ["rerun:make check"],
        "acceptancePolicy": "Require",
    }));
    world.round();
    world.children[0].status = Some(SubTaskStatus {
        outcome: Some(Outcome::Success),
        ..succeeded(1)
    });
    assert_eq!(world.round(), [acceptance::TASK]);
    world.children[1].status = Some(succeeded(1));
    assert_eq!(world.round(), [TASK]);
    assert_eq!(world.of(TASK).spec.timeout, None);
    world.exit(1);
    let Some(Reruns::Done(verdicts)) = world.reruns(acceptance::TASK) else {
        panic!("it is found");
    };
    let status = world.children[1].status.as_mut().unwrap();
    status.acceptance = verdicts;
    status.outcome = Some(Outcome::Success);
    assert_eq!(world.plan().end, Some(RunEnd::NotAccepted));
}
