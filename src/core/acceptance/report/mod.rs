//! Reads what test runners print, line by line: only how many tests passed and failed, and whether the summary is
//! complete.

mod counted;
mod framework;
mod summed;

pub(super) use framework::Framework;

use std::fmt;
use std::fmt::Debug;

/// The longest part of a line that is looked at, in characters.
const MAX_LINE: usize = 2000;

/// How many tests there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) passed: u64,
    /// Failures and errors, also of whole files.
    pub(super) failed: u64,
    pub(super) skipped: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

/// What was seen of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// None.
    Nothing,
    /// It began, or its parts do not fit together: the run did not come to its end.
    Partial,
    /// All of it.
    Counts(Counts),
}

/// Reads the output of one runner.
pub(super) trait Reader: Debug + Send {
    /// Takes a line without colours.
    fn line(&mut self, line: &str);
    /// What was seen so far.
    fn seen(&self) -> Seen;
}

/// Reads the output of one runner, or of whichever runner it is.
#[derive(Debug)]
pub(super) struct Reading {
    readers: Vec<Box<dyn Reader>>,
}

impl Reading {
    pub(super) fn line(&mut self, line: &str) {
        let plain = plain(line);
        // What stands behind the last carriage return is what stays on a screen.
        let plain = plain.trim_end_matches('\r');
        let plain = plain.rsplit('\r').next().unwrap_or_default();
        for reader in &mut self.readers {
            reader.line(plain);
        }
    }

    /// Of several runners every one must have passed; the largest count is told.
    pub(super) fn seen(&self) -> Seen {
        let seen: Vec<_> = self.readers.iter().map(|reader| reader.seen()).collect();
        if seen.contains(&Seen::Partial) {
            return Seen::Partial;
        }
        let counts = seen.into_iter().filter_map(|seen| match seen {
            Seen::Counts(counts) => Some(counts),
            _ => None,
        });
        counts
            .max_by_key(|counts| (counts.failed > 0, counts.passed))
            .map_or(Seen::Nothing, Seen::Counts)
    }
}

/// A line without terminal escapes, and no longer than is looked at.
fn plain(line: &str) -> String {
    let mut plain = String::new();
    let mut characters = line.chars().take(MAX_LINE);
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        // ESC [ parameters letter
        for parameter in characters.by_ref() {
            if parameter.is_ascii_alphabetic() {
                break;
            }
        }
    }
    plain
}
