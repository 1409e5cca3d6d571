//! Finds `${…}` in a string. The closing brace is found by a scanner that knows CEL's strings, comments and braces.

use super::ExprError;

/// A piece of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Literal(String),
    Expression(&'a str),
}

/// Whether `text` is exactly one `${…}`, with nothing around it.
pub fn is_single_expression(text: &str) -> bool {
    matches!(pieces(text).as_deref(), Ok([Piece::Expression(_)]))
}

/// Splits `text`. `$${` is a literal `${`; a `$` before anything else stands for itself.
pub(super) fn pieces(text: &str) -> Result<Vec<Piece<'_>>, ExprError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('$').map(|offset| at + offset) {
        literal.push_str(&text[at..found]);
        let rest = &text[found..];
        if rest.starts_with("$${") {
            literal.push_str("${");
            at = found + 3;
        } else if let Some(body) = rest.strip_prefix("${") {
            let length = closing_brace(body).ok_or(ExprError::Unclosed { at: found })?;
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Expression(&body[..length]));
            at = found + 2 + length + 1;
        } else {
            literal.push('$');
            at = found + 1;
        }
    }
    literal.push_str(&text[at..]);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// The byte of the brace that closes an expression which starts at the first byte of `body`.
fn closing_brace(body: &str) -> Option<usize> {
    let bytes = body.as_bytes();
    let (mut at, mut open) = (0, 0_usize);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open += 1,
            b'}' if open == 0 => return Some(at),
            b'}' => open -= 1,
            b'\'' | b'"' => {
                at = end_of_string(bytes, at, is_raw(bytes, at))?;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n')?;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Refuses the strings that the parser is seen to decode to something else than CEL says, instead of passing on a
/// wrong text.
pub(super) fn check_strings(source: &str) -> Result<(), ExprError> {
    let bytes = source.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'\'' | b'"' => {
                let raw = is_raw(bytes, at);
                let Some(end) = end_of_string(bytes, at, raw) else {
                    return Ok(());
                };
                check_string(&bytes[at..end], raw)?;
                end
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at + bytes[at..].iter().take_while(|byte| **byte != b'\n').count()
            }
            _ => at + 1,
        };
    }
    Ok(())
}

/// `literal` with its quotes.
fn check_string(literal: &[u8], raw: bool) -> Result<(), ExprError> {
    let quote = literal[0];
    let refused = |what, instead| Err(ExprError::Unsupported { what, instead });
    if literal.len() >= 6 && literal.starts_with(&[quote; 3]) {
        return refused(
            "a string in three quotes",
            "use one quote, and \\n for a line break",
        );
    }
    let mut rest = literal;
    while let Some(place) = rest.iter().position(|byte| *byte == b'\\') {
        let escaped = rest.get(place + 1).copied().unwrap_or(quote);
        match escaped {
            b'\'' | b'"' if raw => {
                return refused(
                    "a backslash before a quote in a raw string",
                    "write '\\\\' in a plain string",
                );
            }
            b'\'' | b'"' if escaped != quote => {
                return refused(
                    "a backslash before the other kind of quote",
                    "such a quote needs none",
                );
            }
            _ => rest = rest.get(place + 2..).unwrap_or_default(),
        }
    }
    Ok(())
}

/// Whether the quote at `quote` opens a raw string: `r"…"`, also with `b` before or after the `r`.
fn is_raw(bytes: &[u8], quote: usize) -> bool {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let start = bytes[..quote]
        .iter()
        .rposition(|byte| !is_name(byte))
        .map_or(0, |before| before + 1);
    matches!(
        bytes[start..quote].to_ascii_lowercase().as_slice(),
        b"r" | b"rb" | b"br"
    )
}

/// The byte after the string whose opening quote stands at `start`.
fn end_of_string(bytes: &[u8], start: usize, raw: bool) -> Option<usize> {
    let quote = bytes[start];
    let triple = bytes[start..].starts_with([quote; 3].as_slice());
    let closing: &[u8] = if triple { &[quote; 3] } else { &[quote] };
    let mut at = start + closing.len();
    loop {
        if bytes.get(at..)?.starts_with(closing) {
            return Some(at + closing.len());
        }
        at += if bytes.get(at)? == &b'\\' && !raw { 2 } else { 1 };
    }
}
