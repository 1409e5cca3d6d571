use super::*;
use serde_json::json;

fn run(name: &str, phase: &str) -> Value {
    json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "AgentRun",
        "metadata": {"name": name, "namespace": "team-a", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"tasks": [{"name": "a", "command": {"argv": ["true"]}}]},
        "status": {"phase": phase},
    })
}

#[tokio::test]
async fn tasks_are_listed_by_pages_and_one_that_cannot_be_read_is_left_out() {
    let stage = Stage::new();
    for name in ["a", "b", "c"] {
        stage.fake.put(&run(name, "Running"));
    }
    let mut odd = run("b2", "Running");
    odd["spec"] = json!("of another version");
    stage.fake.put(&odd);
    let first = stage.get("/api/tasks?limit=2").await;
    assert_eq!(first.status, 200);
    let ids = |answer: &Answer| {
        let tasks = answer.body["tasks"].as_array().unwrap().clone();
        tasks
            .iter()
            .map(|task| task["task_id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ["a", "b"]);
    let next = first.body["continue"].as_str().unwrap();
    let second = stage.get(&format!("/api/tasks?limit=2&continue={next}")).await;
    assert_eq!(ids(&second), ["c"]);
    assert_eq!(second.body.get("continue"), None);
    for bad in ["limit=0", "limit=201", "limit=x", "limt=3"] {
        assert_eq!(stage.get(&format!("/api/tasks?{bad}")).await.status, 400, "{bad}");
    }
    let old = stage.get("/api/tasks?continue=old").await;
    assert_eq!(
        (old.status.as_u16(), &old.body["error"]["code"]),
        (410, &json!("Expired"))
    );
}

#[tokio::test]
async fn a_task_is_shown_with_its_sub_tasks_and_nobody_elses() {
    let stage = Stage::new();
    stage.fake.put(&run("a", "Running"));
    for (name, uid) in [("st-1", "uid-a"), ("st-2", "uid-other")] {
        let subtask = json!({
            "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
            "metadata": {"name": name, "namespace": "team-a", "uid": name, "labels": {"agentrun.dev/run-uid": uid}},
            "spec": {"runRef": {"name": "a", "uid": uid}, "task": "a", "role": "Task", "command": {"argv": ["true"]}},
            "status": {"phase": "Finished", "outcome": "Success"},
        });
        stage.fake.put(&subtask);
    }
    let task = stage.get("/api/namespaces/team-a/tasks/a").await;
    assert_eq!(task.status, 200);
    assert_eq!(task.headers["cache-control"], "no-store");
    assert_eq!(task.body["plan"][0]["subtasks"].as_array().unwrap().len(), 1);
    assert_eq!(task.body["plan"][0]["subtasks"][0]["outcome"], "Success");
    assert_eq!(stage.get("/api/tasks/missing").await.status, 404);
}

#[tokio::test]
async fn a_task_is_cancelled_once_and_one_that_is_over_stays_as_it_is() {
    let stage = Stage::new();
    stage.fake.put(&run("a", "Running"));
    stage.fake.put(&run("b", "Succeeded"));
    for _ in 0..2 {
        let answer = stage.post("/api/tasks/a/cancel", &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["task_id"]),
            (202, &json!("a"))
        );
    }
    let over = stage.post("/api/tasks/b/cancel", &json!({})).await;
    assert_eq!(
        (over.status.as_u16(), &over.body["status"]),
        (200, &json!("Succeeded"))
    );
    assert_eq!(stage.post("/api/tasks/c/cancel", &json!({})).await.status, 404);
    let runs = stage.fake.runs();
    assert_eq!(
        (&runs[0]["spec"]["cancel"], &runs[1]["spec"]["cancel"]),
        (&json!(true), &Value::Null)
    );
}

#[tokio::test]
async fn there_is_nothing_to_answer_or_approve_yet() {
    let stage = Stage::new();
    stage.fake.put(&run("a", "Running"));
    for path in ["/api/tasks/a/answer", "/api/tasks/a/approve"] {
        let answer = stage.post(path, &json!({})).await;
        assert_eq!(answer.status, 404);
        assert!(
            answer.body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("no approvals")
        );
    }
}

#[tokio::test]
async fn probes_need_no_token() {
    let stage = Stage::new();
    let probe = async |path: &str| {
        stage
            .answer(request("GET", path, "", &[], ""))
            .await
            .status
            .as_u16()
    };
    assert_eq!((probe("/health").await, probe("/ready").await), (200, 200));
    stage.gateway.health.stopping();
    assert_eq!((probe("/health").await, probe("/ready").await), (200, 503));
    assert_eq!(stage.get("/api/tasks/a/stream").await.status, 503);
    assert_eq!(stage.fake.asked(""), 2, "the reviews of the last one");
}
