//! Arguments of tool calls, as models write them.

use agentrun_core::text::one_line;
use agentrun_protocol::tool::MAX_ARGUMENTS;
use serde_json::{Map, Value};

/// Strings up to this length are kept when arguments are shortened for the conversation.
const KEPT: usize = 600;
/// Characters of what a model wrote that an error shows.
const SHOWN: usize = 120;

/// The object that a model meant. An absent text is an empty object; a fence around it and an object within a string
/// are understood, since models write them.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > MAX_ARGUMENTS {
        return Err(format!(
            "the arguments have {} bytes, at most {MAX_ARGUMENTS} are allowed",
            text.len()
        ));
    }
    let text = text.trim();
    if text.is_empty() {
        return Ok(Map::new());
    }
    let value = parse(text)?;
    let value = match &value {
        Value::String(inner) => parse(inner)?,
        _ => value,
    };
    match value {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        other => Err(format!(
            "the arguments are {}; they have to be one JSON object",
            one_line(&other.to_string(), SHOWN)
        )),
    }
}

/// A fence is looked for only where the text is no JSON: one within a string is part of it.
fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .or_else(|error| serde_json::from_str(unfenced(text)).map_err(|_| not_json(text, &error)))
}

fn not_json(text: &str, error: &serde_json::Error) -> String {
    format!(
        "the arguments are no JSON: {error}. They begin with {}. Write one JSON object, with \\n for a line break and \\\" \
         for a quote in a string",
        one_line(text, SHOWN)
    )
}

/// What stands in the only code fence of a text, or all of it.
pub(crate) fn unfenced(text: &str) -> &str {
    let Some((_, after)) = text.split_once("```") else {
        return text;
    };
    let Some((body, _)) = after.split_once("```") else {
        return text;
    };
    let language = body.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let body = body[language..].trim();
    if body.is_empty() { text } else { body }
}

/// The arguments as the conversation keeps them, in at most about `most` bytes: long strings are shortened, whoever wants
/// to see them reads the file that they went to.
pub(crate) fn kept(arguments: &Map<String, Value>, most: usize) -> String {
    let text = compact(arguments);
    if text.len() <= most {
        return text;
    }
    let mut short = Value::Object(arguments.clone());
    shorten(&mut short);
    let text = short.to_string();
    if text.len() <= most {
        return text;
    }
    let note = format!("{} bytes of arguments, not kept", compact(arguments).len());
    serde_json::json!({ "note": note }).to_string()
}

pub(crate) fn compact(arguments: &Map<String, Value>) -> String {
    // Strings as keys: it cannot fail.
    serde_json::to_string(arguments).unwrap_or_default()
}

fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => *text = crate::text::shorten(text, KEPT),
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(members) => members.values_mut().for_each(shorten),
        _ => {}
    }
}
