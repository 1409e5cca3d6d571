//! From the text of a criterion to what it asks for.

use super::csv;
use agentrun_api::names::paths::{OUTPUTS, SKILLS, UPLOADS, WORKSPACE};

/// What a criterion asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// `file:PATH CHECK`.
    File {
        /// As it was written; relative to the workspace unless absolute.
        path: String,
        /// What must be true of it.
        check: FileCheck,
    },
    /// `file_written:PATH`: the sub-task itself wrote it.
    FileWritten {
        /// As it was written.
        path: String,
    },
    /// `tests_passed:COMMAND`: the sub-task ran it, and its tests passed.
    TestsPassed {
        /// As it was written.
        command: String,
    },
    /// `rerun:COMMAND`: it succeeds in a fresh sandbox.
    Rerun {
        /// As it was written.
        command: String,
    },
    /// Free text, which nobody can decide here.
    Unknown,
}

/// What must be true of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileCheck {
    /// It is a regular file.
    Exists,
    /// It has at least one byte.
    NonEmpty,
    /// It is one JSON document.
    JsonValid,
    /// Its first record has these columns.
    CsvColumns(Vec<String>),
    /// It is one JSON document, valid by the schema in this file.
    JsonSchema(String),
}

/// Which folders a path of a criterion may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What is delivered: workspace and outputs.
    Delivery,
    /// A schema: besides, uploads and skills.
    Schema,
}

/// A criterion that is surely a slip: it begins like one that is checked, but can never be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CriterionError {
    /// `file:` without a check.
    #[error(
        "names no check: write file:PATH and one of exists, non-empty, json-valid, csv-columns:A,B and json-schema:PATH"
    )]
    NoCheck,
    /// Nothing after the family's name.
    #[error("is empty after {family}: name {what}")]
    Empty {
        /// `file_written:` and the like.
        family: &'static str,
        /// What must follow.
        what: &'static str,
    },
    /// A family that is not written as it is called.
    #[error("begins with {found:?}: write {family:?}")]
    Misspelt {
        /// As it was written.
        found: String,
        /// As it is called.
        family: &'static str,
    },
    /// No column, or one without a name.
    #[error("names an empty column: write csv-columns:A,B")]
    NoColumn,
    /// A path that is never looked at.
    #[error(
        "names {path:?}: allowed are paths relative to the workspace and below {WORKSPACE} and {OUTPUTS}, \
         for a schema also below {SKILLS} and {UPLOADS}, without .. parts"
    )]
    Path {
        /// As it was written.
        path: String,
    },
}

const FILE: &str = "file:";
const FILE_WRITTEN: &str = "file_written:";
const TESTS_PASSED: &str = "tests_passed:";
const RERUN: &str = "rerun:";

impl Criterion {
    /// The word of its kind in a status.
    pub fn family(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::FileWritten { .. } => "file_written",
            Self::TestsPassed { .. } => "tests_passed",
            Self::Rerun { .. } => "rerun",
            Self::Unknown => "unknown",
        }
    }
}

/// Reads a criterion. Names of families and checks are taken in any case, white space around it does not count.
pub fn parse(text: &str) -> Result<Criterion, CriterionError> {
    let text = text.trim();
    if let Some(rest) = after(text, FILE) {
        return file(rest);
    }
    if let Some(path) = after(text, FILE_WRITTEN) {
        let path = in_scope(filled(path, FILE_WRITTEN, "a path")?, Scope::Delivery)?;
        return Ok(Criterion::FileWritten { path });
    }
    if let Some(command) = after(text, TESTS_PASSED) {
        let command = filled(command, TESTS_PASSED, "a command")?.to_owned();
        return Ok(Criterion::TestsPassed { command });
    }
    if let Some(command) = after(text, RERUN) {
        let command = filled(command, RERUN, "a command")?.to_owned();
        return Ok(Criterion::Rerun { command });
    }
    match misspelt(text) {
        Some(error) => Err(error),
        None => Ok(Criterion::Unknown),
    }
}

fn after<'a>(text: &'a str, family: &str) -> Option<&'a str> {
    let begins = text.get(..family.len())?;
    begins
        .eq_ignore_ascii_case(family)
        .then(|| text[family.len()..].trim())
}

