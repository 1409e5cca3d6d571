//! What a schema must look like before anything is made from it.

use super::{MAX_BYTES, MAX_DEPTH, MAX_PATTERNS, SchemaError};
use crate::text::one_line;
use serde_json::{Map, Value};

/// Bytes of a reference or a keyword that an error shows.
const SHOWN: usize = 80;

/// Refuses what is too large or refers to anything but its own parts.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
    if is_too_deep(schema, MAX_DEPTH) {
        return Err(SchemaError::TooDeep);
    }
    let bytes = schema.to_string().len();
    if bytes > MAX_BYTES {
        return Err(SchemaError::TooLarge { bytes });
    }
    let mut patterns = 0;
    visit(schema, true, &mut patterns)
}

fn is_too_deep(value: &Value, left: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if left == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_too_deep(item, left - 1)),
        Value::Object(members) => members.values().any(|member| is_too_deep(member, left - 1)),
        _ => false,
    }
}

/// Walks the schema as data. Below `enum`, `const`, `default` and `examples` nothing is a keyword; below `properties`
/// and the like the names are the user's.
fn visit(schema: &Value, is_top: bool, patterns: &mut usize) -> Result<(), SchemaError> {
    match schema {
        Value::Array(items) => items.iter().try_for_each(|item| visit(item, false, patterns)),
        Value::Object(keywords) => keywords
            .iter()
            .try_for_each(|(keyword, value)| keyword_of(keyword, value, is_top, patterns)),
        _ => Ok(()),
    }
}

fn keyword_of(keyword: &str, value: &Value, is_top: bool, patterns: &mut usize) -> Result<(), SchemaError> {
    match (keyword, value) {
        ("enum" | "const" | "default" | "examples" | "required", _) => Ok(()),
        ("$ref", Value::String(reference)) => reference_of(reference),
        ("$dynamicRef" | "$recursiveRef", _) => Err(unsupported(keyword)),
        // What other keywords left over is looked for by validating again at every level: with each, compiling and
        // validating take more than twice as long.
        ("unevaluatedProperties" | "unevaluatedItems", _) => Err(SchemaError::Unevaluated {
            keyword: keyword.to_owned(),
        }),
        ("$id" | "id", Value::String(_)) if !is_top => Err(unsupported(keyword)),
        ("pattern", Value::String(_)) => count(patterns, 1),
        ("patternProperties", Value::Object(named)) => {
            count(patterns, named.len())?;
            below(named, patterns)
        }
        (
            "properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
            Value::Object(named),
        ) => below(named, patterns),
        _ => visit(value, false, patterns),
    }
}

fn below(named: &Map<String, Value>, patterns: &mut usize) -> Result<(), SchemaError> {
    named
        .values()
        .try_for_each(|schema| visit(schema, false, patterns))
}

fn count(patterns: &mut usize, more: usize) -> Result<(), SchemaError> {
    *patterns += more;
    if *patterns > MAX_PATTERNS {
        return Err(SchemaError::TooManyPatterns);
    }
    Ok(())
}

fn reference_of(reference: &str) -> Result<(), SchemaError> {
    if reference == "#" || reference.starts_with("#/") {
        return Ok(());
    }
    Err(SchemaError::Reference {
        reference: one_line(reference, SHOWN),
    })
}

fn unsupported(keyword: &str) -> SchemaError {
    SchemaError::Keyword {
        keyword: keyword.to_owned(),
    }
}
