use super::*;
use serde_json::json;

const PATH: &str = "/api/namespaces/team-a/v1/chat/completions";

/// A gateway that knows the Model `small`.
fn stage() -> Stage {
    let stage = Stage::new();
    put_model(&stage, "small");
    stage
}

fn put_model(stage: &Stage, name: &str) {
    let model = json!({"apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
        "metadata": {"name": name, "namespace": "team-a", "uid": name, "creationTimestamp": "2030-01-01T00:00:00Z"},
        "spec": {"endpoint": "http://localhost/v1", "model": "tiny"}});
    let model = serde_json::from_value(model).unwrap();
    stage.gateway.change(|board| board.put_model(model));
}

fn question(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "What costs ${1}?"}]})
}

async fn made(stage: &Stage) -> Value {
    until(|| stage.fake.runs().len() == 1).await;
    stage.fake.runs().remove(0)
}

/// The work of a run ended, with `stop` where a limit ended it.
fn end_work(stage: &Stage, run: &Value, stop: Option<&str>) {
    let (name, uid) = (&run["metadata"]["name"], &run["metadata"]["uid"]);
    let mut status = json!({"phase": "Finished", "outcome": "Success", "output": "not yet"});
    if let Some(stop) = stop {
        status["stopReason"] = json!(stop);
    }
    stage.see(&json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
        "metadata": {"name": "st", "namespace": "team-a", "uid": "st", "labels": {"agentrun.dev/run-uid": uid}},
        "spec": {"runRef": {"name": name, "uid": uid}, "task": "lead", "role": "Lead", "agent": {"prompt": "x"}},
        "status": status,
    }));
}

/// Asks, lets the run end with `status`, and returns the answer and the run.
async fn asked(body: &Value, stop: Option<&str>, status: &Value) -> (Answer, Value) {
    let stage = stage();
    let asking = stage.post(PATH, body);
    let ending = async {
        let mut run = made(&stage).await;
        end_work(&stage, &run, stop);
        run["status"] = status.clone();
        stage.see(&run);
        run
    };
    tokio::join!(asking, ending)
}

#[tokio::test]
async fn a_completion_is_a_run_and_the_leads_answer_its_message() {
    let status = json!({"phase": "Succeeded", "output": "Nothing.", "usage": {"tokens": {"lead": 30, "executor": 12}}});
    let (answer, run) = asked(&question("small"), None, &status).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let spec = json!({"goal": "What costs $${1}?", "lead": {"model": "small"}, "limits": {"timeout": "600s"},
        "userData": {"user": "lena"}, "ttlSecondsAfterFinished": 3600});
    assert_eq!(run["spec"], spec);
    assert_eq!(answer.body["id"], run["metadata"]["name"]);
    assert_eq!(answer.body["object"], "chat.completion");
    let choice =
        json!({"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Nothing."}});
    assert_eq!(answer.body["choices"], json!([choice]));
    assert_eq!(answer.body["usage"], json!({"total_tokens": 42}));
}

#[tokio::test]
async fn an_answer_that_a_limit_cut_short_says_length() {
    let status = json!({"phase": "Succeeded", "output": "Half."});
    let (answer, run) = asked(&question("agentrun"), Some("TurnCapped"), &status).await;
    assert_eq!(answer.body["choices"][0]["finish_reason"], "length");
    assert_eq!(
        run["spec"].get("lead"),
        None,
        "the default is the namespace's own choice"
    );
    assert_eq!(answer.body.get("usage"), None);
}

#[tokio::test]
async fn a_run_without_an_answer_is_an_error_that_no_client_tries_again_by_itself() {
    let table = [
        (
            json!({"phase": "Failed", "reason": "TaskFailed"}),
            500,
            "TaskFailed",
        ),
        (
            json!({"phase": "Failed", "reason": "DeadlineExceeded"}),
            504,
            "DeadlineExceeded",
        ),
        (json!({"phase": "Failed", "reason": "Invalid"}), 422, "Invalid"),
        (json!({"phase": "Succeeded"}), 500, "OutputTooLarge"),
    ];
    for (status, code, word) in table {
        let (answer, _) = asked(&question("agentrun"), None, &status).await;
        assert_eq!(answer.status.as_u16(), code, "{status}");
        assert_eq!(answer.body["error"]["code"], word);
        assert_eq!(answer.headers["x-should-retry"], "false");
    }
}

#[tokio::test]
async fn what_is_refused_has_the_shape_that_clients_read() {
    let stage = stage();
    let table = [
        ("lena", question("gpt-9"), 404, "NotFound", "gpt-9"),
        (
            "lena",
            json!({"model": "agentrun", "messages": [], "tools": []}),
            422,
            "NotYetSupported",
            "tools",
        ),
        ("", question("agentrun"), 401, "Unauthenticated", "bearer"),
    ];
    for (token, body, status, code, cause) in table {
        let answer = stage
            .answer(request("POST", PATH, token, &[], body.to_string()))
            .await;
        let error = &answer.body["error"];
        assert_eq!(answer.status.as_u16(), status, "{body}");
        assert_eq!(
            (&error["code"], &error["type"]),
            (&json!(code), &json!("invalid_request_error"))
        );
        assert!(error["message"].as_str().unwrap().contains(cause), "{error}");
        assert_eq!(answer.headers.get("x-should-retry"), None);
    }
    assert!(stage.fake.runs().is_empty());
    let stranger = request("GET", "/api/v1/models", "", &[], String::new());
    let answer = stage.answer(stranger).await;
    assert_eq!(
        answer.body["error"]["type"], "invalid_request_error",
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn a_client_that_goes_takes_its_run_along_unless_it_can_ask_again() {
    for (headers, cancelled) in [(&[][..], true), (&[("idempotency-key", "k")][..], false)] {
        let stage = stage();
        let ask = || {
            stage.answer(request(
                "POST",
                PATH,
                "lena",
                headers,
                question("agentrun").to_string(),
            ))
        };
        tokio::select! {
            _ = ask() => panic!("it was answered"),
            _ = made(&stage) => {}
        }
        if cancelled {
            until(|| stage.fake.runs()[0]["spec"]["cancel"] == true).await;
            continue;
        }
        let mut run = made(&stage).await;
        run["status"] = json!({"phase": "Succeeded", "output": "Yes."});
        stage.see(&run);
        let again = ask().await;
        assert_eq!(again.body["choices"][0]["message"]["content"], "Yes.");
        assert_eq!(stage.fake.runs().len(), 1);
    }
}

#[tokio::test]
async fn the_models_are_the_default_and_those_of_the_namespace() {
    let stage = stage();
    // One that is called like the default cannot be named, so it is not listed.
    for name in ["large", "agentrun", "tiny"] {
        put_model(&stage, name);
    }
    let answer = stage.get("/api/v1/models").await;
    let entry = |id, created| json!({"id": id, "object": "model", "created": created, "owned_by": "team-a"});
    let own = |id| entry(id, 1_893_456_000);
    let data = [entry("agentrun", 0), own("large"), own("small"), own("tiny")];
    assert_eq!(answer.body, json!({"object": "list", "data": data}));
}