fn filled<'a>(text: &'a str, family: &'static str, what: &'static str) -> Result<&'a str, CriterionError> {
    if text.is_empty() {
        return Err(CriterionError::Empty { family, what });
    }
    Ok(text)
}

fn file(rest: &str) -> Result<Criterion, CriterionError> {
    let (path, check) = split_check(rest).ok_or(CriterionError::NoCheck)?;
    let path = in_scope(filled(path, FILE, "a path")?, Scope::Delivery)?;
    Ok(Criterion::File { path, check: check? })
}

type Check = Result<FileCheck, CriterionError>;

/// The path, which may hold spaces, and the check behind it.
fn split_check(rest: &str) -> Option<(&str, Check)> {
    for (word, check) in [
        ("exists", FileCheck::Exists),
        ("non-empty", FileCheck::NonEmpty),
        ("json-valid", FileCheck::JsonValid),
    ] {
        if let Some(path) = before_last(rest, word) {
            return Some((path, Ok(check)));
        }
    }
    if let Some((path, columns)) = around(rest, "csv-columns:") {
        return Some((path, columns_of(columns)));
    }
    let (path, schema) = around(rest, "json-schema:")?;
    let schema = filled(schema, "json-schema:", "the schema's path");
    let schema = schema.and_then(|schema| in_scope(schema, Scope::Schema));
    Some((path, schema.map(FileCheck::JsonSchema)))
}

/// The text before `word`, if that is the last one. The text is empty where the word is all there is.
fn before_last<'a>(rest: &'a str, word: &str) -> Option<&'a str> {
    let start = rest.len().checked_sub(word.len())?;
    let last = rest.get(start..)?;
    let path = &rest[..start];
    let separate = path.is_empty() || path.ends_with(char::is_whitespace);
    (separate && last.eq_ignore_ascii_case(word)).then(|| path.trim())
}

/// What stands before and after the first `word` that follows white space.
fn around<'a>(rest: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let lower = rest.to_ascii_lowercase();
    let mut places = lower.match_indices(word).map(|(at, _)| at);
    let at = places.find(|at| *at == 0 || rest[..*at].ends_with(char::is_whitespace))?;
    Some((rest[..at].trim(), rest[at + word.len()..].trim()))
}

/// Columns are one CSV record, so that a name with a comma can be quoted.
fn columns_of(text: &str) -> Check {
    let columns = csv::fields(text.as_bytes()).ok_or(CriterionError::NoColumn)?;
    let columns: Vec<_> = columns
        .iter()
        .map(|column| String::from_utf8_lossy(column).trim().to_owned())
        .collect();
    if columns.is_empty() || columns.iter().any(String::is_empty) {
        return Err(CriterionError::NoColumn);
    }
    Ok(FileCheck::CsvColumns(columns))
}

fn in_scope(path: &str, scope: Scope) -> Result<String, CriterionError> {
    if scope.has(path) {
        return Ok(path.to_owned());
    }
    Err(CriterionError::Path {
        path: path.to_owned(),
    })
}

impl Scope {
    /// Whether a path, as it is written, may be looked at. Names are compared whole.
    pub fn has(self, path: &str) -> bool {
        if path.contains('\0') || path.split('/').any(|name| name == "..") {
            return false;
        }
        let below = |folder: &str| {
            path.strip_prefix(folder)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        let delivered = !path.starts_with('/') || below(WORKSPACE) || below(OUTPUTS);
        delivered || self == Self::Schema && (below(SKILLS) || below(UPLOADS))
    }
}

/// A first word with a colon that is a family's but for case, dashes and a plural.
fn misspelt(text: &str) -> Option<CriterionError> {
    let (found, _) = text.split_once(':')?;
    let plain: String = found
        .chars()
        .filter(|character| !matches!(character, '-' | '_' | ' '))
        .collect();
    let family = match plain.to_ascii_lowercase().as_str() {
        "file" | "files" => FILE,
        "filewritten" | "fileswritten" | "filewrite" => FILE_WRITTEN,
        "testspassed" | "testpassed" | "testspass" | "testpass" => TESTS_PASSED,
        "rerun" | "reruns" => RERUN,
        _ => return None,
    };
    Some(CriterionError::Misspelt {
        found: format!("{found}:"),
        family,
    })
}
