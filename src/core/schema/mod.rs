//! JSON Schemas of strangers: compiled and applied within bounds.
//!
//! The library does the validation. Before it sees a schema or a value, [`cost`] has counted what the two would ask of
//! it, so that neither a schema that refers to itself nor one that doubles its work at every level costs more than
//! [`MAX_STEPS`]. Patterns run in linear time, and nothing is ever fetched.

mod cost;
mod form;

use crate::text::one_line;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// The largest schema, in bytes of compact JSON (64 KiB).
pub const MAX_BYTES: usize = 64 * 1024;
/// The deepest nesting of a schema.
pub const MAX_DEPTH: usize = 64;
/// The most patterns of one schema.
pub const MAX_PATTERNS: usize = 32;
/// The most pairs of subschema and value that one validation may look at.
pub const MAX_STEPS: usize = 500_000;
/// The most messages of one validation.
pub const MAX_MESSAGES: usize = 10;
/// The most characters of one message.
pub const MAX_MESSAGE: usize = 200;

/// Bytes that one compiled pattern, and the cache of its search, may take (256 KiB).
const PATTERN_BYTES: usize = 256 * 1024;
/// Up to so many steps all mistakes are looked for. The library collects them before it gives the first one back, so
/// that a longer value has its first mistake named only.
const STEPS_WITH_ALL_MISTAKES: usize = 5_000;

/// A schema that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// More bytes than [`MAX_BYTES`].
    #[error(
        "the schema has {bytes} bytes, allowed are {MAX_BYTES}: split the document or simplify the schema"
    )]
    TooLarge {
        /// Bytes of compact JSON.
        bytes: usize,
    },
    /// Deeper than [`MAX_DEPTH`].
    #[error("the schema is nested deeper than {MAX_DEPTH} levels: move parts to $defs")]
    TooDeep,
    /// More patterns than [`MAX_PATTERNS`].
    #[error("the schema has more than {MAX_PATTERNS} patterns: use enum, or fewer")]
    TooManyPatterns,
    /// A reference that leads out of the schema, or is no JSON pointer.
    #[error(
        "the schema refers to {reference:?}: only references within it are followed, written as #/$defs/NAME"
    )]
    Reference {
        /// As it is written.
        reference: String,
    },
    /// `$dynamicRef`, `$recursiveRef`, or an `$id` below the top.
    #[error("the schema uses {keyword}, which is not supported: use $ref with #/$defs/NAME")]
    Keyword {
        /// The keyword.
        keyword: String,
    },
    /// `unevaluatedProperties` or `unevaluatedItems`, of which the cost has no bound.
    #[error(
        "the schema uses {keyword}, which is not supported: use additionalProperties or items beside the properties"
    )]
    Unevaluated {
        /// The keyword.
        keyword: String,
    },
    /// Applying it would take too long.
    #[error(
        "schema and value together ask for more than {MAX_STEPS} steps, or refer to themselves without end: simplify \
         the schema"
    )]
    TooCostly,
    /// The library does not take it: it breaks the rules of its draft.
    #[error("this is no valid JSON Schema: {problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
}

/// A compiled schema.
#[derive(Debug)]
pub struct Schema {
    source: Value,
    validator: Validator,
}

impl Schema {
    /// Compiles a schema: `true`, `false` or an object of draft 4, 6, 7, 2019-09 or 2020-12 (the default), by its
    /// `$schema`. `format` is asserted in the drafts that assert it.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        form::check(schema)?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(PATTERN_BYTES);
        let built = jsonschema::options()
            .with_pattern_options(patterns)
            .offline()
            .build(schema);
        let validator = built.map_err(|error| SchemaError::Invalid {
            problem: told(&error),
        })?;
        Ok(Self {
            source: schema.clone(),
            validator,
        })
    }

    /// What is wrong with `value`, each with its place as a JSON pointer; nothing when it is valid. At most
    /// [`MAX_MESSAGES`] messages of [`MAX_MESSAGE`] characters, and for large values only the first.
    ///
    /// [`SchemaError::TooCostly`] when the two together ask for more than [`MAX_STEPS`]: then nothing is known.
    pub fn validate(&self, value: &Value) -> Result<Vec<String>, SchemaError> {
        let steps = cost::steps(&self.source, value, MAX_STEPS).ok_or(SchemaError::TooCostly)?;
        if steps > STEPS_WITH_ALL_MISTAKES {
            let first = self.validator.validate(value).err();
            return Ok(first.iter().map(told).collect());
        }
        let mistakes = self.validator.iter_errors(value).take(MAX_MESSAGES);
        Ok(mistakes.map(|mistake| told(&mistake)).collect())
    }
}

/// A mistake without the value itself, which may be long.
fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { "the top" } else { &place };
    one_line(&format!("at {place}: {}", error.masked()), MAX_MESSAGE)
}

#[cfg(test)]
mod tests;
