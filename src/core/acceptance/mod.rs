//! Acceptance criteria: what they say, and what facts make of them.
//!
//! Nothing here looks at a file or runs anything. The runtime gathers [`FileFacts`] and [`CommandRun`]s where user code
//! cannot forge them, and every decision follows from those. What cannot be decided is unverified: never taken to hold,
//! and never called a failure of the work.

mod command;
mod criterion;
mod csv;
mod file;
mod finding;
mod report;
mod rerun;
mod verdict;

pub use command::{CallEnd, CommandRun, Judge, judge_of};
pub use criterion::{Criterion, CriterionError, FileCheck, Scope, parse};
pub use csv::HEADER_BYTES;
pub use file::{FileFacts, JSON_BYTES, Regular, decide_file, decide_written};
pub use finding::Finding;
pub use rerun::{command as rerun_command, decide_rerun, is_idle, leave_open, not_run_again};
pub use verdict::{Standing, notes, of_report, standing};

/// The most criteria of one sub-task or run (docs/reference.md).
pub const MAX_CRITERIA: usize = 20;
/// The most characters of one criterion.
pub const MAX_CRITERION: usize = 500;
/// The most characters of what was found.
pub const MAX_DETAIL: usize = 160;

#[cfg(test)]
mod tests;
