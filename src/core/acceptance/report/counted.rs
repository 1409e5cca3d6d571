//! Runners that print one summary with all counts: the last one counts.

use super::{Counts, Reader, Seen};
use regex::Regex;
use std::sync::LazyLock;

/// A pattern of ours: one that does not compile matches nothing, and its test fails.
fn pattern(text: &'static str) -> Option<Regex> {
    Regex::new(text).ok()
}

macro_rules! patterns {
    ($($name:ident = $text:expr;)*) => {
        $(static $name: LazyLock<Option<Regex>> = LazyLock::new(|| pattern($text));)*
    };
}

patterns! {
    PAIR = r"([0-9]+) ([a-z]+)";
    PYTEST = r"^(=+ )?(no tests ran|[0-9]+ [a-z]+(, [0-9]+ [a-z]+)*) in [0-9.]+s( \([0-9:]+\))?( =+)?$";
    UNITTEST_RAN = r"^Ran ([0-9]+) tests? in [0-9.]+s$";
    UNITTEST_OK = r"^OK( \((.*)\))?$";
    UNITTEST_BAD = r"^(FAILED|NO TESTS RAN)( \((.*)\))?$";
    NAMED = r"([a-z ]+)=([0-9]+)";
    NEXTEST = r"^\s*Summary \[\s*[0-9.]+s\]\s+([0-9]+)(/[0-9]+)? tests? run: (.*)$";
    NODE = r"^(ℹ|#) (tests|pass|fail|cancelled|skipped|todo) ([0-9]+)$";
    JEST = r"^(Tests|Test Suites):\s+(.*), ([0-9]+) total$";
    VITEST = r"^\s*(Test Files|Tests)\s{2,}(.*) \([0-9]+\)$";
    VITEST_ERRORS = r"^\s*Errors\s{2,}([0-9]+) errors?$";
    MOCHA = r"^\s*([0-9]+) (passing|pending|failing)( \(.*\))?$";
    JUNIT_LINE = r"^\[\s*([0-9]+) (tests|containers) (found|successful|failed|skipped|aborted)\s*\]$";
    JUNIT_OK = r"^OK \(([0-9]+) tests?\)$";
    JUNIT_BAD = r"^Tests run: ([0-9]+),\s+Failures: ([0-9]+)$";
    CTEST = r"^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+)$";
    RSPEC = r"^([0-9]+) examples?, ([0-9]+) failures?(, ([0-9]+) pending)?(, ([0-9]+) errors? occurred outside of examples)?$";
}

/// The groups of a match as texts; an absent group is empty.
fn groups<'a>(regex: &LazyLock<Option<Regex>>, line: &'a str) -> Option<Vec<&'a str>> {
    let found = regex.as_ref()?.captures(line)?;
    let texts = found.iter().map(|group| group.map_or("", |group| group.as_str()));
    Some(texts.collect())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_default()
}

/// Sums up `12 passed, 1 failed`, whatever stands between the pairs.
fn pairs(text: &str) -> Counts {
    let mut counts = Counts::default();
    let found = PAIR
        .as_ref()
        .into_iter()
        .flat_map(|pair| pair.captures_iter(text));
    for pair in found {
        let count = number(&pair[1]);
        match &pair[2] {
            "passed" | "xpassed" => counts.passed += count,
            "failed" | "error" | "errors" | "timed" | "exec" => counts.failed += count,
            "skipped" | "xfailed" | "todo" | "ignored" => counts.skipped += count,
            _ => {}
        }
    }
    counts
}

fn last(counts: Option<Counts>) -> Seen {
    counts.map_or(Seen::Nothing, Seen::Counts)
}

#[derive(Debug, Default)]
pub(super) struct Pytest(Option<Counts>);

