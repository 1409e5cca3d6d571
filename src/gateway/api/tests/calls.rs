use super::*;
use crate::fixtures::skill;
use serde_json::json;

/// A gateway that knows skill `math` with function `add`.
fn stage() -> Stage {
    let stage = Stage::new();
    stage.gateway.change(|board| board.put_skill(skill(|_| ())));
    stage
}

/// The run of a call, once it is made.
async fn made(stage: &Stage, many: usize) -> Vec<Value> {
    until(|| stage.fake.runs().len() == many).await;
    stage.fake.runs()
}

/// Ends a call's one sub-task.
fn end(stage: &Stage, run: &Value, status: &Value) {
    let name = &run["metadata"]["name"];
    let uid = &run["metadata"]["uid"];
    stage.see(&json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
        "metadata": {"name": "st", "namespace": "team-a", "uid": format!("st-{uid}"),
            "labels": {"agentrun.dev/run-uid": uid}},
        "spec": {"runRef": {"name": name, "uid": uid}, "task": "call", "role": "Task",
            "function": {"skill": "math", "name": "add"}},
        "status": status,
    }));
}

/// Calls, lets the work end with `status`, and returns the answer.
async fn called(path: &str, status: &Value) -> Answer {
    let stage = stage();
    let body = json!({"a": "${1}"});
    let calling = stage.post(path, &body);
    let ending = async {
        let run = made(&stage, 1).await.remove(0);
        end(&stage, &run, &json!({"phase": "Running"}));
        end(&stage, &run, status);
    };
    let (answer, ()) = tokio::join!(calling, ending);
    assert!(stage.fake.runs()[0]["spec"].get("cancel").is_none());
    answer
}

#[tokio::test]
async fn a_call_is_a_run_of_one_task_and_its_output_the_answer() {
    let stage = stage();
    let body = json!({"a": "${1}"});
    let calling = stage.post(
        "/api/namespaces/team-a/flow/math/add?timeout=5s&pool=python",
        &body,
    );
    let ending = async {
        let run = made(&stage, 1).await.remove(0);
        end(
            &stage,
            &run,
            &json!({"phase": "Finished", "outcome": "Success", "output": {"sum": 3}}),
        );
        run
    };
    let (answer, run) = tokio::join!(calling, ending);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body, json!({"success": true, "data": {"sum": 3}}));
    let spec = json!({
        "tasks": [{"name": "call", "function": {"skill": "math", "name": "add"}, "input": {"a": "$${1}"}}],
        "limits": {"timeout": "5000ms"}, "userData": {"user": "lena"}, "ttlSecondsAfterFinished": 60,
        "sandbox": {"pool": "python"},
    });
    assert_eq!(run["spec"], spec);
    let read = "GET /apis/agentrun.dev/v1alpha1/namespaces/team-a/";
    assert_eq!(stage.fake.asked(read), 0, "the watches tell all there is");
}

#[tokio::test]
async fn every_end_has_its_status() {
    let table = [
        (json!({"outcome": "Success", "output": null}), 200, "success"),
        (
            json!({"outcome": "ParseError", "reason": "InvalidOutput", "message": "no JSON"}),
            422,
            "parse_error",
        ),
        (
            json!({"outcome": "Error", "reason": "InvalidInput", "message": "a is missing"}),
            422,
            "error",
        ),
        (
            json!({"outcome": "Timeout", "reason": "DeadlineExceeded"}),
            504,
            "timeout",
        ),
        (
            json!({"outcome": "Cancelled", "reason": "DeadlineExceeded"}),
            504,
            "error",
        ),
        (
            json!({"outcome": "Error", "reason": "ExitCode", "exitCode": 3, "stderrTail": "boom"}),
            500,
            "error",
        ),
        (
            json!({"outcome": "Success", "outputRef": {"path": "p", "bytes": 99999, "sha256": "0"}}),
            500,
            "success",
        ),
    ];
    for (status, code, word) in table {
        let answer = called("/api/flow/add?envelope=true", &status).await;
        assert_eq!(answer.status.as_u16(), code, "{status}");
        assert_eq!(answer.body["success"], code == 200);
        assert_eq!(answer.body["envelope"]["status"], word);
        if code != 200 {
            assert!(
                answer.body["error"]["message"]
                    .as_str()
                    .is_some_and(|message| !message.is_empty())
            );
            assert_eq!(answer.body.get("data"), None);
        }
        if let Some(reason) = status.get("reason") {
            assert_eq!(&answer.body["error"]["code"], reason);
        }
    }
}

#[tokio::test]
async fn of_three_calls_together_one_fails_alone() {
    let stage = stage();
    let one = async |input: Value| stage.post("/api/flow/math/add", &input).await;
    let ending = async {
        for run in made(&stage, 3).await {
            let fails = run["spec"]["tasks"][0]["input"] == json!(2);
            let good = json!({"outcome": "Success", "output": run["spec"]["tasks"][0]["input"]});
            end(
                &stage,
                &run,
                &if fails {
                    json!({"outcome": "Error", "reason": "ExitCode"})
                } else {
                    good
                },
            );
        }
    };
    let (one, two, three, ()) = tokio::join!(one(json!(1)), one(json!(2)), one(json!(3)), ending);
    assert_eq!(
        (one.status.as_u16(), two.status.as_u16(), three.status.as_u16()),
        (200, 500, 200)
    );
    assert_eq!((&one.body["data"], &three.body["data"]), (&json!(1), &json!(3)));
}

