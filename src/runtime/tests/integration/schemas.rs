//! A function's schemas are kept before and after each call.

use crate::real::{Real, assert_output};
use crate::world::function;
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::Input;
use serde_json::{Value, json};

const FUNCTIONS: &str = "functions:
- name: f
  max_memory_mb: 64
  timeout_sec: 5
  input_schema:
    type: object
    required: [a]
    properties:
      a: {type: integer, minimum: 1}
      unit: {enum: [mm, cm]}
  output_schema:
    type: object
    required: [sum]
    properties: {sum: {type: integer}}
";

async fn call(real: &mut Real, input: Value) -> AttemptResult {
    let mut assignment = function("f.py");
    assignment.input = Some(Input::Inline { value: input });
    real.next(assignment).await
}

async fn adder() -> Real {
    let real = Real::start().await;
    real.skill("functions.yaml", FUNCTIONS);
    let text = "def run(input):\n    print('started')\n    return {'sum': input['a'] if input['a'] < 9 else 'many'}\n";
    real.skill("f.py", text);
    real
}

#[tokio::test]
async fn an_input_that_does_not_fit_starts_nothing_and_names_place_and_rule() {
    let mut real = adder().await;
    for (input, parts) in [
        (json!({"a": 0}), ["/a", "minimum of 1"]),
        (json!({"a": "1"}), ["/a", "integer"]),
        (json!({"a": 1, "unit": "km"}), ["/unit", "cm"]),
        (json!({}), ["the top", "\"a\" is a required property"]),
        (json!(null), ["the top", "object"]),
    ] {
        let result = call(&mut real, input).await;
        assert_eq!(
            (result.ending, result.reason.as_str()),
            (Ending::Error, "InvalidInput"),
            "{result:?}"
        );
        let message = &result.message;
        assert!(message.starts_with("INPUT_VALIDATION_ERROR: "), "{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert_eq!((result.exit_code, result.stderr_tail.as_str()), (None, ""));
    }
}

#[tokio::test]
async fn an_output_that_does_not_fit_is_none() {
    let mut real = adder().await;
    assert_output(&call(&mut real, json!({"a": 1})).await, json!({"sum": 1}));
    let result = call(&mut real, json!({"a": 9})).await;
    assert_eq!(
        (result.ending, result.reason.as_str(), &result.output),
        (Ending::ParseError, "InvalidOutput", &None),
        "{result:?}"
    );
    assert!(
        result.message.contains("output_schema: at /sum") && result.message.contains("integer"),
        "{}",
        result.message
    );
    assert_eq!(result.exit_code, Some(0));
}

#[tokio::test]
async fn an_input_file_is_checked_as_it_is_handed_over() {
    let mut real = adder().await;
    for (text, ending, part) in [
        ("{\"a\": 2}".to_owned(), Ending::Success, ""),
        ("{\"a\": 2".to_owned(), Ending::Error, "no JSON"),
        (
            format!("{{\"a\": 2, \"b\": \"{}\"}}", "x".repeat(1 << 20)),
            Ending::Error,
            "path of a file",
        ),
    ] {
        std::fs::write(real.world.path("data/workspace/in.json"), text).unwrap();
        let mut assignment = function("f.py");
        assignment.input = Some(Input::File {
            path: "/mnt/user-data/workspace/in.json".to_owned(),
        });
        let result = real.next(assignment).await;
        assert_eq!(result.ending, ending, "{result:?}");
        assert!(result.message.contains(part), "{}", result.message);
    }
}
