use super::*;
use crate::fixtures::{run, subtask};
use serde_json::json;

fn spec() -> Value {
    json!({"tasks": [
        {"name": "report", "function": {"skill": "s", "name": "report"}, "input": {"n": "${tasks.parse.output}"}},
        {"name": "parse", "description": "reads", "command": {"argv": ["true"]}, "forEach": {"items": "${[1, 2]}"}},
    ]})
}

#[test]
fn steps_come_in_the_order_in_which_they_may_start_with_what_expressions_wait_for() {
    let steps = steps(&serde_json::from_value(spec()).unwrap());
    let expected = json!([
        {"name": "parse", "description": "reads", "kind": "command", "for_each": true},
        {"name": "report", "kind": "function", "depends_on": ["parse"]},
    ]);
    assert_eq!(serde_json::to_value(steps).unwrap(), expected);
}

#[test]
fn a_goal_is_a_lead_that_waits_for_the_tasks() {
    let mut spec = spec();
    spec["goal"] = json!("sum up");
    let steps = steps(&serde_json::from_value(spec).unwrap());
    let lead = steps.last().unwrap();
    assert_eq!((lead.name.as_str(), lead.kind), ("lead", Kind::Agent));
    assert_eq!(lead.depends_on, ["parse", "report"]);
}

#[test]
fn a_task_shows_its_sub_tasks_verdicts_artifacts_and_usage() {
    let run = run(|o| {
        o["spec"] = spec();
        o["status"] = json!({
            "phase": "Failed", "reason": "TaskFailed", "done": "3/3", "verdict": "1 does not hold",
            "output": null,
            "conditions": [{"type": "Failed", "status": "True", "reason": "TaskFailed",
                "message": "task report failed", "lastTransitionTime": "2030-01-01T00:00:09Z"}],
            "acceptance": [{"criterion": "file:a exists", "checked": true, "holds": false, "detail": "not there"}],
            "artifacts": [{"path": "/mnt/user-data/outputs/a", "bytes": 3, "sha256": "00", "mediaType": "text/plain"}],
            "usage": {"sandboxSeconds": 7},
        });
    });
    let item = |index: i32, name: &str| {
        subtask(|o| {
            o["metadata"]["name"] = json!(name);
            o["spec"]["task"] = json!("parse");
            o["spec"]["index"] = json!(index);
        })
    };
    let delegate = subtask(|o| {
        o["spec"]["role"] = json!("Delegate");
        o["spec"]["task"] = json!("researcher");
    });
    let children = [item(1, "p-1"), delegate, item(0, "p-0")];
    let task = serde_json::to_value(Task::of("team-a", &run, &children, false)).unwrap();
    assert_eq!(task["status"], "Failed");
    assert_eq!(task["message"], "task report failed");
    assert_eq!(task["verdict"], "1 does not hold");
    assert_eq!(task["acceptance"][0]["verdict"], "DoesNotHold");
    assert_eq!(task["artifacts"][0]["media_type"], "text/plain");
    assert_eq!(task["usage"]["sandbox_seconds"], 7);
    assert_eq!(task["links"]["self"], "/api/namespaces/team-a/tasks/run-1");
    let names: Vec<_> = task["plan"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["name"].clone())
        .collect();
    assert_eq!(names, ["parse", "report", "researcher"]);
    assert_eq!(task["plan"][0]["subtasks"][0]["name"], "parse[0]");
    assert_eq!(task["plan"][0]["subtasks"][1]["id"], "p-1");
    assert_eq!(task["plan"][1]["subtasks"], json!([]));
}

#[test]
fn an_output_that_is_null_is_shown_and_one_that_is_not_there_is_not() {
    let shown = |status: Value| {
        let run = run(|o| o["status"] = status);
        serde_json::to_value(Task::of("team-a", &run, &[], false)).unwrap()
    };
    assert_eq!(shown(json!({"output": null})).get("output"), Some(&Value::Null));
    assert_eq!(shown(json!({})).get("output"), None);
}
