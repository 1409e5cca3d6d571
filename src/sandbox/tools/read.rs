//! `read_file`.

use super::arguments::ReadFile;
use super::encoding::{Encoding, HEAD, NotText, check_head, decode};
use super::files::{MAX_WHOLE, Opened, locate, open};
use super::media::media_type;
use super::window::{MAX_LINE, Range, Window, window};
use super::{Answer, Result, ToolError};
use crate::resolve::Roots;
use agentrun_protocol::tool::Facts;
use std::fmt::Write as _;
use std::io::{Read as _, Seek as _};

/// Bytes of a file that are read to reach a line, and to count those that follow (1 GiB).
const SCAN: u64 = 1 << 30;

pub(super) fn run(arguments: &ReadFile, roots: &Roots) -> Result<Answer> {
    let range = range(arguments)?;
    let opened = open(roots, locate(&arguments.path)?)?;
    let mut head = Vec::with_capacity(HEAD);
    let system = |error| ToolError::system(&opened.location, error);
    (&opened.file)
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(system)?;
    (&opened.file).rewind().map_err(system)?;
    let encoding = check_head(&head).map_err(|error| not_text(&opened, &head, error))?;
    let small = opened.bytes() <= MAX_WHOLE;
    let (found, seen) = if small || encoding.is_utf16() {
        let bytes = opened.whole(MAX_WHOLE, "UTF-16 is converted whole: use bash with iconv first")?;
        let found = if encoding.is_utf16() {
            let (_, text) = decode(&bytes).map_err(|error| not_text(&opened, &head, error))?;
            window(text.as_bytes(), range, SCAN)
        } else {
            window(without_mark(&bytes, encoding), range, SCAN)
        };
        (found.map_err(system)?, opened.seen(Some(&bytes)))
    } else {
        (
            window(&opened.file, range, SCAN).map_err(system)?,
            opened.seen(None),
        )
    };
    if found.lines == 0 && range.first > 1 {
        return Err(beyond(range, &found));
    }
    let path = opened.location.to_string();
    let facts = Facts::Read {
        path,
        bytes: opened.bytes(),
        first_line: range.first,
        lines: found.lines,
        total_lines: found.total,
    };
    let mut answer = Answer::new(text(&opened, range, &found, encoding), facts);
    answer.seen = vec![seen];
    Ok(answer)
}

fn range(arguments: &ReadFile) -> Result<Range> {
    let first = arguments.start_line.unwrap_or(1);
    if first == 0 {
        return Err(ToolError::Value {
            name: "start_line",
            found: "0".to_owned(),
            allowed: "lines count from 1".to_owned(),
        });
    }
    let last = match arguments.end_line {
        None | Some(-1) => u64::MAX,
        Some(last) => u64::try_from(last)
            .ok()
            .filter(|last| *last >= first)
            .ok_or_else(|| ToolError::Value {
                name: "end_line",
                found: last.to_string(),
                allowed: format!(
                    "allowed is a line from start_line ({first}) on, or -1 for the end of the file"
                ),
            })?,
    };
    Ok(Range { first, last })
}

pub(super) fn not_text(opened: &Opened, head: &[u8], error: NotText) -> ToolError {
    let path = opened.location.to_string();
    let media_type = match media_type(&path, head) {
        // Text as far as its magic goes, but in an encoding that is not known.
        text if text.starts_with("text/") => "application/octet-stream",
        other => other,
    };
    ToolError::NotText {
        media_type,
        bytes: opened.bytes(),
        detail: format!(" (byte {} is none)", error.position),
        path,
    }
}

fn without_mark(bytes: &[u8], encoding: Encoding) -> &[u8] {
    match encoding {
        Encoding::Utf8WithMark => &bytes[3..],
        _ => bytes,
    }
}

fn beyond(range: Range, found: &Window) -> ToolError {
    let allowed = match found.total {
        Some(total) => format!("the file has {total} lines"),
        None => format!("it lies beyond the first {SCAN} bytes; use bash with tail, sed or split"),
    };
    ToolError::Value {
        name: "start_line",
        found: range.first.to_string(),
        allowed,
    }
}

fn text(opened: &Opened, range: Range, found: &Window, encoding: Encoding) -> String {
    let mut text = found.text.clone();
    let mut note = |line: String| {
        let _ = writeln!(text, "[{line}]");
    };
    if found.lines == 0 {
        note("the file is empty".to_owned());
        return text;
    }
    let last = range.first + found.lines - 1;
    if found.total != Some(found.lines) {
        let of = found.total.map_or("more".to_owned(), |total| total.to_string());
        let next = last + 1;
        let rest = found.total.is_none_or(|total| last < total);
        let more = if rest {
            format!("; go on with start_line={next}")
        } else {
            String::new()
        };
        note(format!("lines {} to {last} of {of}{more}", range.first));
    }
    if found.cut > 0 {
        note(format!(
            "{} lines are longer than {MAX_LINE} characters; see the rest with bash, for example cut -c",
            found.cut
        ));
    }
    if found.crlf > 0 {
        note("lines end with CR LF; str_replace keeps that".to_owned());
    }
    if let Some(name) = encoding.name() {
        note(format!("the file is {name}"));
    }
    if found.lossy {
        note("bytes that are no UTF-8 are shown as \u{fffd}; str_replace refuses this file".to_owned());
    }
    if opened.bytes() > MAX_WHOLE {
        note(format!(
            "the file has {} bytes; it is too large for str_replace",
            opened.bytes()
        ));
    }
    text
}
