//! Why a program failed: one word, and a sentence that names the fix.

use crate::text::cut;
use agentrun_api::SubTaskReason;
use agentrun_protocol::executor::{ProcessEnd, StartError};
use serde::Deserialize;

/// The lines at the end of stderr that are looked at.
const LINES: usize = 40;
/// Bytes of a line of stderr that a message quotes.
const QUOTED: usize = 200;
/// Bytes of a structured error's message that are kept.
const MAX_MESSAGE: usize = 1024;
/// Bytes of a structured error's code that are kept.
const MAX_CODE: usize = 64;

/// What a failure was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The word for the object's status.
    pub reason: SubTaskReason,
    /// What was found and what to do.
    pub message: String,
    /// The code of the program's own structured error, such as `INPUT_VALIDATION_ERROR`.
    pub code: Option<String>,
}

/// An error that a program reports as the last JSON line of its stderr.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StructuredError {
    /// A word in capitals that callers can match.
    pub code: String,
    /// A sentence.
    #[serde(default)]
    pub message: String,
}

/// Says why a program that did not exit with 0 failed; `stderr` is the end of what it wrote there.
pub fn diagnose(end: &ProcessEnd, stderr: &str) -> Diagnosis {
    match end {
        ProcessEnd::NotStarted { error, message } => plain(not_started(*error), message.clone()),
        ProcessEnd::SandboxReset => plain(
            SubTaskReason::SandboxReset,
            "the supervisor of a call died, so every process in the sandbox was ended".to_owned(),
        ),
        ProcessEnd::Signalled { signal } => signalled(*signal, stderr),
        ProcessEnd::Exited { code } => exited(*code, stderr),
    }
}

/// The structured error that the last JSON line of `stderr` is, if it is one.
pub fn structured_error(stderr: &str) -> Option<StructuredError> {
    let line = stderr
        .lines()
        .rev()
        .take(LINES)
        .map(str::trim)
        .find(|line| line.starts_with('{'))?;
    let mut error: StructuredError = serde_json::from_str(line)
        .ok()
        .filter(|e: &StructuredError| !e.code.is_empty())?;
    error.code = cut(&error.code, MAX_CODE);
    error.message = cut(&error.message, MAX_MESSAGE);
    Some(error)
}

fn not_started(error: StartError) -> SubTaskReason {
    match error {
        StartError::NotFound => SubTaskReason::InterpreterNotFound,
        StartError::PermissionDenied => SubTaskReason::PermissionDenied,
        StartError::TooLong => SubTaskReason::InvalidInput,
        StartError::NotExecutable
        | StartError::NoWorkingDir
        | StartError::NotConfined
        | StartError::NoResources => SubTaskReason::StartFailed,
    }
}

fn signalled(signal: i32, stderr: &str) -> Diagnosis {
    match signal {
        // SIGKILL. Whether it was the kernel's memory killer is not known here: F051.
        9 => plain(
            SubTaskReason::Signal9,
            "it was killed by signal 9, and nothing recorded why".to_owned(),
        ),
        // SIGXCPU
        24 => plain(
            SubTaskReason::ExitCode,
            "it used more processor time than its limit; raise timeout_sec".to_owned(),
        ),
        // SIGXFSZ
        25 => file_too_large("signal 25 (SIGXFSZ)"),
        _ => {
            let name = signal_name(signal)
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            // Runtimes abort themselves when an allocation fails, and say so first.
            known(stderr, &format!("signal {signal}{name}")).unwrap_or_else(|| {
                plain(
                    SubTaskReason::ExitCode,
                    format!("it was killed by signal {signal}{name}{}", last_words(stderr)),
                )
            })
        }
    }
}

/// What the last line that any rule knows says; `end` is how the process ended.
fn known(stderr: &str, end: &str) -> Option<Diagnosis> {
    let mut lines = stderr.lines().rev().take(LINES);
    let found = lines.find_map(|line| RULES.iter().find_map(|rule| rule(line)))?;
    Some(Diagnosis {
        message: format!("{} ({end})", found.message),
        ..found
    })
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        31 => "SIGSYS: a system call that the sandbox forbids",
        _ => return None,
    })
}

fn exited(code: i32, stderr: &str) -> Diagnosis {
    if let Some(StructuredError { code: word, message }) = structured_error(stderr) {
        let separator = if message.is_empty() { "" } else { ": " };
        let message = format!("{word}{separator}{message}");
        return Diagnosis {
            reason: SubTaskReason::ExitCode,
            message,
            code: Some(word),
        };
    }
    known(stderr, &format!("exit code {code}")).unwrap_or_else(|| {
        plain(
            SubTaskReason::ExitCode,
            format!("it ended with exit code {code}{}", last_words(stderr)),
        )
    })
}

/// Each looks at one line of stderr; the last line that any of them knows decides.
const RULES: &[fn(&str) -> Option<Diagnosis>] = &[
    python_module,
    node_module,
    interpreter,
    open_files,
    file_size,
    disk_full,
    memory,
    permission,
];

/// `ModuleNotFoundError: No module named 'x'`, and `/usr/bin/python3: No module named x` of `python -m x`.
fn python_module(line: &str) -> Option<Diagnosis> {
    let (before, rest) = line.split_once("No module named ")?;
    let known = ["ModuleNotFoundError: ", "ImportError: "]
        .iter()
        .any(|error| before.ends_with(error));
    let by_python_itself = before.contains("python") && before.ends_with(": ");
    if !(known || by_python_itself) {
        return None;
    }
    let name = quoted_word(rest);
    Some(plain(
        SubTaskReason::ModuleNotFound,
        format!(
            "the Python module {name:?} is not in the image; add it there, name an image that has it, or ship it with the skill"
        ),
    ))
}

