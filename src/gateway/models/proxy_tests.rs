//! Calls from the choice of the Model to the answer, over loopback, with endpoints that answer well and badly.

use super::Models;
use super::ask::{Asked, Caller, ask};
use super::limits::Patience;
use super::texts::Texts;
use crate::board::Name;
use crate::fixtures::{Answer as Reply, Api, run, subtask};
use crate::gateway::Gateway;
use crate::metrics::Metrics;
use agentrun_api::Model;
use agentrun_protocol::agent::Spent;
use agentrun_protocol::chat::{
    Finish, Message, ModelAnswer, ModelFailure, ModelFailureCode as Code, ModelRequest, Role, ToolSpec,
};
use agentrun_testkit::openai::{Answer, Dialect, Scenario, Scripted};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const KEYS: &str = "GET /api/v1/namespaces/team-a/secrets/keys";

/// Everything a hundred times as fast as it is in production.
fn hasty() -> Patience {
    Patience {
        connect: Duration::from_secs(2),
        first: Duration::from_millis(1500),
        between: Duration::from_millis(700),
        total: Duration::from_secs(6),
        call: Duration::from_secs(20),
        pause: (Duration::from_millis(10), Duration::from_millis(100)),
        retry_after: Duration::from_secs(3),
        tries: 4,
        pooled: Duration::from_secs(1),
    }
}

fn gateway(api: &Api) -> Arc<Gateway> {
    Gateway::new(api.client(), Metrics::new().unwrap(), Models::new(hasty(), None))
}

