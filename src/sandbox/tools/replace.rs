//! `str_replace`.

use super::arguments::StrReplace;
use super::encoding::decode;
use super::files::{MAX_WHOLE, locate, open};
use super::read::not_text;
use super::write::{NEW, answer};
use super::{Answer, Result, ToolError};
use crate::resolve::{ResolveError, Roots};
use agentrun_protocol::tool::Session;
use std::borrow::Cow;

/// Line numbers that a message names.
const NAMED: usize = 10;

pub(super) fn run(arguments: &StrReplace, session: &Session, roots: &Roots) -> Result<Answer> {
    let location = locate(&arguments.path)?;
    if !location.area().is_writable() {
        return Err(ResolveError::ReadOnly {
            path: location.to_string(),
        }
        .into());
    }
    let opened = open(roots, location)?;
    let bytes = opened.whole(MAX_WHOLE, "edit it with bash, for example with sed")?;
    let (encoding, text) = decode(&bytes).map_err(|error| not_text(&opened, &bytes, error))?;
    opened.check_read(session, Some(&bytes))?;
    let location = opened.location;
    let replaced = replace(
        &text,
        &arguments.old_str,
        &arguments.new_str,
        arguments.replace_all,
    )
    .map_err(|mismatch| mismatch.in_file(location.to_string()))?;
    let data = encoding.encode(&replaced.text);
    if data.len() as u64 > MAX_WHOLE {
        return Err(ToolError::TooLarge {
            path: location.to_string(),
            bytes: data.len() as u64,
            most: MAX_WHOLE,
            advice: "new_str makes it too large; replace less",
        });
    }
    roots.write(&location, &data, NEW)?;
    let lines = numbers(&replaced.lines);
    let text = match replaced.lines.len() {
        1 => format!("replaced the text at line {lines} of {location}"),
        count => format!("replaced {count} texts in {location}, at lines {lines}"),
    };
    answer(roots, &location, &data, text, false, replaced.lines.len() as u64)
}

/// A text with its replacements.
#[derive(Debug, PartialEq, Eq)]
struct Replaced {
    text: String,
    /// Numbers of the lines where the old texts began.
    lines: Vec<usize>,
}

/// Why nothing was replaced.
#[derive(Debug, PartialEq, Eq)]
enum Mismatch {
    Empty,
    Same,
    /// With the lines that are like its first one but for white space.
    Missing(Vec<usize>),
    Many(Vec<usize>),
}

fn replace(text: &str, old: &str, new: &str, all: bool) -> std::result::Result<Replaced, Mismatch> {
    if old.is_empty() {
        return Err(Mismatch::Empty);
    }
    if old == new {
        return Err(Mismatch::Same);
    }
    let windows = has_windows_ends(text);
    let (wanted, put) = (line_ends(old, windows), line_ends(new, windows));
    let (old, new) = if text.contains(wanted.as_ref()) {
        (wanted, put)
    } else {
        // Line ends of both kinds: as it was given.
        (Cow::Borrowed(old), Cow::Borrowed(new))
    };
    let starts: Vec<usize> = text.match_indices(old.as_ref()).map(|(start, _)| start).collect();
    let lines = line_numbers(text, &starts);
    match starts.len() {
        0 => Err(Mismatch::Missing(similar(text, &old))),
        1 => Ok(()),
        _ if all => Ok(()),
        _ => Err(Mismatch::Many(lines.clone())),
    }?;
    Ok(Replaced {
        text: text.replace(old.as_ref(), &new),
        lines,
    })
}

/// Whether most lines end with CR LF.
fn has_windows_ends(text: &str) -> bool {
    let windows = text.matches("\r\n").count();
    windows * 2 > text.matches('\n').count()
}

/// Models see lines without their ends, and write `\n`.
fn line_ends(text: &str, windows: bool) -> Cow<'_, str> {
    if windows && text.contains('\n') {
        text.replace("\r\n", "\n").replace('\n', "\r\n").into()
    } else {
        text.into()
    }
}

/// `starts` is ascending.
fn line_numbers(text: &str, starts: &[usize]) -> Vec<usize> {
    let mut number = 1;
    let mut from = 0;
    let mut number_of = |start: usize| {
        number += text[from..start].matches('\n').count();
        from = start;
        number
    };
    starts.iter().map(|start| number_of(*start)).collect()
}