impl Reader for Pytest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&PYTEST, line) {
            self.0 = Some(pairs(found[2]));
        }
    }

    fn seen(&self) -> Seen {
        last(self.0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Unittest {
    ran: Option<u64>,
    end: Option<Counts>,
}

impl Reader for Unittest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&UNITTEST_RAN, line) {
            (self.ran, self.end) = (Some(number(found[1])), None);
        }
        let Some(ran) = self.ran.filter(|_| self.end.is_none()) else {
            return;
        };
        let (details, failed) = match (groups(&UNITTEST_OK, line), groups(&UNITTEST_BAD, line)) {
            (Some(found), _) => (found[2], 0),
            (None, Some(found)) => (found[3], 1),
            (None, None) => return,
        };
        let (mut bad, mut skipped) = (0, 0);
        for named in NAMED
            .as_ref()
            .into_iter()
            .flat_map(|named| named.captures_iter(details))
        {
            match named[1].trim() {
                "failures" | "errors" | "unexpected successes" => bad += number(&named[2]),
                _ => skipped += number(&named[2]),
            }
        }
        let failed = bad.max(failed);
        self.end = Some(Counts {
            passed: ran.saturating_sub(failed + skipped),
            failed,
            skipped,
        });
    }

    fn seen(&self) -> Seen {
        match (self.ran, self.end) {
            (None, _) => Seen::Nothing,
            (Some(_), None) => Seen::Partial,
            // Nothing ran: that is said as a failure, and is none.
            (Some(0), Some(_)) => Seen::Counts(Counts::default()),
            (Some(_), Some(counts)) => Seen::Counts(counts),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Nextest(Option<(Counts, bool)>);

impl Reader for Nextest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&NEXTEST, line) {
            self.0 = Some((pairs(found[3]), found[2].is_empty()));
        }
    }

    fn seen(&self) -> Seen {
        match self.0 {
            None => Seen::Nothing,
            Some((_, false)) => Seen::Partial,
            Some((counts, true)) => Seen::Counts(counts),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct NodeTest {
    tests: Option<u64>,
    pass: Option<u64>,
    fail: Option<u64>,
    cancelled: Option<u64>,
    skipped: u64,
}

impl Reader for NodeTest {
    fn line(&mut self, line: &str) {
        let Some(found) = groups(&NODE, line) else { return };
        let count = number(found[3]);
        match found[2] {
            "tests" => {
                *self = Self {
                    tests: Some(count),
                    ..Self::default()
                }
            }
            "pass" => self.pass = Some(count),
            "fail" => self.fail = Some(count),
            "cancelled" => self.cancelled = Some(count),
            _ => self.skipped += count,
        }
    }

    fn seen(&self) -> Seen {
        match (self.tests, self.pass, self.fail, self.cancelled) {
            (None, None, None, None) => Seen::Nothing,
            (Some(_), Some(passed), Some(failed), Some(cancelled)) => Seen::Counts(Counts {
                passed,
                failed: failed + cancelled,
                skipped: self.skipped,
            }),
            _ => Seen::Partial,
        }
    }
}

/// Counts of tests, and of files, of which one may fail before it has tests.
#[derive(Debug, Default)]
struct WithFiles {
    files: Option<Counts>,
    tests: Option<Counts>,
    errors: u64,
}

impl WithFiles {
    fn take(&mut self, is_files: bool, counts: Counts) {
        if is_files {
            (self.files, self.tests) = (Some(counts), None);
        } else {
            self.tests = Some(counts);
        }
    }

    fn seen(&self) -> Seen {
        match (self.files, self.tests) {
            (None, None) => Seen::Nothing,
            (Some(files), Some(tests)) => Seen::Counts(Counts {
                failed: tests.failed.max(files.failed) + self.errors,
                ..tests
            }),
            _ => Seen::Partial,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Jest(WithFiles);

impl Reader for Jest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&JEST, line) {
            self.0.take(found[1] == "Test Suites", pairs(found[2]));
        }
    }

    fn seen(&self) -> Seen {
        self.0.seen()
    }
}

#[derive(Debug, Default)]
pub(super) struct Vitest(WithFiles);

impl Reader for Vitest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&VITEST, line) {
            self.0.take(found[1] == "Test Files", pairs(found[2]));
        } else if let Some(found) = groups(&VITEST_ERRORS, line) {
            self.0.errors = number(found[1]);
        }
    }

    fn seen(&self) -> Seen {
        self.0.seen()
    }
}