/// `Error: Cannot find module 'x'` and `Cannot find package 'x' imported from /y`.
fn node_module(line: &str) -> Option<Diagnosis> {
    let rest = ["Cannot find module ", "Cannot find package "]
        .iter()
        .find_map(|text| Some(line.split_once(text)?.1))?;
    let name = quoted_word(rest);
    Some(plain(
        SubTaskReason::ModuleNotFound,
        format!(
            "the Node module {name:?} is not in the image; add it there, name an image that has it, or ship it with the skill"
        ),
    ))
}

/// `env: 'python3': No such file or directory`, `sh: 1: jq: not found`, `bash: line 1: jq: command not found`.
fn interpreter(line: &str) -> Option<Diagnosis> {
    let before = match line.split_once(": No such file or directory") {
        Some((before, _)) if before.contains("env: ") || before.contains("bad interpreter") => before,
        _ => line
            .strip_suffix(": command not found")
            .or_else(|| line.strip_suffix(": not found"))?,
    };
    let name = before
        .trim_end_matches(": bad interpreter")
        .rsplit(": ")
        .next()
        .unwrap_or(before);
    let name = quoted_word(name);
    Some(plain(
        SubTaskReason::InterpreterNotFound,
        format!("the program {name:?} is not in the image; name an image that has it"),
    ))
}

fn open_files(line: &str) -> Option<Diagnosis> {
    contains(line, &["Too many open files", "EMFILE"]).then(|| {
        plain(
            SubTaskReason::TooManyOpenFiles,
            format!(
                "it opened more files than it may; close them, or raise max_open_files: `{}`",
                quote(line)
            ),
        )
    })
}

fn file_size(line: &str) -> Option<Diagnosis> {
    contains(line, &["File too large", "EFBIG", "File size limit exceeded"])
        .then(|| file_too_large(&format!("`{}`", quote(line))))
}

fn file_too_large(how: &str) -> Diagnosis {
    plain(
        SubTaskReason::FileTooLarge,
        format!("it wrote a larger file than it may; raise max_file_mb: {how}"),
    )
}

fn disk_full(line: &str) -> Option<Diagnosis> {
    contains(
        line,
        &[
            "No space left on device",
            "Disk quota exceeded",
            "ENOSPC",
            "EDQUOT",
        ],
    )
    .then(|| {
        plain(
            SubTaskReason::NoSpaceLeft,
            format!(
                "the volume or the scratch space is full; remove files or raise userData.size: `{}`",
                quote(line)
            ),
        )
    })
}

/// An allocation that failed under the limit; the kernel killed nothing.
fn memory(line: &str) -> Option<Diagnosis> {
    let starts = line.starts_with("MemoryError");
    (starts
        || contains(
            line,
            &[
                "Cannot allocate memory",
                "JavaScript heap out of memory",
                "java.lang.OutOfMemoryError",
                "runtime: out of memory",
                "std::bad_alloc",
                "memory allocation of ",
                "ENOMEM",
            ],
        ))
    .then(|| {
        plain(
            SubTaskReason::ExitCode,
            format!(
                "it could not get more memory; raise max_memory_mb or resources.memory: `{}`",
                quote(line)
            ),
        )
    })
}

fn permission(line: &str) -> Option<Diagnosis> {
    contains(line, &["Permission denied", "Operation not permitted", "Read-only file system", "EACCES", "EPERM", "EROFS"]).then(|| {
        plain(
            SubTaskReason::PermissionDenied,
            format!(
                "it was refused; a sandbox may write workspace, outputs and /tmp, and a function what its files field says: `{}`",
                quote(line)
            ),
        )
    })
}

fn contains(line: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| line.contains(text))
}

/// The word that `text` begins with, without its quotes.
fn quoted_word(text: &str) -> String {
    let text = text.trim();
    let quotes = ['\'', '"', '‘', '’', '`'];
    let word = match text.strip_prefix(quotes) {
        Some(rest) => rest.split(quotes).next().unwrap_or(rest),
        None => text
            .split_whitespace()
            .next()
            .unwrap_or(text)
            .trim_end_matches([';', ',']),
    };
    cut(word, QUOTED)
}

fn quote(line: &str) -> String {
    cut(line.trim(), QUOTED)
}

/// The last line of stderr that says something: not a frame of a stack, nor what a runtime adds below it.
fn last_words(stderr: &str) -> String {
    let lines = || {
        let lines = stderr.lines().rev().map(str::trim);
        lines.filter(|line| !line.is_empty())
    };
    let line = lines()
        .take(LINES)
        .find(|line| !is_beside_the_point(line))
        .or_else(|| lines().next());
    line.map(|line| format!("; its stderr ends with `{}`", quote(line)))
        .unwrap_or_default()
}

fn is_beside_the_point(line: &str) -> bool {
    let native_frame = || {
        let number = line.split_once(": 0x").map(|(number, _)| number.trim());
        number.is_some_and(|number| number.parse::<u16>().is_ok())
    };
    ["at ", "Node.js v", "note: run with"]
        .iter()
        .any(|start| line.starts_with(start))
        || native_frame()
}

fn plain(reason: SubTaskReason, message: String) -> Diagnosis {
    Diagnosis {
        reason,
        message,
        code: None,
    }
}

#[cfg(test)]
#[path = "diagnose_tests.rs"]
mod tests;