fn model(name: &str, endpoint: &str, change: impl FnOnce(&mut Value)) -> Model {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
        "metadata": {"name": name, "namespace": "team-a", "uid": name, "generation": 1},
        "spec": {"endpoint": endpoint, "model": "m", "default": true},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn request() -> ModelRequest {
    ModelRequest {
        role: Role::Lead,
        model: None,
        messages: vec![Message::User {
            text: "How are you?".into(),
            images: Vec::new(),
        }],
        tools: vec![ToolSpec {
            name: "ls".into(),
            description: "lists".into(),
            parameters: json!({"type": "object"}),
        }],
        output_schema: None,
    }
}

async fn ask_with(
    gateway: &Gateway,
    request: ModelRequest,
    limits: Value,
) -> Result<ModelAnswer, ModelFailure> {
    let caller = Caller {
        subtask: Arc::new(subtask(|o| o["spec"]["role"] = json!("Lead"))),
        run: Arc::new(run(|o| o["spec"]["limits"] = limits)),
    };
    let asked = Asked {
        request: Arc::new(request),
        bytes: 400,
        spent: Spent::default(),
    };
    ask(gateway, &caller, &asked, &mut Texts::nobody()).await
}

/// Asks a Model at this endpoint.
async fn asked(endpoint: &Scripted) -> Result<ModelAnswer, ModelFailure> {
    let gateway = gateway(&Api::default());
    gateway.change(|board| board.put_model(model("m", &endpoint.endpoint(), |_| ())));
    ask_with(&gateway, request(), json!({})).await
}

async fn scripted(answers: impl IntoIterator<Item = Answer>) -> Scripted {
    Scripted::start(Scenario::in_order(answers)).await
}

#[tokio::test]
async fn an_answer_comes_with_its_tokens_and_cost_and_is_accounted() {
    let endpoint = scripted([Answer::text("Fine.")]).await;
    let gateway = gateway(&Api::default());
    gateway.change(|board| {
        board.put_model(model("m", &endpoint.endpoint(), |o| {
            o["spec"]["price"] = json!({"input": "1", "output": "2"});
        }))
    });
    let answer = ask_with(&gateway, request(), json!({})).await.unwrap();
    assert_eq!(
        (answer.text.as_str(), answer.finish, answer.model.as_str()),
        ("Fine.", Finish::Stop, "m")
    );
    assert_eq!(
        (answer.usage.input, answer.usage.output, answer.cost_micros),
        (10, 5, 20)
    );
    let metrics = gateway.metrics.text().unwrap();
    let told = |line: &str| assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    told(r#"model_tokens_total{direction="input",model="m",namespace="team-a",role="lead"} 10"#);
    told(r#"model_cost_micros_total{model="m",namespace="team-a",role="lead"} 20"#);
    told(r#"model_calls_total{answer="ok",model="m",namespace="team-a"} 1"#);
}

#[tokio::test]
async fn calls_of_tools_are_the_same_in_every_dialect() {
    for dialect in [Dialect::Openai, Dialect::Ollama, Dialect::Hermes, Dialect::Whole] {
        let answer = Answer {
            dialect,
            reasoning: "Let me see".into(),
            ..Answer::calls([("ls", json!({"path": "/"})), ("ls", json!({"path": "/tmp"}))])
        };
        let endpoint = scripted([answer]).await;
        let answer = asked(&endpoint).await.unwrap();
        let calls: Vec<_> = answer
            .tool_calls
            .iter()
            .map(|c| (c.name.as_str(), c.arguments.as_str()))
            .collect();
        let expected = [("ls", "{\"path\":\"/\"}"), ("ls", "{\"path\":\"/tmp\"}")];
        assert_eq!(
            (&calls[..], answer.finish),
            (&expected[..], Finish::ToolCalls),
            "{dialect:?}"
        );
        assert_ne!(answer.tool_calls[0].id, answer.tool_calls[1].id, "{dialect:?}");
    }
}

#[tokio::test]
async fn tokens_are_counted_where_the_endpoint_tells_none() {
    let answer = Answer {
        usage: None,
        ..Answer::text("Fine, thank you.")
    };
    let answer = asked(&scripted([answer]).await).await.unwrap();
    assert!(answer.usage.estimated);
    assert_eq!(answer.usage.output, 5);
}

#[tokio::test]
async fn a_wrong_key_is_told_without_showing_it() {
    let endpoint = scripted([Answer::text("never")]).await;
    endpoint.demand("right");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"api": "d3Jvbmcta2V5"}});
    let gateway = gateway(&Api::default().on(KEYS, [Reply::ok(&secret)]));
    gateway.change(|board| {
        board.put_model(model("m", &endpoint.endpoint(), |o| {
            o["spec"]["secretRef"] = json!({"name": "keys", "key": "api"});
        }))
    });
    let failure = ask_with(&gateway, request(), json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::AuthFailed);
    assert!(
        failure.message.contains("secretRef") && !failure.message.contains("wrong-key"),
        "{}",
        failure.message
    );
    assert!(gateway.models.suspects().contains(&Name {
        namespace: "team-a".into(),
        name: "m".into()
    }));
}

#[tokio::test]
async fn a_key_that_was_changed_is_read_again_when_the_old_one_is_refused() {
    let endpoint = scripted([Answer::text("Fine.")]).await;
    endpoint.demand("new-key");
    let secret = |key: &str| Reply::ok(&json!({"apiVersion": "v1", "kind": "Secret", "data": {"api": key}}));
    let gateway = gateway(&Api::default().on(KEYS, [secret("b2xkLWtleQ=="), secret("bmV3LWtleQ==")]));
    gateway.change(|board| {
        board.put_model(model("m", &endpoint.endpoint(), |o| {
            o["spec"]["secretRef"] = json!({"name": "keys", "key": "api"});
        }))
    });
    let answer = ask_with(&gateway, request(), json!({})).await.unwrap();
    assert_eq!(answer.text, "Fine.");
}

#[tokio::test]
async fn an_endpoint_that_is_not_there_is_unreachable_and_says_what_to_check() {
    let gateway = gateway(&Api::default());
    gateway.change(|board| board.put_model(model("m", "http://127.0.0.1:9/v1", |_| ())));
    let failure = ask_with(&gateway, request(), json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::Unreachable);
    assert!(
        failure.message.contains("http://127.0.0.1:9") && failure.message.contains("endpoint"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn what_is_no_model_is_a_bad_answer() {
    let page = Answer {
        body: Some("<html>Welcome</html>".into()),
        ..Answer::default()
    };
    let empty = Answer {
        events: Some(vec![json!({"choices": []})]),
        ..Answer::default()
    };
    let nonsense = Answer {
        events: Some(vec![json!("{\"choices\": [")]),
        ..Answer::default()
    };
    for (answer, word) in [(page, "no JSON"), (empty, "broke off"), (nonsense, "no JSON")] {
        let endpoint = scripted([answer]).await;
        let failure = asked(&endpoint).await.unwrap_err();
        assert_eq!(failure.code, Code::BadAnswer);
        assert!(failure.message.contains(word), "{}", failure.message);
        assert_eq!(endpoint.asked().len(), 4, "all tries are used");
    }
}

#[tokio::test]
async fn an_unknown_finish_and_arguments_that_are_no_json_are_given_on() {
    let odd = Answer {
        finish: Some("because".into()),
        ..Answer::text("Fine.")
    };
    assert_eq!(
        asked(&scripted([odd]).await).await.unwrap().finish,
        Finish::Unknown
    );
    let endpoint = scripted([Answer::calls([("ls", json!("{\"path\": /"))])]).await;
    let answer = asked(&endpoint).await.unwrap();
    assert_eq!(answer.tool_calls[0].arguments, "{\"path\": /");
}

#[tokio::test]
async fn a_stream_that_is_cut_in_a_token_is_asked_again() {
    let cut = Answer {
        cut_after: Some(2),
        ..Answer::text("A first answer")
    };
    let endpoint = scripted([cut, Answer::text("Fine.")]).await;
    assert_eq!(asked(&endpoint).await.unwrap().text, "Fine.");
    assert_eq!(endpoint.asked().len(), 2);
}

#[tokio::test]
async fn too_many_requests_are_asked_again_after_the_time_that_was_said() {
    let wait = Answer::error(429, "slow down").header("retry-after", "1");
    let endpoint = scripted([wait, Answer::error(500, "oops"), Answer::text("Fine.")]).await;
    let began = Instant::now();
    assert_eq!(asked(&endpoint).await.unwrap().text, "Fine.");
    assert!(began.elapsed() >= Duration::from_secs(1));
    let long = Answer::error(429, "slow down").header("retry-after", "3600");
    let endpoint = scripted([long]).await;
    let failure = asked(&endpoint).await.unwrap_err();
    assert_eq!(failure.code, Code::RateLimited);
    assert_eq!(endpoint.asked().len(), 1, "an hour is not waited for");
}

#[tokio::test]
async fn a_stream_without_end_is_given_up() {
    let thoughts = json!({"choices": [{"delta": {"reasoning_content": "x".repeat(200_000)}}]});
    let thinks = Answer {
        endless: true,
        events: Some(vec![thoughts, json!("[DONE]")]),
        ..Answer::default()
    };
    let talks = Answer {
        endless: true,
        events: Some(vec![
            json!({"choices": [{"delta": {"content": "x".repeat(20_000)}}]}),
            json!("[DONE]"),
        ]),
        ..Answer::default()
    };
    for endless in [thinks, talks] {
        let endpoint = scripted([endless]).await;
        let failure = asked(&endpoint).await.unwrap_err();
        assert_eq!(failure.code, Code::BadAnswer);
        assert!(failure.message.contains("maxOutputTokens"), "{}", failure.message);
        assert_eq!(endpoint.asked().len(), 1, "it would be as long again");
    }
    let huge = Answer::text(&"x".repeat(1 << 20));
    let endpoint = scripted([huge]).await;
    let failure = asked(&endpoint).await.unwrap_err();
    assert_eq!(failure.code, Code::BadAnswer);
    assert!(failure.message.contains("maxOutputTokens"), "{}", failure.message);
    assert_eq!(endpoint.asked().len(), 1, "it would be as long again");
}

#[tokio::test]
async fn an_endpoint_that_says_nothing_or_stands_still_is_given_up() {
    let late = Answer {
        delay_ms: 5_000,
        ..Answer::text("late")
    };
    let endpoint = scripted([late, Answer::text("Fine.")]).await;
    assert_eq!(asked(&endpoint).await.unwrap().text, "Fine.");
    let slow = Answer {
        pause_ms: 1_300,
        ..Answer::text("slow")
    };
    let endpoint = scripted([slow, Answer::text("Fine.")]).await;
    assert_eq!(asked(&endpoint).await.unwrap().text, "Fine.");
}

#[tokio::test]
async fn what_an_endpoint_does_not_know_is_left_out_once_and_for_all() {
    let no = Answer::error(400, "response_format of type json_schema is not supported");
    let endpoint = scripted([no, Answer::text("{}")]).await;
    let gateway = gateway(&Api::default());
    gateway.change(|board| board.put_model(model("m", &endpoint.endpoint(), |_| ())));
    for _ in 0..2 {
        let mut request = request();
        request.output_schema = Some(json!({"type": "object"}));
        ask_with(&gateway, request, json!({})).await.unwrap();
    }
    let sent: Vec<_> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.body["response_format"].is_object())
        .collect();
    assert_eq!(sent, [true, false, false]);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_is_told_at_once() {
    let no = Answer::error(400, "This model's maximum context length is 8192 tokens");
    let endpoint = scripted([no]).await;
    assert_eq!(asked(&endpoint).await.unwrap_err().code, Code::ContextTooLong);
    assert_eq!(endpoint.asked().len(), 1);
}

#[tokio::test]
async fn fallbacks_are_asked_in_order_and_all_failures_are_told() {
    let broken = scripted([Answer::error(503, "down")]).await;
    let good = scripted([Answer::text("Fine.")]).await;
    let gateway = gateway(&Api::default());
    gateway.change(|board| {
        board.put_model(model("first", &broken.endpoint(), |o| {
            o["spec"]["fallbacks"] = json!(["gone", "second", "third"]);
        }));
        let plain = |o: &mut Value| o["spec"]["default"] = json!(false);
        board.put_model(model("second", &broken.endpoint(), plain));
        board.put_model(model("third", &good.endpoint(), plain))
    });
    let answer = ask_with(&gateway, request(), json!({})).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.model.as_str()), ("Fine.", "third"));
    assert_eq!(broken.asked().len(), 4, "half of the tries each");
    gateway.change(|board| {
        board.remove_model(&Name {
            namespace: "team-a".into(),
            name: "third".into(),
        })
    });
    let failure = ask_with(&gateway, request(), json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::Unreachable);
    assert!(
        failure.message.contains("`first`") && failure.message.contains("`second`"),
        "{}",
        failure.message
    );
}

#[tokio::test]
async fn a_summary_is_made_by_the_agents_own_model_where_no_other_serves() {
    let endpoint = scripted([Answer::text("Short.")]).await;
    let gateway = gateway(&Api::default());
    gateway.change(|board| {
        board.put_model(model("m", &endpoint.endpoint(), |o| {
            o["spec"]["default"] = json!(false);
            o["spec"]["roles"] = json!(["lead"]);
        }))
    });
    let mut summary = request();
    summary.role = Role::Summarizer;
    assert_eq!(ask_with(&gateway, summary, json!({})).await.unwrap().model, "m");
    let mut review = request();
    review.role = Role::Reviewer;
    let failure = ask_with(&gateway, review, json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::NoModel);
    assert!(failure.message.contains("reviewer"), "{}", failure.message);
}

#[tokio::test]
async fn a_used_up_budget_stops_before_the_endpoint_is_asked() {
    let endpoint = scripted([Answer::text("Fine.")]).await;
    let gateway = gateway(&Api::default());
    gateway.change(|board| board.put_model(model("m", &endpoint.endpoint(), |_| ())));
    let limits = json!({"tokens": 15});
    ask_with(&gateway, request(), limits.clone()).await.unwrap();
    let failure = ask_with(&gateway, request(), limits).await.unwrap_err();
    assert_eq!(failure.code, Code::BudgetExceeded);
    assert_eq!(endpoint.asked().len(), 1);
}

/// Looks after one Model until its status is written, and gives back what was: status, reason and message of `Ready`.
async fn looked_after(endpoint: &Scripted) -> (String, String, String) {
    const PATCH: &str = "PATCH /apis/agentrun.dev/v1alpha1/namespaces/team-a/models/m/status";
    let model = model("m", &endpoint.endpoint(), |o| {
        o["metadata"]["resourceVersion"] = json!("5");
    });
    let api = Api::default().on(PATCH, [Reply::ok(&model)]);
    let gateway = gateway(&api);
    let looking = tokio::spawn(super::look_after(Arc::clone(&gateway)));
    gateway.change(|board| board.put_model(model));
    let written = async {
        while api.patches().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), written)
        .await
        .unwrap();
    looking.abort();
    let ready = api.patches()[0][1]["value"]["conditions"][0].clone();
    let text = |member: &str| ready[member].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

#[tokio::test]
async fn a_model_that_answers_a_short_call_with_a_tool_is_ready() {
    let endpoint = scripted([Answer::text("ok")]).await;
    let (status, reason, _) = looked_after(&endpoint).await;
    assert_eq!((status.as_str(), reason.as_str()), ("True", "Ready"));
    let body = &endpoint.asked()[0].body;
    assert_eq!(
        (&body["max_tokens"], body["tools"].as_array().unwrap().len()),
        (&json!(1), 1)
    );
}

#[tokio::test]
async fn a_model_without_tools_is_told_from_one_with_a_wrong_key() {
    let endpoint = scripted([Answer::error(400, "gemma does not support tools")]).await;
    let (status, reason, message) = looked_after(&endpoint).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "NoTools"));
    assert!(message.contains("does not support tools"), "{message}");
    let endpoint = scripted([Answer::text("ok")]).await;
    endpoint.demand("right");
    assert_eq!(looked_after(&endpoint).await.1, "AuthFailed");
}