#[derive(Debug, Default)]
pub(super) struct Mocha(Option<Counts>);

impl Reader for Mocha {
    fn line(&mut self, line: &str) {
        let Some(found) = groups(&MOCHA, line) else { return };
        let count = number(found[1]);
        if found[2] == "passing" {
            self.0 = Some(Counts {
                passed: count,
                ..Counts::default()
            });
        } else if let Some(counts) = &mut self.0 {
            match found[2] {
                "failing" => counts.failed = count,
                _ => counts.skipped = count,
            }
        }
    }

    fn seen(&self) -> Seen {
        last(self.0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Junit {
    console: [Option<u64>; 4],
    broken: u64,
    plain: Option<Counts>,
}

impl Reader for Junit {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&JUNIT_LINE, line) {
            let count = number(found[1]);
            match (found[2], found[3]) {
                ("containers", "failed") => self.broken = count,
                ("tests", "successful") => self.console[0] = Some(count),
                ("tests", "failed") => self.console[1] = Some(count),
                ("tests", "skipped") => self.console[2] = Some(count),
                ("tests", "aborted") => self.console[3] = Some(count),
                _ => {}
            }
        } else if let Some(found) = groups(&JUNIT_OK, line) {
            self.plain = Some(Counts {
                passed: number(found[1]),
                ..Counts::default()
            });
        } else if let Some(found) = groups(&JUNIT_BAD, line) {
            let failed = number(found[2]);
            self.plain = Some(Counts {
                passed: number(found[1]).saturating_sub(failed),
                failed,
                ..Counts::default()
            });
        }
    }

    fn seen(&self) -> Seen {
        match self.console {
            [None, None, None, None] => last(self.plain),
            [Some(passed), Some(failed), skipped, aborted] => Seen::Counts(Counts {
                passed,
                failed: failed + self.broken,
                skipped: skipped.unwrap_or_default() + aborted.unwrap_or_default(),
            }),
            _ => Seen::Partial,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Ctest(Option<Counts>);

impl Reader for Ctest {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&CTEST, line) {
            let failed = number(found[1]);
            self.0 = Some(Counts {
                passed: number(found[2]).saturating_sub(failed),
                failed,
                ..Counts::default()
            });
        } else if line.contains("No tests were found!!!") {
            self.0 = Some(Counts::default());
        }
    }

    fn seen(&self) -> Seen {
        last(self.0)
    }
}

#[derive(Debug, Default)]
pub(super) struct Rspec(Option<Counts>);

impl Reader for Rspec {
    fn line(&mut self, line: &str) {
        if let Some(found) = groups(&RSPEC, line) {
            let (failed, skipped, outside) = (number(found[2]), number(found[4]), number(found[6]));
            self.0 = Some(Counts {
                passed: number(found[1]).saturating_sub(failed + skipped),
                failed: failed + outside,
                skipped,
            });
        }
    }

    fn seen(&self) -> Seen {
        last(self.0)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_pattern_compiles() {
        for regex in [
            &super::PAIR,
            &super::PYTEST,
            &super::UNITTEST_RAN,
            &super::UNITTEST_OK,
            &super::UNITTEST_BAD,
            &super::NAMED,
            &super::NEXTEST,
            &super::NODE,
            &super::JEST,
            &super::VITEST,
            &super::VITEST_ERRORS,
            &super::MOCHA,
            &super::JUNIT_LINE,
            &super::JUNIT_OK,
            &super::JUNIT_BAD,
            &super::CTEST,
            &super::RSPEC,
        ] {
            assert!(regex.is_some());
        }
    }
}
