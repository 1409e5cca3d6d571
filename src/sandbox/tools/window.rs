//! A window of lines out of a stream of any length, in bounded memory.

use std::fmt::Write as _;
use std::io::{self, Read};

/// The most lines of one answer.
pub(super) const MAX_LINES: u64 = 2_000;
/// The most bytes of one answer (50 KB).
pub(super) const MAX_BYTES: usize = 50_000;
/// The most characters of one line; the rest is counted.
pub(super) const MAX_LINE: usize = 2_000;
/// Bytes of a line that are kept to show [`MAX_LINE`] characters of it.
const LINE_BYTES: usize = MAX_LINE * 4;
/// One read.
const CHUNK: usize = 64 * 1024;

/// Numbers of the first and the last line, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// The lines, each with its number.
    pub(super) text: String,
    /// How many they are.
    pub(super) lines: u64,
    /// Lines of the stream; absent when it was not read to its end.
    pub(super) total: Option<u64>,
    /// Lines of which only the beginning is shown.
    pub(super) cut: u64,
    /// Characters that stand for bytes that are no UTF-8.
    pub(super) lossy: bool,
    /// Shown lines that end with CR LF.
    pub(super) crlf: u64,
    /// The next line did not fit.
    pub(super) full: bool,
}

/// Reads the window out of a stream, of which at most `scan` bytes are read.
pub(super) fn window(mut from: impl Read, range: Range, scan: u64) -> io::Result<Window> {
    let mut reader = Reader {
        range,
        window: Window::default(),
        number: 1,
        line: Vec::new(),
        length: 0,
    };
    let mut buffer = vec![0; CHUNK];
    let mut read = 0_u64;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if count == 0 {
            return Ok(reader.end());
        }
        reader.push(&buffer[..count]);
        read += count as u64;
        if read >= scan {
            return Ok(reader.window);
        }
    }
}

struct Reader {
    range: Range,
    window: Window,
    /// Of the line that is being read.
    number: u64,
    /// Its first bytes.
    line: Vec<u8>,
    /// Its length so far.
    length: usize,
}

impl Reader {
    fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.extend(&bytes[..end]);
            self.end_line();
            bytes = &bytes[end + 1..];
        }
        self.extend(bytes);
    }

    fn is_shown(&self) -> bool {
        !self.window.full && (self.range.first..=self.range.last).contains(&self.number)
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        if self.is_shown() {
            let room = LINE_BYTES.saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_line(&mut self) {
        if self.is_shown() {
            self.show();
        }
        self.number += 1;
        self.line.clear();
        self.length = 0;
    }

    fn show(&mut self) {
        let whole = self.length == self.line.len();
        let crlf = whole && self.line.last() == Some(&b'\r');
        let bytes = &self.line[..self.line.len() - usize::from(crlf)];
        let (text, lossy) = text_of(bytes, whole);
        let shown = text
            .char_indices()
            .nth(MAX_LINE)
            .map_or(text.as_str(), |(end, _)| &text[..end]);
        let cut = !whole || shown.len() < text.len();
        let mut line = format!("{:>6}\t{shown}", self.number);
        if cut {
            let _ = write!(line, "\u{2026} [line cut: {} bytes in all]", self.length);
        }
        line.push('\n');
        let window = &mut self.window;
        if window.lines >= MAX_LINES || window.text.len() + line.len() > MAX_BYTES {
            window.full = true;
            return;
        }
        window.text.push_str(&line);
        window.lines += 1;
        window.cut += u64::from(cut);
        window.crlf += u64::from(crlf);
        window.lossy |= lossy;
    }

    fn end(mut self) -> Window {
        if self.length > 0 {
            self.end_line();
        }
        self.window.total = Some(self.number - 1);
        self.window
    }
}

/// The text of a line, and whether something of it was no UTF-8. A line that is not whole may end within a
/// character.
fn text_of(bytes: &[u8], whole: bool) -> (String, bool) {
    let valid = match std::str::from_utf8(bytes) {
        Ok(text) => return (text.to_owned(), false),
        Err(error) if !whole && error.error_len().is_none() => &bytes[..error.valid_up_to()],
        Err(_) => bytes,
    };
    match String::from_utf8_lossy(valid) {
        std::borrow::Cow::Borrowed(text) => (text.to_owned(), false),
        std::borrow::Cow::Owned(text) => (text, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: Range = Range {
        first: 1,
        last: u64::MAX,
    };

    fn of(bytes: &[u8], range: Range) -> Window {
        window(bytes, range, u64::MAX).unwrap()
    }

    #[test]
    fn lines_are_numbered_and_counted() {
        let found = of(b"a\n\nc", ALL);
        assert_eq!(found.text, "     1\ta\n     2\t\n     3\tc\n");
        assert_eq!((found.lines, found.total), (3, Some(3)));
        assert_eq!(of(b"", ALL).total, Some(0));
        assert_eq!(of(b"a\n", ALL).total, Some(1));
    }

    #[test]
    fn a_window_in_the_middle_counts_what_follows() {
        let found = of(b"a\nb\nc\nd\n", Range { first: 2, last: 3 });
        assert_eq!(found.text, "     2\tb\n     3\tc\n");
        assert_eq!((found.lines, found.total, found.full), (2, Some(4), false));
    }

    #[test]
    fn it_ends_at_its_lines_or_bytes_and_says_so() {
        let many = "x\n".repeat(3_000);
        let found = of(many.as_bytes(), ALL);
        assert_eq!(
            (found.lines, found.total, found.full),
            (MAX_LINES, Some(3_000), true)
        );
        let wide = format!("{}\n", "x".repeat(1_000)).repeat(100);
        let found = of(wide.as_bytes(), ALL);
        assert!(found.text.len() <= MAX_BYTES && found.full);
        assert_eq!(found.lines, 49);
    }

    #[test]
    fn a_long_line_is_cut_at_a_character_and_its_length_told() {
        let text = format!("{}\nb\n", "\u{e4}".repeat(1_000_000));
        let found = of(text.as_bytes(), ALL);
        assert_eq!((found.cut, found.lines, found.lossy), (1, 2, false));
        assert!(found.text.contains("[line cut: 2000000 bytes in all]"));
        assert_eq!(found.text.matches('\u{e4}').count(), MAX_LINE);
    }

    #[test]
    fn other_bytes_are_replaced_and_line_ends_of_windows_are_not_shown() {
        let found = of(b"a\xffb\r\nc\r\n", ALL);
        assert_eq!(found.text, "     1\ta\u{fffd}b\n     2\tc\n");
        assert!(found.lossy);
        assert_eq!(found.crlf, 2);
    }

    #[test]
    fn nothing_is_read_beyond_the_scan() {
        let found = window(io::repeat(b'\n'), Range { first: 1, last: 2 }, 1 << 20).unwrap();
        assert_eq!((found.lines, found.total), (2, None));
    }

    /// Gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_window_is_a_slice_of_the_lines(text in "[ab\n\u{e4}]{0,60}", first in 1..20_u64, length in 0..20_u64, drop in 1..9_usize) {
            let last = first + length;
            let found = window(Drops(text.as_bytes(), drop), Range { first, last }, u64::MAX).unwrap();
            let model = text
                .lines()
                .zip(1..)
                .filter(|(_, number)| (first..=last).contains(number))
                .map(|(line, number)| format!("{number:>6}\t{line}\n"))
                .collect::<Vec<_>>()
                .concat();
            prop_assert_eq!(&found.text, &model);
            prop_assert_eq!(found.total, Some(text.lines().count() as u64));
            prop_assert_eq!(found.lines, model.lines().count() as u64);
        }
    }
}
