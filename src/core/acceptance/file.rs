//! Decides criteria about files.

use super::csv::{self, Header};
use super::{FileCheck, Finding};
use crate::contract::{self, ContractError};
use crate::schema::Schema;
use serde_json::Value;

/// The largest document that is checked, in bytes; of a longer one only the size is known.
pub const JSON_BYTES: u64 = 50_000;

/// What is known of a path. The one who looks never opens what is not a regular file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFacts {
    /// Nothing is there.
    Missing,
    /// Something else than a regular file: `folder`, `pipe`, `socket`, `device`.
    Other(&'static str),
    /// A link leads out of its folder, the workspace or outputs.
    Outside,
    /// It is there and could not be looked at, for this cause.
    Unreadable(String),
    /// A regular file.
    Regular(Regular),
}

/// A regular file, read as far as its check needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Regular {
    /// Its size in bytes.
    pub bytes: u64,
    /// What was read of it, from its start; empty where nothing had to be read.
    pub content: Vec<u8>,
    /// It changed while it was read.
    pub changed: bool,
}

/// Decides `file:PATH CHECK`; `schema` is the document in the schema's file, for the check that names one. Pure.
pub fn decide_file(check: &FileCheck, facts: &FileFacts, schema: Option<&FileFacts>) -> Finding {
    let file = match regular(facts) {
        Ok(file) => file,
        Err(finding) => return finding,
    };
    match check {
        FileCheck::Exists => Finding::holds(&size(file)),
        _ if file.bytes == 0 => Finding::fails("it is empty"),
        FileCheck::NonEmpty => Finding::holds(&size(file)),
        FileCheck::JsonValid => match document(file) {
            Ok(_) => Finding::holds(&format!("one JSON document of {}", size(file))),
            Err(finding) => finding,
        },
        FileCheck::CsvColumns(columns) => columns_in(file, columns),
        FileCheck::JsonSchema(_) => by_schema(file, schema.unwrap_or(&FileFacts::Missing)),
    }
}

/// Decides `file_written:PATH`: `written` says whether it changed during the sub-task, if that is known.
pub fn decide_written(facts: &FileFacts, written: Option<bool>) -> Finding {
    match (regular(facts), written) {
        (Err(finding), _) => finding,
        (Ok(file), Some(true)) => Finding::holds(&format!("written, {}", size(file))),
        (Ok(_), Some(false)) => {
            Finding::unverified("it was there before, and this sub-task did not change it")
        }
        (Ok(_), None) => Finding::unverified("it is there, but who wrote it is not known"),
    }
}

fn regular(facts: &FileFacts) -> Result<&Regular, Finding> {
    Err(match facts {
        FileFacts::Regular(file) => return Ok(file),
        FileFacts::Missing => Finding::fails("it does not exist"),
        FileFacts::Other(kind) => Finding::fails(&format!("it is a {kind}, not a file")),
        FileFacts::Outside => Finding::fails("a link leads out of its folder"),
        FileFacts::Unreadable(cause) => Finding::unverified(&format!("it cannot be read: {cause}")),
    })
}

fn size(file: &Regular) -> String {
    match file.bytes {
        1 => "1 byte".to_owned(),
        bytes => format!("{bytes} bytes"),
    }
}

fn stable(file: &Regular) -> Result<(), Finding> {
    if file.changed {
        return Err(Finding::unverified("it changed while it was read"));
    }
    Ok(())
}

fn document(file: &Regular) -> Result<Value, Finding> {
    if file.bytes > JSON_BYTES {
        let found = size(file);
        return Err(Finding::unverified(&format!(
            "it has {found}, JSON is checked up to {JSON_BYTES} bytes"
        )));
    }
    stable(file)?;
    let document = contract::parse_file(&file.content);
    document
        .map(|document| document.value)
        .map_err(|error| Finding::fails(&place(&error)))
}

fn place(error: &ContractError) -> String {
    format!("byte {}: {}", error.at, error.problem)
}

fn columns_in(file: &Regular, columns: &[String]) -> Finding {
    if let Err(finding) = stable(file) {
        return finding;
    }
    let whole = file.content.len() as u64 >= file.bytes;
    let found = match csv::header(&file.content, whole) {
        Header::Columns(found) => found,
        Header::Empty => return Finding::fails("it has no record"),
        Header::Unterminated => return Finding::fails("a quoted name in its header does not end"),
        Header::TooLong => {
            return Finding::unverified(&format!("its header is longer than {} bytes", csv::HEADER_BYTES));
        }
    };
    let count = |column: &str| {
        found
            .iter()
            .filter(|name| name.as_slice() == column.as_bytes())
            .count()
    };
    let having = |wanted: fn(usize) -> bool| {
        let names = columns.iter().filter(|column| wanted(count(column)));
        names.map(String::as_str).collect::<Vec<_>>().join(", ")
    };
    let (missing, repeated) = (having(|times| times == 0), having(|times| times > 1));
    if !missing.is_empty() {
        return Finding::fails(&format!("missing: {missing}; it has: {}", shown(&found)));
    }
    if !repeated.is_empty() {
        return Finding::fails(&format!("more than once: {repeated}"));
    }
    Finding::holds(&format!("{} columns: {}", found.len(), shown(&found)))
}

fn shown(names: &[Vec<u8>]) -> String {
    let names = names.iter().take(20).map(|name| String::from_utf8_lossy(name));
    names.collect::<Vec<_>>().join(", ")
}

fn by_schema(file: &Regular, schema: &FileFacts) -> Finding {
    let document = match document(file) {
        Ok(document) => document,
        Err(finding) => return finding,
    };
    let unusable = |cause: &str| Finding::unverified(&format!("the schema cannot be used: {cause}"));
    let schema = match regular(schema) {
        Ok(schema) => schema,
        Err(finding) => return unusable(&finding.detail),
    };
    let schema = match self::document(schema) {
        Ok(schema) => schema,
        Err(finding) => return unusable(&finding.detail),
    };
    let schema = match Schema::compile(&schema) {
        Ok(schema) => schema,
        Err(error) => return unusable(&error.to_string()),
    };
    match schema.validate(&document) {
        Ok(mistakes) if mistakes.is_empty() => Finding::holds("valid by the schema"),
        Ok(mistakes) => Finding::fails(&mistakes.join("; ")),
        Err(error) => unusable(&error.to_string()),
    }
}
