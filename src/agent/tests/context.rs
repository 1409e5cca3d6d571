//! Conversations that grow.

use super::*;
use crate::Failure;

fn small(context_tokens: u64) -> AgentTerms {
    let mut small = terms();
    small.traits.context_tokens = context_tokens;
    small.max_turns = 100;
    small
}

/// An answer of which the endpoint told no figures.
fn uncounted(mut answer: ModelAnswer) -> ModelAnswer {
    answer.usage = TokenUsage::default();
    answer
}

fn call(command: &str) -> ModelAnswer {
    uncounted(calling(&[("bash", json!({ "command": command }).to_string())]))
}

/// Works until the agent asks for a summary; gives how many turns that took.
fn until_full(bench: &mut Bench) -> usize {
    for turn in 0..100 {
        if bench.request().role == Role::Summarizer {
            return turn;
        }
        bench.answer(call(&turn.to_string()));
        bench.act_with(&format!("RESULT-{turn} {}", "word ".repeat(1_000)));
    }
    panic!("it never grew too long");
}

#[test]
fn a_conversation_that_grows_is_shortened_and_goes_on() {
    let mut bench = Bench::of(small(20_000));
    bench.calls(&[(
        "write_todos",
        json!({"todos": [{"content": "count", "status": "pending"}]}),
    )]);
    let turns = until_full(&mut bench);
    assert!(turns > 3);
    let material = serde_json::to_string(&bench.request()).unwrap();
    assert!(material.contains("RESULT-0") && !material.contains(&format!("RESULT-{}", turns - 1)));
    bench.answer(uncounted(says("Rows were counted in a.csv: 12.")));
    let request = bench.request();
    assert_eq!(request.role, Role::Lead);
    let Message::User { text, .. } = &request.messages[1] else {
        panic!("{:?}", request.messages[1])
    };
    assert!(text.starts_with("Count the rows of table.csv"));
    assert!(
        text.contains("Rows were counted in a.csv: 12.") && text.contains("[ ] count"),
        "{text}"
    );
    assert!(matches!(&request.messages[2], Message::Assistant { .. }));
    let rest = serde_json::to_string(&request).unwrap();
    assert!(!rest.contains("RESULT-0") && rest.contains(&format!("RESULT-{}", turns - 1)));
    bench.says("Twelve.");
    assert_eq!(bench.text(), "Twelve.");
}

#[test]
fn a_second_summary_knows_the_first() {
    let mut bench = Bench::of(small(20_000));
    until_full(&mut bench);
    bench.answer(uncounted(says("FIRST SUMMARY")));
    until_full(&mut bench);
    let material = serde_json::to_string(&bench.request()).unwrap();
    assert!(material.contains("FIRST SUMMARY"));
}

#[test]
fn without_a_summarizer_the_conversation_is_shortened_all_the_same() {
    let mut bench = Bench::of(small(20_000));
    until_full(&mut bench);
    bench.fail(ModelFailureCode::Unreachable);
    assert_eq!(bench.request().role, Role::Lead);
    assert!(bench.agent.tokens() < 16_000);
}

#[test]
fn the_endpoint_s_count_is_believed_and_what_came_since_is_added() {
    let mut bench = Bench::of(small(20_000));
    let mut answer = call("a");
    answer.usage.input = 15_000;
    bench.answer(answer).act_with("short");
    assert_eq!(bench.request().role, Role::Lead);
    let mut answer = call("b");
    answer.usage.input = 15_900;
    bench.answer(answer).act_with(&"x".repeat(600));
    assert_eq!(bench.request().role, Role::Summarizer);
}

#[test]
fn an_endpoint_that_takes_less_than_it_should_is_asked_again_with_less_and_not_for_ever() {
    let mut bench = Bench::of(small(32_000));
    for turn in 0..6 {
        bench
            .answer(call(&turn.to_string()))
            .act_with(&"word ".repeat(1_500));
    }
    bench.fail(ModelFailureCode::ContextTooLong);
    assert_eq!(bench.request().role, Role::Summarizer);
    bench.says("Short.");
    assert!(bench.agent.tokens() < 14_000);
    bench.says("Done.");
    assert_eq!(bench.text(), "Done.");

    let mut stubborn = Bench::of(small(32_000));
    for _ in 0..12 {
        if matches!(stubborn.agent.next(), Step::Done(_)) {
            break;
        }
        stubborn.fail(ModelFailureCode::ContextTooLong);
    }
    match stubborn.finished().end {
        End::Failed(Failure::Model(failure)) => assert_eq!(failure.code, ModelFailureCode::ContextTooLong),
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_turn_that_is_alone_too_long_is_cut() {
    let mut bench = Bench::of(small(4_000));
    let calls: Vec<(&str, Value)> = (0..60).map(|number| bash(&number.to_string())).collect();
    let texts: Vec<(&str, String)> = calls
        .iter()
        .map(|(name, arguments)| (*name, arguments.to_string()))
        .collect();
    bench
        .answer(uncounted(calling(&texts)))
        .act_with(&"y".repeat(60_000));
    if bench.request().role == Role::Summarizer {
        bench.answer(uncounted(says("Nothing yet.")));
    }
    assert_eq!(bench.request().role, Role::Lead);
    assert!(serde_json::to_vec(&bench.request().messages).unwrap().len() < 90_000);
}

#[test]
fn the_largest_conversation_fits_the_channel() {
    let mut large = small(10_000_000);
    large.traits.vision = true;
    large.max_turns = 1_000;
    let mut bench = Bench::of(large);
    let mut longest = 0;
    for turn in 0..400 {
        let request = bench.request();
        longest = longest.max(serde_json::to_vec(&request).unwrap().len());
        if request.role == Role::Summarizer {
            break;
        }
        let name = if turn % 20 == 0 { "view_image" } else { "bash" };
        bench.answer(uncounted(calling(&[(
            name,
            json!({"path": "a", "command": turn}).to_string(),
        )])));
        let text = format!("{turn}{}", "\"\\\n".repeat(20_000));
        bench.act(|act| Outcome::Tool {
            text: text.clone(),
            images: match kind_of(act) {
                "view_image" => vec![agentrun_protocol::chat::Image {
                    media_type: "image/png".to_owned(),
                    data: agentrun_protocol::Blob(vec![0; 3 << 20]),
                }],
                _ => Vec::new(),
            },
        });
    }
    assert!(longest > 4 << 20, "{longest}");
    assert!(
        longest <= agentrun_protocol::channel::MAX_MODEL_REQUEST,
        "{longest}"
    );
}
