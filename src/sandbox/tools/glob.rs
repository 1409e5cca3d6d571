//! `glob`.

use super::arguments::Glob;
use super::pattern::Pattern;
use super::walk::{Start, starts};
use super::{Answer, Result, bound};
use crate::resolve::Roots;
use agentrun_protocol::tool::Facts;
use ignore::{DirEntry, WalkState};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Paths in an answer when nothing else is asked for.
const DEFAULT_RESULTS: u64 = 200;
const MAX_RESULTS: u64 = 1_000;
/// Paths that are held to sort them.
const MAX_HELD: usize = 100_000;

pub(super) fn run(arguments: &Glob, roots: &Roots) -> Result<Answer> {
    let pattern = Pattern::new(&arguments.pattern)?;
    let most = bound("max_results", arguments.max_results, DEFAULT_RESULTS, MAX_RESULTS)?;
    let starts = starts(arguments.path.as_deref(), roots)?;
    let mut found = Vec::new();
    let mut complete = true;
    for start in &starts {
        let (below, all) = names_below(start, arguments, &pattern);
        complete &= all;
        found.extend(below.into_iter().map(|name| (start, name)));
    }
    let total = found.len() as u64;
    found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let paths = found.into_iter().map(|(start, name)| {
        let slash = if name.is_folder { "/" } else { "" };
        format!("{}{slash}", start.shown(Path::new(&name.relative)))
    });
    Ok(answer(paths.collect(), total, !complete))
}

/// What matches; made into text only when it is shown.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    relative: OsString,
    is_folder: bool,
}

/// The names below, sorted, and whether these are all.
fn names_below(start: &Start, arguments: &Glob, pattern: &Pattern) -> (Vec<Name>, bool) {
    let found = Mutex::new(Vec::new());
    let complete = start.walk(arguments.include_ignored, || {
        |relative: &Path, entry: &DirEntry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            if (is_folder && !arguments.include_dirs) || !pattern.matches(relative) {
                return WalkState::Continue;
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.push(Name {
                relative: relative.as_os_str().to_owned(),
                is_folder,
            });
            if found.len() < MAX_HELD {
                WalkState::Continue
            } else {
                WalkState::Quit
            }
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_unstable();
    let complete = complete && found.len() < MAX_HELD;
    (found, complete)
}

fn answer(paths: Vec<String>, total: u64, more: bool) -> Answer {
    let mut text = paths.join("\n");
    let shown = paths.len() as u64;
    if paths.is_empty() {
        text.push_str("[nothing matches; files that .gitignore leaves out need include_ignored]");
    } else if shown < total || more {
        let least = if more { "at least " } else { "" };
        let _ = write!(
            text,
            "\n[{shown} of {least}{total} paths; use a narrower pattern or path, or max_results up to {MAX_RESULTS}]"
        );
    }
    Answer::new(
        text,
        Facts::Found {
            shown,
            total,
            more,
            paths,
        },
    )
}
