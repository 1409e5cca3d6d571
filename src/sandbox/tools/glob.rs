//! `glob`.

use super::arguments::Glob;
use super::pattern::Pattern;
use super::walk::starts;
use super::{Answer, Result, bound};
use crate::resolve::Roots;
use agentrun_protocol::tool::Facts;
use ignore::{DirEntry, WalkState};
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
    let found = Mutex::new(Vec::new());
    let mut complete = true;
    for start in starts(arguments.path.as_deref(), roots)? {
        complete &= start.walk(arguments.include_ignored, || {
            |relative: &Path, entry: &DirEntry| {
                let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
                if (is_folder && !arguments.include_dirs) || !pattern.matches(relative) {
                    return WalkState::Continue;
                }
                let slash = if is_folder { "/" } else { "" };
                let path = format!("{}{slash}", start.shown(relative));
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.push(path);
                if found.len() < MAX_HELD {
                    WalkState::Continue
                } else {
                    WalkState::Quit
                }
            }
        });
    }
    let mut paths = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let more = !complete || paths.len() >= MAX_HELD;
    paths.sort_unstable();
    let total = paths.len() as u64;
    paths.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(answer(paths, total, more))
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
