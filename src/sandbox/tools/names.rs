//! Names in text: user code chooses them, so they may hold anything but `/` and zero bytes.

use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A path on one line: control characters and bytes that are no UTF-8 are written as in a Rust string.
pub(super) fn shown_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&shown(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Text on one line.
pub(super) fn shown(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_name_stays_on_its_line() {
        let path = Path::new(OsStr::from_bytes(b"a\nb/\xff\x1b[31m\xc3\xa4"));
        assert_eq!(shown_path(path), "a\\nb/\\xff\\u{1b}[31m\u{e4}");
    }
}
