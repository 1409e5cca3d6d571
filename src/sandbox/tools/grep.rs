//! `grep`: ripgrep's own crates, with bounds.

use super::arguments::Grep;
use super::names::shown;
use super::pattern::Pattern;
use super::walk::{Start, starts};
use super::{Answer, Result, ToolError, bound};
use crate::resolve::Roots;
use agentrun_protocol::tool::Facts;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, MmapChoice, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::{DirEntry, WalkState};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lines in an answer when nothing else is asked for.
const DEFAULT_RESULTS: u64 = 100;
const MAX_RESULTS: u64 = 1_000;
/// The most lines around a match.
const MAX_CONTEXT: u64 = 10;
/// Matches that are counted before the search ends.
const MAX_COUNTED: u64 = 10_000;
/// Characters of a line that are shown.
const MAX_LINE: usize = 500;
/// Bytes of lines that are held to sort them (8 MiB), and bytes of the answer (50 KB).
const MAX_HELD: usize = 8 << 20;
const MAX_TEXT: usize = 50_000;
/// The largest file that is searched (256 MiB).
const MAX_FILE: u64 = 256 << 20;
/// Bytes of one line; a file with a longer one is left out (16 MiB).
const MAX_HEAP: usize = 16 << 20;
/// The longest pattern, and how large it may become as an automaton (8 MiB).
const MAX_PATTERN: usize = 8 * 1024;
const MAX_AUTOMATON: usize = 8 << 20;

pub(super) fn run(arguments: &Grep, roots: &Roots) -> Result<Answer> {
    let most = bound("max_results", arguments.max_results, DEFAULT_RESULTS, MAX_RESULTS)?;
    if arguments.context > MAX_CONTEXT {
        return Err(ToolError::Value {
            name: "context",
            found: arguments.context.to_string(),
            allowed: format!("allowed is 0 to {MAX_CONTEXT}"),
        });
    }
    let search = Search {
        matcher: matcher(arguments)?,
        context: usize::try_from(arguments.context).unwrap_or(0),
        names: arguments.glob.as_deref().map(Pattern::new).transpose()?,
        most,
        files: Mutex::default(),
        counted: AtomicU64::new(0),
        held: AtomicUsize::new(0),
        left_out: AtomicU64::new(0),
    };
    let mut complete = true;
    for start in starts(arguments.path.as_deref(), roots)? {
        complete &= search.start(&start, arguments.include_ignored)?;
    }
    Ok(search.answer(complete))
}

fn matcher(arguments: &Grep) -> Result<RegexMatcher> {
    let pattern = &arguments.pattern;
    let refuse = |problem: String| ToolError::Pattern {
        pattern: pattern.chars().take(100).collect(),
        problem,
    };
    if pattern.is_empty() || pattern.len() > MAX_PATTERN {
        return Err(refuse(format!(
            "it has {} bytes, allowed is 1 to {MAX_PATTERN}",
            pattern.len()
        )));
    }
    RegexMatcherBuilder::new()
        .case_insensitive(!arguments.case_sensitive)
        .fixed_strings(arguments.literal)
        .line_terminator(Some(b'\n'))
        .size_limit(MAX_AUTOMATON)
        .dfa_size_limit(MAX_AUTOMATON)
        .build(pattern)
        .map_err(|error| refuse(format!("{error}; for plain text set literal")))
}

fn searcher(context: usize) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        // A mapped file that is cut short meanwhile would end this process.
        .memory_map(MmapChoice::never())
        .heap_limit(Some(MAX_HEAP))
        .build()
}

struct Search {
    matcher: RegexMatcher,
    context: usize,
    names: Option<Pattern>,
    most: u64,
    files: Mutex<Vec<Hits>>,
    counted: AtomicU64,
    held: AtomicUsize,
    left_out: AtomicU64,
}

/// The lines of one file.
struct Hits {
    path: String,
    lines: Vec<Line>,
}

struct Line {
    number: u64,
    matches: bool,
    text: String,
}

