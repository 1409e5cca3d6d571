use super::*;

#[tokio::test]
async fn a_request_without_a_good_token_is_told_what_to_do() {
    let stage = Stage::new();
    for (token, cause) in [
        ("", "there is no bearer token"),
        ("expired", "token has expired"),
        ("channel", "agentrun-gateway"),
        ("unaware", "another audience"),
        ("nobody", "names no user"),
        (&"x".repeat(20_000), "20000 bytes"),
    ] {
        let answer = stage
            .answer(request("GET", "/api/namespaces/team-a/tasks", token, &[], ""))
            .await;
        assert_eq!(answer.status, 401, "{token}");
        assert_eq!(answer.headers["www-authenticate"], "Bearer");
        assert_eq!(answer.body["error"]["code"], "Unauthenticated");
        let message = answer.body["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{message}");
    }
    let basic = request("GET", "/api/tasks", "", &[("authorization", "Basic YTpi")], "");
    assert_eq!(stage.answer(basic).await.status, 401);
}

#[tokio::test]
async fn a_user_of_another_namespace_is_refused_with_the_right_that_is_missing() {
    let stage = Stage::new();
    let other = stage
        .answer(request("GET", "/api/namespaces/team-b/tasks", "lena", &[], ""))
        .await;
    assert_eq!(other.status, 403);
    assert_eq!(other.body["error"]["code"], "Forbidden");
    let message = other.body["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("lena may not list agentruns.agentrun.dev in namespace team-b"),
        "{message}"
    );
    let foreign = request(
        "GET",
        "/api/tasks",
        "system:serviceaccount:team-b:default",
        &[],
        "",
    );
    assert_eq!(stage.answer(foreign).await.status, 403);
}

#[tokio::test]
async fn who_may_read_may_not_make_or_cancel() {
    let stage = Stage::new();
    let body = r#"{"spec":{"tasks":[{"name":"a","command":{"argv":["true"]}}]}}"#;
    let all = [
        ("GET", "/api/tasks", 200),
        ("POST", "/api/tasks", 403),
        ("POST", "/api/tasks/a/cancel", 403),
        ("POST", "/api/flow/f", 403),
        ("POST", "/api/flow/s/f", 403),
        ("GET", "/api/tasks/a", 404),
        ("GET", "/api/tasks/a/stream", 404),
    ];
    for (method, path, status) in all {
        let answer = stage.answer(request(method, path, "viewer", &[], body)).await;
        assert_eq!(answer.status.as_u16(), status, "{method} {path}: {}", answer.body);
    }
    assert!(stage.fake.runs().is_empty());
}

#[tokio::test(start_paused = true)]
async fn reviews_are_remembered_for_a_moment_only() {
    let stage = Stage::new();
    let reviews = || {
        (
            stage.fake.asked("POST /apis/authen"),
            stage.fake.asked("POST /apis/authori"),
        )
    };
    for _ in 0..3 {
        assert_eq!(stage.get("/api/tasks").await.status, 200);
    }
    assert_eq!(reviews(), (1, 1));
    stage.get("/api/tasks/a").await;
    assert_eq!(reviews(), (1, 2), "another question is asked");
    stage.answer(request("GET", "/api/tasks", "max", &[], "")).await;
    assert_eq!(reviews(), (2, 3), "another user is asked for");
    tokio::time::advance(super::super::bounds::REVIEW_AGE).await;
    stage.get("/api/tasks").await;
    assert_eq!(reviews(), (3, 4));
}

#[tokio::test]
async fn an_api_server_that_does_not_answer_is_no_refusal() {
    let stage = Stage::new();
    stage.fake.is_down(true);
    let answer = stage.get("/api/tasks").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.headers["retry-after"], "1");
    stage.fake.is_down(false);
    assert_eq!(stage.get("/api/tasks").await.status, 200);
}
