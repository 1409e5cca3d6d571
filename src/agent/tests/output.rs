//! Answers that have to be JSON.

use super::*;
use crate::Failure;

fn with_schema() -> AgentTerms {
    AgentTerms {
        output_schema: Some(json!({
            "type": "object",
            "properties": {"rows": {"type": "integer"}},
            "required": ["rows"]
        })),
        ..terms()
    }
}

fn value(bench: &Bench) -> Value {
    match bench.finished().end {
        End::Answered(Answer::Json { text, value }) => {
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
            value
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_document_is_taken_bare_or_in_a_fence() {
    for text in [
        "{\"rows\": 12}",
        "  {\"rows\": 12}\n",
        "Here it is:\n```json\n{\"rows\": 12}\n```\nDone.",
        "```\n{\"rows\": 12}\n```",
    ] {
        let mut bench = Bench::of(with_schema());
        bench.says(text);
        assert_eq!(value(&bench), json!({"rows": 12}), "{text}");
    }
}

#[test]
fn the_schema_is_told_and_enforced_only_where_no_tool_may_be_called() {
    let mut bench = Bench::of(with_schema());
    assert_eq!(bench.request().output_schema, None);
    bench.says("twelve");
    let request = bench.request();
    assert!(request.output_schema.is_some() && request.tools.is_empty());
}

#[test]
fn a_wrong_answer_is_repaired_with_what_is_wrong() {
    let mut bench = Bench::of(with_schema());
    bench.says("twelve");
    assert!(bench.last_message().contains("no JSON document"));
    bench.says("{\"rows\": \"twelve\"}");
    assert!(bench.last_message().contains("/rows"), "{}", bench.last_message());
    bench.says("{\"rows\": 12}");
    assert_eq!(value(&bench), json!({"rows": 12}));
}

#[test]
fn after_two_repairs_it_is_an_error() {
    let mut bench = Bench::of(with_schema());
    bench.says("a").says("b").says("c");
    match bench.finished().end {
        End::Failed(Failure::Output { problem, text }) => {
            assert!(problem.contains("no JSON"));
            assert_eq!(text, "c");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_document_that_is_too_deep_or_too_long_is_wrong_and_hurts_nobody() {
    let mut bench = Bench::of(with_schema());
    bench
        .says(&"[".repeat(100_000))
        .says(&format!("{{\"rows\": {}}}", "1".repeat(500_000)));
    bench.says("{\"rows\": 1}");
    assert_eq!(value(&bench), json!({"rows": 1}));
}