impl Search {
    /// Returns whether everything was looked at.
    fn start(&self, start: &Start, include_ignored: bool) -> Result<bool> {
        if let Some(file) = start.as_file() {
            let path = start.shown(Path::new(""));
            let file = file.map_err(|error| ToolError::System {
                path: path.clone(),
                error,
            })?;
            self.file(&mut searcher(self.context), &file, || path);
            return Ok(true);
        }
        let complete = start.walk(include_ignored, || {
            let mut searcher = searcher(self.context);
            move |relative: &Path, entry: &DirEntry| {
                let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
                if is_file && self.names.as_ref().is_none_or(|names| names.matches(relative)) {
                    match start.open(relative) {
                        Some((_, bytes)) if bytes > MAX_FILE => self.leave_out(),
                        Some((file, _)) => self.file(&mut searcher, &file, || start.shown(relative)),
                        None => {}
                    }
                }
                if self.counted.load(Ordering::Relaxed) < MAX_COUNTED {
                    WalkState::Continue
                } else {
                    WalkState::Quit
                }
            }
        });
        Ok(complete)
    }

    fn leave_out(&self) {
        self.left_out.fetch_add(1, Ordering::Relaxed);
    }

    fn file(&self, searcher: &mut Searcher, file: &File, path: impl FnOnce() -> String) {
        let mut taker = Taker {
            search: self,
            lines: Vec::new(),
            matches: 0,
        };
        // A line that is too long, or a disk that fails: what was found before still counts.
        if searcher.search_file(&self.matcher, file, &mut taker).is_err() {
            self.leave_out();
        }
        if !taker.lines.is_empty() {
            let hits = Hits {
                path: path(),
                lines: taker.lines,
            };
            self.files
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(hits);
        }
    }

    fn answer(self, complete: bool) -> Answer {
        let total = self.counted.into_inner();
        let more = !complete || total >= MAX_COUNTED;
        let mut files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let mut text = String::new();
        let mut shown = 0;
        let mut paths = Vec::new();
        'all: for file in &files {
            for line in &file.lines {
                if (line.matches && shown >= self.most) || text.len() > MAX_TEXT {
                    break 'all;
                }
                let mark = if line.matches { ':' } else { '-' };
                let _ = writeln!(text, "{}{mark}{}{mark}{}", file.path, line.number, line.text);
                shown += u64::from(line.matches);
                if paths.last() != Some(&file.path) {
                    paths.push(file.path.clone());
                }
            }
        }
        if total == 0 {
            text.push_str("[nothing matches; binary files are left out, and without include_ignored what .gitignore names]\n");
        } else if shown < total || more {
            let least = if more { "at least " } else { "" };
            let _ = writeln!(
                text,
                "[{shown} of {least}{total} matching lines; use a narrower pattern, path or glob, or max_results up to \
                 {MAX_RESULTS}]"
            );
        }
        let left_out = self.left_out.into_inner();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "[{left_out} files were not searched to their end: larger than {MAX_FILE} bytes, a line longer than \
                 {MAX_HEAP} bytes, or not readable]"
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
}

/// Takes the lines of one file.
struct Taker<'a> {
    search: &'a Search,
    lines: Vec<Line>,
    matches: u64,
}

impl Taker<'_> {
    fn take(&mut self, number: Option<u64>, bytes: &[u8], matches: bool) {
        if self.matches > self.search.most || self.search.held.load(Ordering::Relaxed) > MAX_HELD {
            return;
        }
        let text = line(bytes);
        self.search.held.fetch_add(text.len(), Ordering::Relaxed);
        self.lines.push(Line {
            number: number.unwrap_or(0),
            matches,
            text,
        });
    }
}

impl Sink for Taker<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.matches += 1;
        self.take(found.line_number(), found.bytes(), true);
        Ok(self.search.counted.fetch_add(1, Ordering::Relaxed) < MAX_COUNTED)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        self.take(context.line_number(), context.bytes(), false);
        Ok(true)
    }
}

/// A line as it is shown: without its end, cut, and nothing that moves a cursor.
fn line(bytes: &[u8]) -> String {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_LINE * 4)]);
    let end = text
        .char_indices()
        .nth(MAX_LINE)
        .map_or(text.len(), |(end, _)| end);
    let mut parts = text[..end].split('\t').map(shown);
    let mut line = parts.next().unwrap_or_default();
    for part in parts {
        line.push('\t');
        line.push_str(&part);
    }
    if end < text.len() || bytes.len() > MAX_LINE * 4 {
        let _ = write!(line, "\u{2026} [line cut: {} bytes in all]", bytes.len());
    }
    line
}
