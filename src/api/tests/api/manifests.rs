//! Manifests that must read well: they go through the types without loss, and no rule refuses them.

use agentrun_api::{AgentRun, SubTask, SubTaskStatus, Work};
use serde_json::{Value, json};

use crate::rules::violations;

const FIXED_PLAN: &str = include_str!("manifests/fixed-plan.yaml");
const GOAL: &str = include_str!("manifests/goal.yaml");
const PIPELINE: &str = include_str!("manifests/pipeline.yaml");

fn tree(manifest: &str) -> Value {
    serde_yaml::from_str(manifest).unwrap()
}

fn check(manifest: &str) -> AgentRun {
    let written = tree(manifest);
    let run: AgentRun = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), written);
    assert_eq!(violations("AgentRun", &written, None), Vec::<String>::new());
    run
}

#[test]
fn a_fixed_plan_of_functions_goes_through() {
    let run = check(FIXED_PLAN);
    let parse = run.spec.tasks.iter().find(|task| task.name == "parse").unwrap();
    assert!(matches!(parse.work(), Some(Work::Function(function)) if function.name == "math_parser"));
    assert_eq!(parse.timeout.as_ref().unwrap().parse().unwrap().as_secs(), 4);
    let failures = parse.for_each.as_ref().unwrap().max_failures.as_ref().unwrap();
    assert_eq!(failures.of(200), Some(4));
}

#[test]
fn a_goal_with_a_lead_goes_through() {
    let run = check(GOAL);
    let lead = run.spec.lead.unwrap();
    assert_eq!(lead.agent.max_turns, Some(60));
    assert_eq!(run.spec.models["lead"], "strong");
    assert_eq!(
        run.spec.delegation.unwrap().agents[0]
            .agent
            .tools
            .as_ref()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn a_pipeline_of_commands_goes_through() {
    let run = check(PIPELINE);
    let clean = &run.spec.tasks[0];
    assert!(matches!(clean.work(), Some(Work::Command(command)) if command.argv == ["python", "clean.py"]));
    assert_eq!(run.metadata.generate_name.as_deref(), Some("titanic-nightly-"));
}

#[test]
fn fields_of_a_later_version_are_no_mistake() {
    let later = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun", "metadata": {"name": "a"},
        "spec": {"goal": "g", "later": 1, "sandbox": {"pool": "p", "later": {}}, "lead": {"later": []}},
        "status": {"phase": "Running", "later": true},
    });
    let run: AgentRun = serde_json::from_value(later).unwrap();
    assert_eq!(run.spec.sandbox.unwrap().pool.as_deref(), Some("p"));
}

#[test]
fn an_output_that_is_null_is_not_the_same_as_none() {
    let null: SubTaskStatus = serde_json::from_value(json!({"output": null})).unwrap();
    assert_eq!(null.output.as_ref().unwrap().value(), &Value::Null);
    assert_eq!(serde_json::to_value(&null).unwrap(), json!({"output": null}));
    let none: SubTaskStatus = serde_json::from_value(json!({})).unwrap();
    assert!(none.output.is_none());
}

#[test]
fn no_tools_are_not_the_same_as_the_tools_of_the_type() {
    let written = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun", "metadata": {"name": "a"},
        "spec": {"goal": "g", "lead": {"tools": []}, "sandbox": {"egress": []}},
    });
    let run: AgentRun = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&run).unwrap(), written);
}

#[test]
fn a_sub_task_with_its_whole_status_goes_through() {
    let written = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask", "metadata": {"name": "a"},
        "spec": {
            "runRef": {"name": "r", "uid": "u"}, "task": "parse", "role": "Task", "index": 3, "key": "q3",
            "function": {"skill": "math-grader", "name": "math_parser", "digest": "sha256:00"},
            "input": {"question": null}, "timeout": "4s", "retry": {"attempts": 2, "backoff": "1s"},
        },
        "status": {
            "observedGeneration": 1, "phase": "Finished", "outcome": "Success", "reason": "Completed", "attempt": 1,
            "attempts": [{
                "number": 1, "podName": "p", "podUID": "pu", "outcome": "Success", "reason": "Completed",
                "started": "2026-01-02T03:04:05.123456Z", "finished": "2026-01-02T03:04:06.000001Z",
            }],
            "conditions": [{
                "type": "Admitted", "status": "True", "reason": "Valid", "message": "",
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            }],
            "output": {"answer": null},
            "acceptance": [{"criterion": "file:a exists", "family": "file", "checked": true, "holds": true}],
            "artifacts": [{"path": "/mnt/user-data/outputs/a", "bytes": 1, "sha256": "00", "mediaType": "text/plain"}],
            "sandbox": {"podName": "p", "podUID": "pu", "warm": true, "isolation": "Verified"},
            "timing": {"queuedMs": 1, "startMs": 2, "runMs": 3},
            "usage": {"peakMemory": 4, "cpu": 5, "tokens": 6, "cost": "0.01"},
        },
    });
    let sub_task: SubTask = serde_json::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&sub_task).unwrap(), written);
    assert_eq!(violations("SubTask", &written, None), Vec::<String>::new());
}
