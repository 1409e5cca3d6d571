//! Runners that print one summary for each program, package or module: all of them count, and all must be there.

use super::{Counts, Reader, Seen};

/// The number that `text` begins with, and what follows.
fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The number right before `word`, as in `3 passed`.
fn before(text: &str, word: &str) -> Option<u64> {
    let (before, _) = text.split_once(word)?;
    before
        .trim_end()
        .rsplit(|character: char| !character.is_ascii_digit())
        .next()?
        .parse()
        .ok()
}

/// `cargo test`: a program that dies after `running N tests` has no result.
#[derive(Debug, Default)]
pub(super) struct CargoTest {
    begun: u64,
    ended: u64,
    counts: Counts,
}

impl Reader for CargoTest {
    fn line(&mut self, line: &str) {
        let begins = line.strip_prefix("running ").and_then(leading);
        if begins.is_some_and(|(_, rest)| rest == " tests" || rest == " test") {
            self.begun += 1;
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let numbers = (
            before(result, " passed"),
            before(result, " failed"),
            before(result, " ignored"),
        );
        let (Some(passed), Some(failed), Some(ignored)) = numbers else {
            return;
        };
        self.ended += 1;
        self.counts.passed += passed;
        self.counts.failed += failed.max(u64::from(result.starts_with("FAILED")));
        self.counts.skipped += ignored;
    }

    fn seen(&self) -> Seen {
        match (self.begun, self.ended) {
            (0, 0) => Seen::Nothing,
            (begun, ended) if begun == ended => Seen::Counts(self.counts),
            _ => Seen::Partial,
        }
    }
}

/// `go test`: one line for each package; a package counts as one test unless `-v` shows more.
#[derive(Debug, Default)]
pub(super) struct GoTest {
    packages: u64,
    empty: u64,
    shown: u64,
    failed: u64,
    skipped: u64,
}

impl Reader for GoTest {
    fn line(&mut self, line: &str) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("ok") if line.starts_with("ok  ") => {
                if line.ends_with("[no tests to run]") {
                    self.empty += 1;
                } else {
                    self.packages += 1;
                }
            }
            Some("?") if line.ends_with("[no test files]") => self.empty += 1,
            Some("FAIL" | "panic:") => self.failed += 1,
            Some("---") => match words.next() {
                Some("PASS:") => self.shown += 1,
                Some("FAIL:") => self.failed += 1,
                Some("SKIP:") => self.skipped += 1,
                _ => {}
            },
            _ => {}
        }
    }

    fn seen(&self) -> Seen {
        if self.packages + self.empty + self.failed == 0 {
            // Tests that passed, in a package that has no last line.
            return if self.shown > 0 {
                Seen::Partial
            } else {
                Seen::Nothing
            };
        }
        let only_skipped = self.shown == 0 && self.skipped > 0;
        let passed = match self.packages {
            0 => 0,
            _ if only_skipped => 0,
            packages => packages.max(self.shown),
        };
        Seen::Counts(Counts {
            passed,
            failed: self.failed,
            skipped: self.skipped,
        })
    }
}

/// Maven: the sums of each module, and the build's own success behind them.
#[derive(Debug, Default)]
pub(super) struct Surefire {
    modules: u64,
    counts: Counts,
    success: bool,
    failure: bool,
}

impl Reader for Surefire {
    fn line(&mut self, line: &str) {
        let text = ["[INFO] ", "[WARNING] ", "[ERROR] "]
            .into_iter()
            .find_map(|level| line.strip_prefix(level))
            .unwrap_or(line);
        self.success |= text == "BUILD SUCCESS";
        self.failure |= text == "BUILD FAILURE";
        // The line of one class goes on with its time.
        let Some(sums) = text
            .strip_prefix("Tests run: ")
            .filter(|sums| !sums.contains("Time elapsed"))
        else {
            return;
        };
        let after = |name: &str| {
            sums.split_once(name)
                .and_then(|(_, rest)| leading(rest))
                .map(|(count, _)| count)
        };
        let (Some((run, _)), Some(failures), Some(errors), Some(skipped)) = (
            leading(sums),
            after("Failures: "),
            after("Errors: "),
            after("Skipped: "),
        ) else {
            return;
        };
        self.modules += 1;
        self.counts.failed += failures + errors;
        self.counts.skipped += skipped;
        self.counts.passed += run.saturating_sub(failures + errors + skipped);
    }

    fn seen(&self) -> Seen {
        match (self.modules, self.success, self.failure) {
            (0, false, false) => Seen::Nothing,
            (_, true, false) => Seen::Counts(self.counts),
            (_, false, false) => Seen::Partial,
            (_, _, true) => Seen::Counts(Counts {
                failed: self.counts.failed.max(1),
                ..self.counts
            }),
        }
    }
}

/// bats: TAP, where the plan says how many lines must come, or its own summary.
#[derive(Debug, Default)]
pub(super) struct Bats {
    planned: Option<u64>,
    lines: u64,
    counts: Counts,
    summary: Option<Counts>,
}

impl Reader for Bats {
    fn line(&mut self, line: &str) {
        let (is_ok, rest) = match (line.strip_prefix("ok "), line.strip_prefix("not ok ")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => {
                if let Some((planned, "")) = line.strip_prefix("1..").and_then(leading) {
                    self.planned = Some(planned);
                } else if let Some(summary) = summary(line) {
                    self.summary = Some(summary);
                }
                return;
            }
        };
        if leading(rest).is_none() {
            return;
        }
        self.lines += 1;
        match is_ok {
            true if rest.contains("# skip") => self.counts.skipped += 1,
            true => self.counts.passed += 1,
            false => self.counts.failed += 1,
        }
    }

    fn seen(&self) -> Seen {
        match (self.summary, self.planned, self.lines) {
            (Some(summary), _, _) => Seen::Counts(summary),
            (None, None, 0) => Seen::Nothing,
            (None, Some(planned), lines) if planned == lines => Seen::Counts(self.counts),
            _ => Seen::Partial,
        }
    }
}

/// `5 tests, 1 failure, 1 skipped`, or its like with `failures` and `not run`.
fn summary(line: &str) -> Option<Counts> {
    let (tests, rest) = leading(line)?;
    let rest = rest
        .strip_prefix(" tests, ")
        .or_else(|| rest.strip_prefix(" test, "))?;
    let failed = before(rest, " failure")?;
    let not_run = before(rest, " not run").unwrap_or_default();
    let skipped = before(rest, " skipped").unwrap_or_default();
    Some(Counts {
        passed: tests.saturating_sub(failed + not_run + skipped),
        failed: failed + not_run,
        skipped,
    })
}
