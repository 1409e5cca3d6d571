//! Exactly one JSON document, or an error that says what stands where.

use std::fmt::Write as _;

use agentrun_api::SubTaskReason;
use serde_json::Value;

use super::tail::prefix;
use crate::json_scan::{self, Fault, FaultKind};

/// The deepest nesting of an output: what `serde_json` takes without a deeper stack.
pub const MAX_DEPTH: usize = 127;

/// Bytes of the output that an error shows, from its start and from where the fault is.
const SHOWN: usize = 80;
/// How many lines are tried when looking for the document behind stray lines.
const LINES_TRIED: usize = 20;

/// One JSON document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document<'a> {
    /// Its exact text, without white space around it: what is stored when [`crate::survives::survives`] says that the
    /// API server would change it.
    pub raw: &'a str,
    /// Its value; integers beyond 64 bits are rounded here, and only here.
    pub value: Value,
}

/// Why an output is not exactly one JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_name} must be exactly one JSON document: {problem}{}", places(self))]
pub struct ContractError {
    /// `stdout` or `$AGENTRUN_OUTPUT`.
    pub source_name: &'static str,
    /// What is wrong; part of this error's text.
    pub problem: Problem,
    /// The byte where it is, from 0.
    pub at: usize,
    /// The first bytes, escaped.
    pub begins: String,
    /// The bytes at the fault, escaped; empty if it is at the start or at the end.
    pub near: String,
}

fn places(error: &ContractError) -> String {
    let mut text = String::new();
    if error.problem != Problem::NoOutput {
        let _infallible = write!(text, " (byte {}", error.at);
        if !error.near.is_empty() {
            let _infallible = write!(text, ", at `{}`", error.near);
        }
        let _infallible = write!(text, "); it begins with `{}`", error.begins);
    }
    text
}

/// What can be wrong with an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nothing but white space.
    #[error("nothing was written; print the result as JSON")]
    NoOutput,
    /// A byte order mark.
    #[error("it begins with a byte order mark; write UTF-8 without one")]
    ByteOrderMark,
    /// A byte that is no UTF-8.
    #[error("it is not UTF-8; write text as UTF-8 and binary data as base64")]
    InvalidUtf8,
    /// A Markdown fence around it.
    #[error("it is wrapped in a Markdown fence; print the bare JSON")]
    Fence,
    /// Text before the document.
    #[error("it begins with text that is no JSON; print logs to stderr")]
    StrayText,
    /// A second document.
    #[error("a second document follows; print one, such as a list")]
    SecondDocument,
    /// Something after the document.
    #[error("text follows the document; print logs to stderr")]
    TrailingText,
    /// It ends within the document.
    #[error("it is cut off within the document")]
    Cut,
    /// `NaN` or an infinity.
    #[error("NaN and Infinity are no JSON; write null or a string")]
    NotANumber,
    /// A number that no float64 holds.
    #[error("a number is too large for a 64-bit float; write it as a string")]
    HugeNumber,
    /// A malformed number.
    #[error("a number is malformed")]
    BadNumber,
    /// A malformed escape in a string.
    #[error("a string has an invalid escape")]
    BadEscape,
    /// Half of a surrogate pair.
    #[error("a string has half of a surrogate pair; write UTF-8 or a whole pair")]
    LoneSurrogate,
    /// An unescaped control character.
    #[error("a string has a bare control character; escape line breaks as \\n")]
    ControlCharacter,
    /// A key twice in one object.
    #[error("the key {0:?} stands twice in one object, and one of the values would be lost")]
    DuplicateKey(String),
    /// Deeper than [`MAX_DEPTH`].
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// Anything else that JSON does not have.
    #[error("this is no JSON")]
    Unexpected,
    /// More was written than is kept.
    #[error("{total} bytes were written and {kept} are kept; write large results to a file below outputs")]
    TooLarge {
        /// All bytes written.
        total: u64,
        /// The bytes that were kept.
        kept: u64,
    },
}

impl ContractError {
    /// The word for the object's status.
    pub fn reason(&self) -> SubTaskReason {
        match self.problem {
            Problem::NoOutput => SubTaskReason::NoOutput,
            Problem::SecondDocument | Problem::TrailingText => SubTaskReason::TrailingOutput,
            Problem::TooLarge { .. } => SubTaskReason::OutputTooLarge,
            _ => SubTaskReason::InvalidOutput,
        }
    }

    pub(super) fn too_large(source: &'static str, kept: &[u8], total: u64) -> Self {
        error(
            source,
            kept,
            kept.len(),
            Problem::TooLarge {
                total,
                kept: kept.len() as u64,
            },
        )
    }
}

/// Reads what a function wrote to stdout.
pub fn parse_stdout(bytes: &[u8]) -> Result<Document<'_>, ContractError> {
    parse("stdout", bytes)
}

