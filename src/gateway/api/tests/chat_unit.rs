use super::*;
use serde_json::json;

fn asked(body: &Value) -> Result<Asked, Problem> {
    Asked::of(body.as_object().unwrap().clone())
}

#[test]
fn one_message_is_the_goal_word_for_word_and_earlier_turns_stand_before_it() {
    let one = asked(
        &json!({"model": "agentrun", "messages": [{"role": "user", "content": "Add 1 and 2."}],
        "temperature": null}),
    );
    assert_eq!(one.unwrap().goal, "Add 1 and 2.");
    let many = asked(
        &json!({"model": "m", "n": 1, "stream": false, "user": "u", "messages": [
            {"role": "system", "content": "Be short."},
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi"},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        ]}),
    );
    let many = many.unwrap();
    assert_eq!(
        many.goal,
        "The conversation so far:\n\nUser: Hello\n\nYou: Hi\n\nAnswer what the user says now:\n\na\nb"
    );
    assert_eq!(many.instructions.as_deref(), Some("Be short.\n\nBe kind."));
    assert_eq!(many.user.as_deref(), Some("u"));
}

#[test]
fn what_a_run_cannot_do_is_refused_with_its_name() {
    let hello = json!([{"role": "user", "content": "x"}]);
    let table = [
        (
            json!({"messages": hello, "tools": []}),
            Code::NotYetSupported,
            "tools",
        ),
        (
            json!({"messages": hello, "logprobs": true}),
            Code::NotYetSupported,
            "logprobs",
        ),
        (
            json!({"messages": hello, "n": 2}),
            Code::NotYetSupported,
            "n is 2",
        ),
        (json!({"messages": hello, "n": -1}), Code::BadRequest, "-1"),
        (
            json!({"messages": hello, "stream": true}),
            Code::NotYetSupported,
            "stream: true",
        ),
        (json!({}), Code::BadRequest, "missing field `messages`"),
        (json!({"messages": []}), Code::Invalid, "the last message"),
        (
            json!({"messages": [{"role": "user", "content": " "}]}),
            Code::Invalid,
            "the last message",
        ),
        (
            json!({"messages": [{"role": "assistant", "content": "x"}]}),
            Code::Invalid,
            "the last message",
        ),
        (
            json!({"messages": [{"role": "tool", "content": "x"}]}),
            Code::BadRequest,
            "tool",
        ),
        (
            json!({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}),
            Code::BadRequest,
            "parts of type text",
        ),
    ];
    for (mut body, code, cause) in table {
        body["model"] = json!("agentrun");
        let problem = asked(&body).unwrap_err();
        assert_eq!(problem.code, code, "{body}");
        assert!(problem.message.contains(cause), "{}", problem.message);
    }
}
