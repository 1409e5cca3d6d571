//! A strict scanner over JSON text that keeps what a parsed value loses: positions, duplicate keys, how numbers were
//! written. It recurses at most as deep as its caller allows.

use std::collections::HashSet;

use crate::decimal;

/// What one document looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The byte after the document's last one.
    pub(crate) end: usize,
    /// Whether every number is written in a form that an API server stores and prints as the same value.
    pub(crate) exact_numbers: bool,
}

/// Why the text at byte `at` is no JSON document, or not one we take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) kind: FaultKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The text ended inside the document.
    Cut,
    /// Something that no JSON document has here.
    Unexpected,
    /// `NaN`, `Infinity` or `-Infinity`, which several languages print for a number.
    NotANumber,
    BadNumber,
    /// A number beyond what a float64 holds, such as `1e400`.
    HugeNumber,
    BadEscape,
    ControlCharacter,
    LoneSurrogate,
    DuplicateKey(String),
    TooDeep,
}

/// Scans one document that starts at byte `start`, after white space. What follows its end is the caller's business.
pub(crate) fn scan(text: &str, start: usize, max_depth: usize) -> Result<Scanned, Fault> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: start,
        max_depth,
        exact_numbers: true,
    };
    scanner.white_space();
    scanner.value(0)?;
    Ok(Scanned {
        end: scanner.at,
        exact_numbers: scanner.exact_numbers,
    })
}

/// The first byte at or after `at` that is no JSON white space.
pub(crate) fn skip_white_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .count()
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    exact_numbers: bool,
}

type Scan<T = ()> = Result<T, Fault>;

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn fault<T>(&self, kind: FaultKind) -> Scan<T> {
        Err(Fault { at: self.at, kind })
    }

    fn white_space(&mut self) {
        self.at = skip_white_space(self.bytes, self.at);
    }

    fn value(&mut self, depth: usize) -> Scan {
        match self.peek() {
            None => self.fault(FaultKind::Cut),
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string(None),
            Some(b't') => self.word(b"true", FaultKind::Unexpected),
            Some(b'f') => self.word(b"false", FaultKind::Unexpected),
            Some(b'n') => self.word(b"null", FaultKind::Unexpected),
            Some(b'N') => self.not_a_number(b"NaN"),
            Some(b'I') => self.not_a_number(b"Infinity"),
            Some(b'-') if self.bytes.get(self.at + 1) == Some(&b'I') => self.not_a_number(b"-Infinity"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.fault(FaultKind::Unexpected),
        }
    }

    fn word(&mut self, word: &[u8], otherwise: FaultKind) -> Scan {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        let kind = if word.starts_with(rest) {
            FaultKind::Cut
        } else {
            otherwise
        };
        self.fault(kind)
    }

    fn not_a_number(&mut self, word: &[u8]) -> Scan {
        let at = self.at;
        self.word(word, FaultKind::Unexpected)?;
        Err(Fault {
            at,
            kind: FaultKind::NotANumber,
        })
    }

    fn open(&mut self, depth: usize) -> Scan {
        if depth > self.max_depth {
            return self.fault(FaultKind::TooDeep);
        }
        self.at += 1;
        self.white_space();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Scan {
        self.open(depth)?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.value(depth)?;
            self.white_space();
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Scan {
        self.open(depth)?;
        if self.take(b'}') {
            return Ok(());
        }
        let mut keys = HashSet::new();
        loop {
            let (at, mut key) = (self.at, String::new());
            match self.peek() {
                Some(b'"') => self.string(Some(&mut key))?,
                Some(_) => return self.fault(FaultKind::Unexpected),
                None => return self.fault(FaultKind::Cut),
            }
            if let Some(key) = keys.replace(key) {
                return Err(Fault {
                    at,
                    kind: FaultKind::DuplicateKey(key),
                });
            }
            self.white_space();
            self.expect(b':')?;
            self.value(depth)?;
            self.white_space();
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',')?;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes `byte` and the white space after it.
    fn expect(&mut self, byte: u8) -> Scan {
        if self.take(byte) {
            self.white_space();
            return Ok(());
        }
        self.fault(if self.peek().is_none() {
            FaultKind::Cut
        } else {
            FaultKind::Unexpected
        })
    }

    /// Takes a string; its decoded text is appended to `text` if one is given.
    fn string(&mut self, mut text: Option<&mut String>) -> Scan {
        self.at += 1;
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            if let (Some(text), Ok(run)) = (text.as_deref_mut(), str::from_utf8(&self.bytes[start..self.at]))
            {
                text.push_str(run);
            }
            match self.peek() {
                None => return self.fault(FaultKind::Cut),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    if let Some(text) = text.as_deref_mut() {
                        text.push(escaped);
                    }
                }
                Some(_) => return self.fault(FaultKind::ControlCharacter),
            }
        }
    }

    fn escape(&mut self) -> Scan<char> {
        let at = self.at;
        self.at += 1;
        let plain = match self.peek() {
            None => return self.fault(FaultKind::Cut),
            Some(b'u') => return self.unicode_escape(at),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(_) => {
                return Err(Fault {
                    at,
                    kind: FaultKind::BadEscape,
                });
            }
        };
        self.at += 1;
        Ok(plain)
    }

    /// Takes `uXXXX`, with its low half if it is the high half of a surrogate pair.
    fn unicode_escape(&mut self, at: usize) -> Scan<char> {
        let lone = Fault {
            at,
            kind: FaultKind::LoneSurrogate,
        };
        let unit = self.hex_unit(at)?;
        if let Some(character) = char::from_u32(unit) {
            return Ok(character);
        }
        if unit >= 0xdc00 {
            return Err(lone);
        }
        let rest = &self.bytes[self.at..];
        if !rest.starts_with(b"\\u") {
            let cut = b"\\u".starts_with(rest);
            return if cut {
                self.fault(FaultKind::Cut)
            } else {
                Err(lone)
            };
        }
        self.at += 1;
        let low = self.hex_unit(at)?;
        if !(0xdc00..0xe000).contains(&low) {
            return Err(lone);
        }
        char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)).ok_or(lone)
    }

    fn hex_unit(&mut self, at: usize) -> Scan<u32> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(byte) = self.peek() else {
                return self.fault(FaultKind::Cut);
            };
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(Fault {
                    at,
                    kind: FaultKind::BadEscape,
                });
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn some_digits(&mut self) -> Scan {
        if self.digits() > 0 {
            return Ok(());
        }
        self.fault(if self.peek().is_none() {
            FaultKind::Cut
        } else {
            FaultKind::BadNumber
        })
    }

    fn number(&mut self) -> Scan {
        let start = self.at;
        self.take(b'-');
        if self.take(b'0') {
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.fault(FaultKind::BadNumber);
            }
        } else {
            self.some_digits()?;
        }
        if self.take(b'.') {
            self.some_digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _sign = self.take(b'+') || self.take(b'-');
            self.some_digits()?;
        }
        let written = str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        if written.parse::<f64>().is_ok_and(f64::is_infinite) {
            return Err(Fault {
                at: start,
                kind: FaultKind::HugeNumber,
            });
        }
        self.exact_numbers &= decimal::is_stored_exactly(written);
        Ok(())
    }
}
