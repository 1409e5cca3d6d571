//! Tool calls that a model writes into its text, `<tool_call>{"name": …, "arguments": …}</tool_call>`, as Hermes and Qwen
//! do where the endpoint does not read them; pure.

use super::prose::CALL;
use serde_json::Value;

const END: &str = "</tool_call>";
/// What a call is named whose text says no name. No tool is: the agent tells the model.
const NAMELESS: &str = "invalid_tool_call";

/// Takes the calls out of a text, as (name, arguments).
pub(super) fn take_calls(text: &str) -> (String, Vec<(String, String)>) {
    let mut rest = text;
    let mut words = String::new();
    let mut calls = Vec::new();
    while let Some((before, after)) = rest.split_once(CALL) {
        words.push_str(before);
        let (written, behind) = after.split_once(END).unwrap_or((after, ""));
        calls.extend(read(written.trim()));
        rest = behind;
    }
    words.push_str(rest);
    (words.trim().to_owned(), calls)
}

fn read(written: &str) -> Vec<(String, String)> {
    match serde_json::from_str::<Value>(written) {
        Ok(Value::Array(calls)) => calls.iter().map(call).collect(),
        Ok(one) => vec![call(&one)],
        // Cut, or no JSON: the agent tells the model what is wrong with it.
        Err(_) => vec![(name_in(written), written.to_owned())],
    }
}

fn call(value: &Value) -> (String, String) {
    let inner = value
        .get("function")
        .filter(|inner| inner.is_object())
        .unwrap_or(value);
    let name = inner.get("name").and_then(Value::as_str).unwrap_or(NAMELESS);
    let arguments = inner.get("arguments").or_else(|| inner.get("parameters"));
    (name.to_owned(), arguments.map_or_else(String::new, written))
}

/// Arguments as text, whether they are an object or text already.
pub(super) fn written(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The name in what is no JSON.
fn name_in(written: &str) -> String {
    let name = written.split_once("\"name\"").and_then(|(_, rest)| {
        let rest = rest
            .trim_start()
            .strip_prefix(':')?
            .trim_start()
            .strip_prefix('"')?;
        Some(rest.split_once('"')?.0)
    });
    name.unwrap_or(NAMELESS).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(text: &str) -> (String, Vec<(String, String)>) {
        take_calls(text)
    }

    fn pair(name: &str, arguments: &str) -> (String, String) {
        (name.into(), arguments.into())
    }

    #[test]
    fn calls_are_taken_out_of_the_text_in_order() {
        let text = "First.\n<tool_call>\n{\"name\": \"ls\", \"arguments\": {\"path\": \"/\"}}\n</tool_call>\n<tool_call>{\"name\": \"cat\", \"parameters\": \"{}\"}</tool_call>";
        let (words, found) = calls(text);
        assert_eq!(words, "First.");
        assert_eq!(found, [pair("ls", "{\"path\":\"/\"}"), pair("cat", "{}")]);
    }

    #[test]
    fn a_call_that_is_no_json_is_given_on_as_it_is() {
        let (_, found) = calls("<tool_call>{\"name\": \"ls\", \"arguments\": {\"path\": </tool_call>");
        assert_eq!(found[0].0, "ls");
        assert!(found[0].1.starts_with("{\"name\""));
        assert_eq!(calls("<tool_call>nonsense").1, [pair(NAMELESS, "nonsense")]);
    }
}
