//! What a run gives back.

use super::outcome::{TaskEnd, output_of};
use super::parsed::Expressions;
use crate::expr::{ExprError, Output, Scope, Template, TextTemplate};
use agentrun_api::FileRef;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The largest output that an object carries, in bytes of JSON (docs/reference.md).
pub const MAX_INLINE_BYTES: usize = 16 * 1024;

/// A run's output.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutput {
    /// It stands in the status.
    Inline(Value),
    /// It is the file of exactly one task.
    Ref(FileRef),
    /// It is too large for the status and no single task's file.
    TooLarge {
        /// Bytes of its JSON, where known.
        bytes: Option<usize>,
    },
    /// `spec.output` has no value.
    Failed(String),
}

/// Evaluates the output. Without `spec.output` it is the output of the only task that no other waits for, else a map
/// of those tasks' outputs by name.
pub(super) fn of_run(
    expressions: &Expressions,
    leaves: &[&str],
    results: &BTreeMap<&str, Output<'_>>,
    scope: &Scope<'_>,
) -> RunOutput {
    let none = Output::None;
    let result = |task: &str| results.get(task).unwrap_or(&none);
    if let Some(output) = &expressions.output {
        return match output.evaluate(scope) {
            Ok(value) => inline(value),
            Err(error) => match error.error {
                ExprError::OutputNotInline { task } if is_exactly(output, &task) => whole(result(&task)),
                ExprError::OutputNotInline { .. } => RunOutput::TooLarge { bytes: None },
                _ => RunOutput::Failed(format!("spec.output: {error}")),
            },
        };
    }
    if let [only] = leaves {
        return whole(result(only));
    }
    let mut map = Map::new();
    for leaf in leaves {
        match result(leaf) {
            Output::Inline(value) => map.insert((*leaf).to_owned(), value.clone().into_owned()),
            Output::None => map.insert((*leaf).to_owned(), Value::Null),
            Output::Ref { .. } => return RunOutput::TooLarge { bytes: None },
        };
    }
    inline(Value::Object(map))
}

/// The output of one task, as it is.
fn whole(output: &Output<'_>) -> RunOutput {
    match output {
        Output::Inline(value) => inline(value.clone().into_owned()),
        Output::None => RunOutput::Inline(Value::Null),
        // A collected list that is too long has no file of its own.
        Output::Ref { path, bytes, .. } if path.is_empty() => RunOutput::TooLarge {
            bytes: usize::try_from(*bytes).ok(),
        },
        Output::Ref { path, bytes, sha256 } => RunOutput::Ref(FileRef {
            path: path.clone().into_owned(),
            bytes: i64::try_from(*bytes).unwrap_or(i64::MAX),
            sha256: sha256.clone().into_owned(),
        }),
    }
}

fn inline(value: Value) -> RunOutput {
    let bytes = value.to_string().len();
    if bytes > MAX_INLINE_BYTES {
        RunOutput::TooLarge { bytes: Some(bytes) }
    } else {
        RunOutput::Inline(value)
    }
}

/// Whether the template is `${tasks.NAME.output}` and nothing else.
fn is_exactly(template: &Template, task: &str) -> bool {
    let Template::Text(TextTemplate::Single(expression)) = template else {
        return false;
    };
    let source: String = expression
        .source()
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    source == format!("tasks.{task}.output") || source == format!("tasks[\"{task}\"].output")
}

/// The output of a task that ended: null where it was not successful.
pub(super) fn of_task(end: TaskEnd, child: &agentrun_api::SubTask) -> Output<'_> {
    if end == TaskEnd::Succeeded {
        output_of(child)
    } else {
        Output::None
    }
}
