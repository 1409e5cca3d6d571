use super::*;
use serde_json::json;

fn task() -> Value {
    json!({"spec": {"tasks": [{"name": "a", "command": {"argv": ["true"]}}]}})
}

async fn keyed(stage: &Stage, user: &str, key: &str, body: &Value) -> Answer {
    let headers = [
        ("idempotency-key", key),
        ("content-type", "application/json; charset=utf-8"),
    ];
    stage
        .answer(request(
            "POST",
            "/api/namespaces/team-a/tasks",
            user,
            &headers,
            body.to_string(),
        ))
        .await
}

#[tokio::test]
async fn a_task_is_a_run_in_the_callers_name() {
    let stage = Stage::new();
    let answer = stage.post("/api/tasks", &task()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let id = answer.body["task_id"].as_str().unwrap();
    let this = format!("/api/namespaces/team-a/tasks/{id}");
    assert_eq!(answer.headers["location"], this.as_str());
    let links = json!({"self": this, "stream": format!("{this}/stream"), "cancel": format!("{this}/cancel")});
    assert_eq!(
        answer.body,
        json!({"task_id": id, "status": "Pending", "links": links})
    );
    let run = &stage.fake.runs()[0];
    assert_eq!(run["metadata"]["name"], id);
    assert_eq!(
        run["metadata"]["annotations"]["agentrun.dev/requested-by"],
        "lena"
    );
    assert_eq!(run["spec"]["userData"]["user"], "lena");
    assert_eq!(run["spec"]["tasks"], task()["spec"]["tasks"]);
}

// F129
#[tokio::test]
async fn the_same_request_sent_again_makes_nothing_twice() {
    let stage = Stage::new();
    let first = keyed(&stage, "lena", "k-1", &task()).await;
    let again = keyed(&stage, "lena", "k-1", &task()).await;
    assert_eq!((first.status.as_u16(), again.status.as_u16()), (202, 202));
    assert_eq!(first.body, again.body);
    assert_eq!(stage.fake.runs().len(), 1);
    let mut other = task();
    other["spec"]["tasks"][0]["name"] = json!("b");
    let refused = keyed(&stage, "lena", "k-1", &other).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("another body")
    );
    assert_eq!(keyed(&stage, "max", "k-1", &other).await.status, 202);
    assert_eq!(keyed(&stage, "lena", "k-2", &task()).await.status, 202);
    assert_eq!(stage.fake.runs().len(), 3);
    stage.post("/api/tasks", &task()).await;
    stage.post("/api/tasks", &task()).await;
    assert_eq!(
        stage.fake.runs().len(),
        5,
        "without a key each request is its own"
    );
}

#[tokio::test]
async fn a_gateway_that_starts_anew_knows_what_was_made_before() {
    let before = Stage::new();
    let made = keyed(&before, "lena", "k", &task()).await;
    let after = Stage::on(&before.fake);
    assert_eq!(keyed(&after, "lena", "k", &task()).await.body, made.body);
    let shown = after.get(made.body["links"]["self"].as_str().unwrap()).await;
    assert_eq!(shown.status, 200);
    assert_eq!(shown.body["task_id"], made.body["task_id"]);
}

#[tokio::test]
async fn a_bad_key_is_refused() {
    let stage = Stage::new();
    for key in ["", &"k".repeat(256)] {
        assert_eq!(keyed(&stage, "lena", key, &task()).await.status, 400);
    }
    let binary = Request::post("/api/tasks")
        .header("authorization", "Bearer lena")
        .header("idempotency-key", http::HeaderValue::from_bytes(&[0xff]).unwrap())
        .body(Body::from(task().to_string()))
        .unwrap();
    assert_eq!(stage.answer(binary).await.status, 400);
    assert!(stage.fake.runs().is_empty());
}

#[tokio::test]
async fn garbage_makes_nothing_and_is_named() {
    let stage = Stage::new();
    let deep = format!(
        "{{\"spec\":{{\"params\":{}1{}}}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    let large = format!("{{\"instruction\":\"{}\"}}", "x".repeat(1024 * 1024));
    let table: [(&str, u16, &str); 10] = [
        ("", 400, "EOF"),
        ("{", 400, "EOF"),
        ("[]", 400, "body"),
        ("\u{0}", 400, "body"),
        ("{\"instruction\":7}", 400, "string"),
        ("{\"instructions\":\"a\"}", 400, "unknown field `instructions`"),
        ("{\"mode\":\"plan\",\"instruction\":\"a\"}", 422, "mode: plan"),
        ("{\"spec\":{}}", 422, "neither goal nor tasks"),
        (&deep, 400, "recursion"),
        (&large, 413, "1048576"),
    ];
    for (body, status, cause) in table {
        let answer = stage
            .answer(request("POST", "/api/tasks", "lena", &[], body.to_owned()))
            .await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{message}");
    }
    let form = request(
        "POST",
        "/api/tasks",
        "lena",
        &[("content-type", "text/plain")],
        task().to_string(),
    );
    assert_eq!(stage.answer(form).await.status, 415);
    assert!(stage.fake.runs().is_empty());
}

#[tokio::test]
async fn a_wrong_spec_is_refused_with_the_words_of_who_found_it() {
    let stage = Stage::new();
    let mut strict = task();
    strict["spec"]["nonsense"] = json!(1);
    let mut shape = task();
    shape["spec"]["userData"] = json!("x");
    let cycle = json!({"spec": {"tasks": [
        {"name": "a", "command": {"argv": ["true"]}, "dependsOn": [{"task": "b"}]},
        {"name": "b", "command": {"argv": ["true"]}, "dependsOn": [{"task": "a"}]},
    ]}});
    for (body, cause) in [
        (strict, "spec.nonsense"),
        (shape, "must be of type object"),
        (cycle, "a → b → a"),
    ] {
        let answer = stage.post("/api/tasks", &body).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["error"]["code"]),
            (422, &json!("Invalid"))
        );
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{message}");
    }
    assert!(stage.fake.runs().is_empty());
}

#[tokio::test]
async fn paths_that_mean_something_else_reach_nothing() {
    let stage = Stage::new();
    for path in [
        "/api/namespaces/Team/tasks",
        "/api/namespaces/a%2Fb/tasks",
        "/api/namespaces/../tasks",
        "/api/tasks/..%2F..%2Fsecrets",
        "/api/tasks/a%3Fwatch=1",
        "/api/tasks/%00",
        "/api/",
        "/api/tasks/a/b",
        "/",
    ] {
        let answer = stage.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
        assert_eq!(answer.body["error"]["code"], "NotFound", "{path}");
    }
    let bytes = stage.get("/api/tasks/%ff").await;
    assert_eq!(bytes.status, 400);
    assert_eq!(stage.fake.asked(""), 0);
    let method = stage
        .answer(request("DELETE", "/api/tasks/a", "lena", &[], ""))
        .await;
    assert_eq!(
        (method.status.as_u16(), &method.body["error"]["code"]),
        (405, &json!("MethodNotAllowed"))
    );
}

#[tokio::test]
async fn the_short_form_is_there_only_where_a_namespace_is_configured() {
    let fake = Fake::default();
    let gateway = gateway(&fake);
    let api = Api::new(fake.client(), Arc::clone(&gateway), None).unwrap();
    let stage = Stage { fake, gateway, api };
    let answer = stage.get("/api/tasks").await;
    assert_eq!(answer.status, 404);
    assert!(
        answer.body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/api/namespaces/NAMESPACE")
    );
    assert_eq!(stage.get("/api/namespaces/team-a/tasks").await.status, 200);
}
