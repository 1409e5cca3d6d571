//! What a task has come to, by its sub-tasks.

use crate::expr::Output;
use agentrun_api::{AcceptancePolicy, Outcome, SubTask, SubTaskReason, Threshold, When};
use serde_json::Value;
use std::borrow::Cow;

/// The most JSON that a `forEach` task's collected output may have, in bytes (docs/reference.md).
pub const MAX_COLLECTED_BYTES: usize = 256 * 1024;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// Success, and accepted where that is required.
    Succeeded,
    /// Error, Timeout, ParseError, Cancelled, or not accepted.
    Failed(Outcome),
    /// It never ran.
    Skipped,
}

impl TaskEnd {
    /// Whether this end is what a dependant waits for.
    pub fn satisfies(self, when: When) -> bool {
        match when {
            When::Succeeded => self == Self::Succeeded,
            When::Failed => matches!(self, Self::Failed(_)),
            When::Finished => true,
        }
    }

    /// The same for people: a success that is not accepted says so.
    pub fn told(self) -> &'static str {
        match self {
            Self::Failed(Outcome::Success) => "Success, but is not accepted",
            end => end.word(),
        }
    }

    /// The word that `tasks.NAME.outcome` holds.
    pub fn word(self) -> &'static str {
        match self {
            Self::Succeeded => Outcome::Success.as_str(),
            Self::Failed(outcome) => outcome.as_str(),
            Self::Skipped => Outcome::Skipped.as_str(),
        }
    }
}

/// The end of one sub-task, `None` while it has no outcome.
pub fn end_of(child: &SubTask) -> Option<TaskEnd> {
    Some(match child.status.as_ref()?.outcome? {
        Outcome::Success if is_accepted(child) => TaskEnd::Succeeded,
        Outcome::Skipped => TaskEnd::Skipped,
        outcome => TaskEnd::Failed(outcome),
    })
}

/// Under `Require`, every criterion was checked and holds.
fn is_accepted(child: &SubTask) -> bool {
    if child.spec.acceptance.is_empty() || child.spec.acceptance_policy != Some(AcceptancePolicy::Require) {
        return true;
    }
    let verdicts = child.status.as_ref().map_or(&[][..], |status| &status.acceptance);
    let holds = |criterion: &String| {
        verdicts
            .iter()
            .any(|verdict| verdict.criterion == *criterion && verdict.checked && verdict.holds)
    };
    child.spec.acceptance.iter().all(holds)
}

/// The output of one sub-task.
pub fn output_of(child: &SubTask) -> Output<'_> {
    let Some(status) = &child.status else {
        return Output::None;
    };
    if let Some(file) = &status.output_ref {
        return Output::Ref {
            path: Cow::Borrowed(&file.path),
            bytes: u64::try_from(file.bytes).unwrap_or_default(),
            sha256: Cow::Borrowed(&file.sha256),
        };
    }
    status
        .output
        .as_ref()
        .map_or(Output::None, |output| Output::Inline(Cow::Borrowed(&output.0)))
}

/// The collected output of a `forEach` task: a list in item order, null where an item was not
/// successful. One item's output that is a file, or a list that is too long, makes the whole a file.
pub fn collect<'a>(items: &[Option<&'a SubTask>]) -> Output<'a> {
    let mut list = Vec::with_capacity(items.len());
    for item in items {
        let succeeded = item.filter(|child| end_of(child) == Some(TaskEnd::Succeeded));
        match succeeded.map_or(Output::None, output_of) {
            Output::Inline(value) => list.push(value.into_owned()),
            Output::None => list.push(Value::Null),
            Output::Ref { path, bytes, sha256 } => return Output::Ref { path, bytes, sha256 },
        }
    }
    let list = Value::Array(list);
    let bytes = list.to_string().len();
    if bytes <= MAX_COLLECTED_BYTES {
        return Output::Inline(Cow::Owned(list));
    }
    Output::Ref {
        path: Cow::Borrowed(""),
        bytes: bytes as u64,
        sha256: Cow::Borrowed(""),
    }
}

/// How many items of `total` may fail.
pub fn allowed_failures(threshold: Option<&Threshold>, total: usize) -> usize {
    let allowed = threshold
        .map_or(Some(0), |threshold| threshold.of(total as u64))
        .unwrap_or(0);
    usize::try_from(allowed).unwrap_or(0)
}

/// Whether a sub-task was ended because its siblings failed too often.
pub fn is_surplus(child: &SubTask) -> bool {
    let reason = child.status.as_ref().and_then(|status| status.reason.as_deref());
    reason == Some(SubTaskReason::TooManyFailures.as_str())
}
