//! Long outputs of delegates, which an agent reads by `artifact://NAME`.

use crate::state::{Reply, State};
use crate::step::ActKind;
use crate::text::{clean, listed};
use agentrun_protocol::work::FileRef;
use serde::Deserialize;

/// How such an output is named.
pub(crate) const SCHEME: &str = "artifact://";
/// The most lines and bytes of one answer; those of `read_file`.
const MAX_LINES: u64 = 2_000;
const MAX_BYTES: usize = 50_000;

/// Where a long output is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stored {
    /// In the journal.
    Text(String),
    /// In a file below `state`.
    File(FileRef),
}

#[derive(Deserialize)]
struct Arguments {
    #[serde(alias = "file_path")]
    path: String,
    #[serde(default)]
    start_line: Option<u64>,
    #[serde(default)]
    end_line: Option<i64>,
}

/// What `read_file` of a stored output takes; `None` when the path is an ordinary one.
pub(crate) fn read(state: &State, arguments: &str) -> Option<Result<ActKind, Reply>> {
    let asked: Arguments = serde_json::from_str(arguments).ok()?;
    let name = asked.path.strip_prefix(SCHEME)?;
    Some(match state.stored.get(name) {
        Some(Stored::Text(text)) => Err(Reply::told(lines(text, &asked))),
        Some(Stored::File(file)) => Ok(ActKind::ReadStored { file: file.clone() }),
        None => {
            let known = listed(state.stored.keys().map(String::as_str));
            Err(Reply::refused(format!(
                "there is no {}; stored are: {known}",
                asked.path
            )))
        }
    })
}

/// The lines of `text` that the call asked for.
pub(crate) fn window(text: &str, arguments: &str) -> String {
    match serde_json::from_str::<Arguments>(arguments) {
        Ok(asked) => lines(text, &asked),
        Err(error) => error.to_string(),
    }
}

fn lines(text: &str, asked: &Arguments) -> String {
    let text = clean(text);
    let first = asked.start_line.unwrap_or(1).max(1);
    let last = asked
        .end_line
        .and_then(|line| u64::try_from(line).ok())
        .unwrap_or(u64::MAX);
    let total = text.lines().count();
    let mut answer = String::new();
    let mut next = None;
    for (number, line) in (1..).zip(text.lines()).skip_while(|(number, _)| *number < first) {
        if number > last {
            break;
        }
        if number >= first + MAX_LINES || answer.len() + line.len() > MAX_BYTES {
            next = Some(number);
            break;
        }
        answer.push_str(line);
        answer.push('\n');
    }
    match next {
        // One line that is alone too long.
        Some(number) if answer.is_empty() => {
            let line = text
                .lines()
                .nth(usize::try_from(number - 1).unwrap_or(usize::MAX))
                .unwrap_or_default();
            format!(
                "{}\n[of line {number} of {total}]",
                crate::text::shorten(line, MAX_BYTES)
            )
        }
        Some(number) => format!("{answer}[go on with start_line {number}; there are {total} lines]"),
        None if answer.is_empty() => format!("[no such lines; there are {total}]"),
        None => answer,
    }
}
