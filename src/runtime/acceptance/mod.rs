//! Gathers the facts that acceptance criteria are decided from, after the work has ended well and before its result
//! is posted. `agentrun-core` decides.
//!
//! User code made the files and may still change them: nothing is opened that is not a regular file, nothing is read
//! beyond its bound, and all of it has to come to an end within [`CHECK_TIME`].

mod calls;
mod look;
mod written;

pub(crate) use calls::{Call, Output, of_agent};
pub(crate) use written::Before;

use agentrun_core::acceptance::{
    Criterion, FileCheck, Finding, HEADER_BYTES, JSON_BYTES, Scope, decide_file, decide_written, parse,
};
use agentrun_protocol::result::CriterionVerdict;
use agentrun_sandbox::resolve::Roots;
use look::look;
use std::time::{Duration, Instant};

/// What a criterion that was not looked at is told by.
const LATE: &str = "the time for checks was over";
/// How long all criteria together may take; what is not checked by then is unverified.
pub(crate) const CHECK_TIME: Duration = Duration::from_secs(20);

/// What is known besides the files themselves.
pub(crate) struct Facts<'a> {
    /// Where files are.
    pub(crate) roots: &'a Roots,
    /// The files that criteria ask to be written, before the sub-task began.
    pub(crate) before: &'a Before,
    /// What the sub-task ran, oldest first.
    pub(crate) calls: &'a [Call],
    /// When to stop.
    pub(crate) until: Instant,
}

/// What each criterion says. Blocks.
pub(crate) fn check(criteria: &[String], facts: &Facts<'_>) -> Vec<CriterionVerdict> {
    criteria.iter().map(|text| verdict(text, facts)).collect()
}

/// What is said of each criterion when the time is over.
pub(crate) fn unchecked(criteria: &[String]) -> Vec<CriterionVerdict> {
    let late = || Finding::unverified(LATE);
    let said = criteria
        .iter()
        .map(|text| say(text, &parse(text).unwrap_or(Criterion::Unknown), late()));
    said.collect()
}

fn verdict(text: &str, facts: &Facts<'_>) -> CriterionVerdict {
    // What admission refuses can still come in by hand.
    let criterion = parse(text).unwrap_or(Criterion::Unknown);
    let finding = if Instant::now() < facts.until {
        find(&criterion, facts)
    } else {
        Finding::unverified(LATE)
    };
    say(text, &criterion, finding)
}

fn say(text: &str, criterion: &Criterion, finding: Finding) -> CriterionVerdict {
    CriterionVerdict {
        criterion: text.to_owned(),
        family: criterion.family().to_owned(),
        checked: finding.checked,
        holds: finding.holds,
        detail: finding.detail,
    }
}

fn find(criterion: &Criterion, facts: &Facts<'_>) -> Finding {
    let roots = facts.roots;
    match criterion {
        Criterion::File { path, check } => {
            let file = look(roots, path, Scope::Delivery, content_of(check));
            let schema = match check {
                FileCheck::JsonSchema(schema) => Some(look(roots, schema, Scope::Schema, JSON_BYTES)),
                _ => None,
            };
            decide_file(check, &file, schema.as_ref())
        }
        Criterion::FileWritten { path } => {
            let file = look(roots, path, Scope::Delivery, 0);
            decide_written(&file, facts.before.was_written(roots, path))
        }
        Criterion::TestsPassed { command } => calls::tests_passed(command, facts.calls, facts.until),
        Criterion::Rerun { .. } => Finding::unverified("its command is run again in a sandbox of its own"),
        Criterion::Unknown => Finding::unverified("this is free text, for a person to judge"),
    }
}

/// Bytes that a check reads.
fn content_of(check: &FileCheck) -> u64 {
    match check {
        FileCheck::Exists | FileCheck::NonEmpty => 0,
        FileCheck::JsonValid | FileCheck::JsonSchema(_) => JSON_BYTES,
        FileCheck::CsvColumns(_) => HEADER_BYTES as u64,
    }
}

#[cfg(test)]
mod tests;