/// Reads what a command wrote to the file `$AGENTRUN_OUTPUT`.
pub fn parse_output_file(bytes: &[u8]) -> Result<Document<'_>, ContractError> {
    parse("$AGENTRUN_OUTPUT", bytes)
}

/// Reads a file that is to be one document.
pub fn parse_file(bytes: &[u8]) -> Result<Document<'_>, ContractError> {
    parse("the file", bytes)
}

pub(super) fn parse<'a>(source: &'static str, bytes: &'a [u8]) -> Result<Document<'a>, ContractError> {
    let text =
        str::from_utf8(bytes).map_err(|e| error(source, bytes, e.valid_up_to(), Problem::InvalidUtf8))?;
    let start = json_scan::skip_white_space(bytes, 0);
    let refused = |at, problem| Err(error(source, bytes, at, problem));
    if start == bytes.len() {
        return refused(start, Problem::NoOutput);
    }
    if text[start..].starts_with('\u{feff}') {
        return refused(start, Problem::ByteOrderMark);
    }
    if text[start..].starts_with("```") {
        return refused(start, Problem::Fence);
    }
    let end = match json_scan::scan(text, start, MAX_DEPTH) {
        Ok(scanned) => scanned.end,
        Err(fault) if begins_with_stray_text(text, start, &fault) => {
            return refused(start, Problem::StrayText);
        }
        Err(fault) => return refused(fault.at, problem(fault.kind)),
    };
    let next = json_scan::skip_white_space(bytes, end);
    if next < bytes.len() {
        let (at, problem) = what_follows(text, start, next);
        return refused(at, problem);
    }
    let raw = &text[start..end];
    // The scanner is the stricter of the two, so this does not fail.
    let value = serde_json::from_str(raw).map_err(|_| error(source, bytes, start, Problem::Unexpected))?;
    Ok(Document { raw, value })
}

/// Whether the text fails right at its start, or a document stands on its own behind the first lines.
fn begins_with_stray_text(text: &str, start: usize, fault: &Fault) -> bool {
    let fails_at_start = fault.at == start && fault.kind == FaultKind::Unexpected;
    fails_at_start || has_document_behind(text, start)
}

fn has_document_behind(text: &str, start: usize) -> bool {
    let line_starts = text[start..].match_indices('\n').map(|(at, _)| start + at + 1);
    line_starts
        .take(LINES_TRIED)
        .filter(|at| text[*at..].starts_with(['{', '[']))
        .any(|at| is_document(text, at))
}

fn is_document(text: &str, at: usize) -> bool {
    json_scan::scan(text, at, MAX_DEPTH)
        .is_ok_and(|scanned| json_scan::skip_white_space(text.as_bytes(), scanned.end) == text.len())
}

fn what_follows(text: &str, start: usize, next: usize) -> (usize, Problem) {
    // A log line that begins like JSON, such as a date, is a document of its own only by accident.
    let first_is_structure = text[start..].starts_with(['{', '[']);
    if !first_is_structure && has_document_behind(text, start) {
        return (start, Problem::StrayText);
    }
    match json_scan::scan(text, next, MAX_DEPTH) {
        Ok(_) => (next, Problem::SecondDocument),
        Err(_) => (next, Problem::TrailingText),
    }
}

fn problem(kind: FaultKind) -> Problem {
    match kind {
        FaultKind::Cut => Problem::Cut,
        FaultKind::Unexpected => Problem::Unexpected,
        FaultKind::NotANumber => Problem::NotANumber,
        FaultKind::BadNumber => Problem::BadNumber,
        FaultKind::HugeNumber => Problem::HugeNumber,
        FaultKind::BadEscape => Problem::BadEscape,
        FaultKind::ControlCharacter => Problem::ControlCharacter,
        FaultKind::LoneSurrogate => Problem::LoneSurrogate,
        FaultKind::DuplicateKey(key) => Problem::DuplicateKey(key.chars().take(SHOWN).collect()),
        FaultKind::TooDeep => Problem::TooDeep,
    }
}

fn error(source_name: &'static str, bytes: &[u8], at: usize, problem: Problem) -> ContractError {
    let near = if at < SHOWN / 2 {
        String::new()
    } else {
        escaped(bytes.get(at..).unwrap_or_default())
    };
    ContractError {
        source_name,
        problem,
        at,
        begins: escaped(bytes),
        near,
    }
}

/// The first bytes as text in one line: what cannot be seen and what is no UTF-8 is escaped.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    let shown = prefix(bytes, SHOWN);
    for chunk in shown.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\'' | '\\' => text.push(character),
                other => text.extend(other.escape_debug()),
            }
        }
        for byte in chunk.invalid() {
            let _infallible = write!(text, "\\x{byte:02x}");
        }
    }
    if shown.len() < bytes.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