#[tokio::test]
async fn a_run_that_ends_without_work_says_why() {
    for (reason, code) in [
        ("Invalid", 422),
        ("StartTimeout", 504),
        ("DeadlineExceeded", 504),
        ("Rejected", 500),
    ] {
        let stage = stage();
        let body = json!({});
        let calling = stage.post("/api/flow/math/add", &body);
        let ending = async {
            let mut run = made(&stage, 1).await.remove(0);
            run["status"] = json!({"phase": "Failed", "reason": reason, "conditions": [{"type": "Failed", "status": "True",
                "reason": reason, "message": "image x cannot be pulled", "lastTransitionTime": "2030-01-01T00:00:00Z"}]});
            stage.see(&run);
        };
        let (answer, ()) = tokio::join!(calling, ending);
        assert_eq!(
            (answer.status.as_u16(), &answer.body["error"]["code"]),
            (code, &json!(reason))
        );
        assert!(
            answer.body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("image x cannot be pulled")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_end_is_answered_and_cancelled() {
    let stage = stage();
    let answer = tokio::time::timeout(Duration::from_mins(1), async {
        let body = request("POST", "/api/flow/math/add?timeout=2s", "lena", &[], "{}");
        let router = router::router(Arc::clone(&stage.api));
        router.oneshot(body).await.unwrap()
    });
    assert_eq!(answer.await.unwrap().status(), 504);
    until(|| stage.fake.runs()[0]["spec"]["cancel"] == true).await;
}

#[tokio::test]
async fn a_caller_that_goes_takes_its_call_along_unless_it_can_ask_again() {
    for (headers, cancelled) in [(&[][..], true), (&[("idempotency-key", "k")][..], false)] {
        let stage = stage();
        let call = stage.answer(request("POST", "/api/flow/math/add", "lena", headers, "{}"));
        tokio::select! {
            _ = call => panic!("it was answered"),
            _ = made(&stage, 1) => {}
        }
        // The call's future is dropped here, as hyper does when the connection ends.
        if cancelled {
            until(|| stage.fake.runs()[0]["spec"]["cancel"] == true).await;
            continue;
        }
        let again = stage.answer(request("POST", "/api/flow/math/add", "lena", headers, "{}"));
        let ending = async {
            let run = made(&stage, 1).await.remove(0);
            end(&stage, &run, &json!({"outcome": "Success", "output": 1}));
        };
        let (answer, ()) = tokio::join!(again, ending);
        assert_eq!(answer.body["data"], 1);
        let third = stage
            .answer(request("POST", "/api/flow/math/add", "lena", headers, "{}"))
            .await;
        assert_eq!(third.body["data"], 1, "one that ended is answered at once");
        assert_eq!(stage.fake.runs().len(), 1);
        assert!(stage.fake.runs()[0]["spec"].get("cancel").is_none());
    }
}

#[tokio::test]
async fn what_cannot_be_called_is_named_in_the_shape_of_an_answer() {
    let stage = stage();
    stage.gateway.change(|board| {
        board.put_skill(skill(|o| {
            o["metadata"]["name"] = json!("maths");
            o["metadata"]["uid"] = json!("other");
        }))
    });
    stage.gateway.change(|board| {
        board.put_skill(skill(|o| {
            o["metadata"]["namespace"] = json!("team-b");
            o["metadata"]["uid"] = json!("foreign");
            o["status"]["functions"][0]["name"] = json!("secret");
        }))
    });
    let large = format!("\"{}\"", "x".repeat(64 * 1024));
    let table = [
        ("/api/flow/none/add", "{}", 404, "NotFound", "no skill none"),
        ("/api/flow/math/sub", "{}", 404, "NotFound", "it has: add"),
        (
            "/api/flow/sub",
            "{}",
            404,
            "NotFound",
            "no skill of namespace team-a",
        ),
        (
            "/api/flow/secret",
            "{}",
            404,
            "NotFound",
            "no skill of namespace team-a",
        ),
        ("/api/flow/add", "{}", 409, "Conflict", "math, maths"),
        ("/api/flow/math/add", "{", 400, "BadRequest", "EOF"),
        ("/api/flow/math/add", &large, 413, "TooLarge", "65536"),
        ("/api/flow/math/add?timeout=1h", "{}", 400, "BadRequest", "600s"),
        (
            "/api/flow/math/add?wait=1",
            "{}",
            400,
            "BadRequest",
            "unknown field `wait`",
        ),
    ];
    for (path, body, status, code, cause) in table {
        let answer = stage
            .answer(request("POST", path, "lena", &[], body.to_owned()))
            .await;
        assert_eq!(answer.status.as_u16(), status, "{path}: {}", answer.body);
        assert_eq!(
            (&answer.body["success"], &answer.body["error"]["code"]),
            (&json!(false), &json!(code))
        );
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{message}");
    }
    let stranger = stage
        .answer(request("POST", "/api/flow/math/add", "", &[], "{}"))
        .await;
    assert_eq!(
        (stranger.status.as_u16(), &stranger.body["success"]),
        (401, &json!(false))
    );
    assert_eq!(stranger.headers["www-authenticate"], "Bearer");
    assert!(stage.fake.runs().is_empty());
}