fn similar(text: &str, old: &str) -> Vec<usize> {
    let Some(wanted) = old.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return Vec::new();
    };
    let lines = text.lines().zip(1..);
    lines
        .filter(|(line, _)| line.trim() == wanted)
        .map(|(_, number)| number)
        .take(NAMED)
        .collect()
}

fn numbers(lines: &[usize]) -> String {
    let named: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
    let more = if lines.len() > NAMED { ", \u{2026}" } else { "" };
    format!("{}{more}", named.join(", "))
}

impl Mismatch {
    fn in_file(self, path: String) -> ToolError {
        let (problem, advice) = match self {
            Mismatch::Empty => (
                "is empty".to_owned(),
                "give the text to replace, or use write_file with append",
            ),
            Mismatch::Same => ("is the same as new_str".to_owned(), "nothing was changed"),
            Mismatch::Missing(lines) if lines.is_empty() => (
                "does not occur".to_owned(),
                "read the file and copy the text exactly, without line numbers",
            ),
            Mismatch::Missing(lines) => (
                format!(
                    "does not occur; its first line is like line {} but something else differs",
                    numbers(&lines)
                ),
                "read the file and copy the text exactly, with its indentation and without line numbers",
            ),
            Mismatch::Many(lines) => (
                format!("occurs {} times, at lines {}", lines.len(), numbers(&lines)),
                "add lines around it to make it unique, or set replace_all",
            ),
        };
        ToolError::NoUniqueText {
            path,
            problem,
            advice,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(text: &str, old: &str, new: &str, all: bool) -> std::result::Result<String, Mismatch> {
        replace(text, old, new, all).map(|replaced| replaced.text)
    }

    #[test]
    fn a_text_that_occurs_once_is_replaced() {
        assert_eq!(text("a b c", "b", "x", false).unwrap(), "a x c");
        assert_eq!(text("a b c", " b", "", false).unwrap(), "a c");
        assert_eq!(replace("a\nb\nc", "c", "x", false).unwrap().lines, [3]);
    }

    #[test]
    fn several_are_named_by_their_lines_unless_all_are_meant() {
        assert_eq!(text("a\nb\na", "a", "x", false), Err(Mismatch::Many(vec![1, 3])));
        assert_eq!(text("a\nb\na", "a", "x", true).unwrap(), "x\nb\nx");
    }

    #[test]
    fn one_that_is_missing_is_looked_for_without_its_indentation() {
        assert_eq!(
            text("if x:\n\treturn\n", "  return\n", "y", false),
            Err(Mismatch::Missing(vec![2]))
        );
        assert_eq!(text("a", "b", "c", false), Err(Mismatch::Missing(Vec::new())));
        assert_eq!(text("a", "", "c", false), Err(Mismatch::Empty));
        assert_eq!(text("a", "a", "a", false), Err(Mismatch::Same));
    }

    #[test]
    fn line_ends_of_windows_are_kept() {
        assert_eq!(
            text("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", false).unwrap(),
            "x\r\ny\r\nz\r\nc\r\n"
        );
        assert_eq!(text("a\r\nb\r\n", "b", "x\ny", false).unwrap(), "a\r\nx\r\ny\r\n");
        assert_eq!(text("a\r\nb\nc\n", "a\r\nb", "x\ny", false).unwrap(), "x\ny\nc\n");
        assert_eq!(text("a\nb\n", "a\nb", "x\r\ny", false).unwrap(), "x\r\ny\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn all_that_is_not_old_stays(before in "[ab\n]{0,20}", old in "[cd]{1,4}", new in "[efg\n]{0,6}", after in "[ab\n]{0,20}") {
            let whole = format!("{before}{old}{after}");
            let expected = format!("{before}{new}{after}");
            prop_assert_eq!(text(&whole, &old, &new, false), Ok(expected));
            let twice = format!("{whole}\n{whole}");
            let is_many = matches!(text(&twice, &old, &new, false), Err(Mismatch::Many(lines)) if lines.len() == 2);
            prop_assert!(is_many);
        }

        #[test]
        fn a_file_of_windows_never_gets_a_bare_line_end(lines in proptest::collection::vec("[ab]{1,3}", 2..8), new in "[cd\n]{1,8}") {
            let whole = lines.join("\r\n") + "\r\n";
            let replaced = text(&whole, &lines[0], &new, true).unwrap();
            prop_assert_eq!(replaced.matches('\n').count(), replaced.matches("\r\n").count());
        }
    }
}
