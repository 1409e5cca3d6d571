//! Reads the logs of what a sub-task ran.

use agentrun_core::acceptance::{CallRecord, Finding, Judge, judge_of};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The longest part of a line that is kept, in bytes.
const LINE: u64 = 16 * 1024;
/// Lines between two looks at the clock.
const LINES_AT_ONCE: usize = 1024;

/// One call, and where its logs are.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What was run, and how it ended.
    pub(crate) record: CallRecord,
    /// Its stdout and its stderr, below `state`.
    pub(crate) logs: [PathBuf; 2],
    /// All that it wrote is in the logs.
    pub(crate) whole: bool,
}

/// Decides `tests_passed:COMMAND`.
pub(super) fn tests_passed(command: &str, calls: &[Call], until: Instant) -> Finding {
    let records: Vec<_> = calls.iter().map(|call| call.record.clone()).collect();
    let (index, mut judge) = match judge_of(command, &records) {
        Ok(found) => found,
        Err(finding) => return finding,
    };
    let Some(call) = calls.get(index) else {
        return Finding::unverified("its record is gone");
    };
    for log in &call.logs {
        match feed(&mut judge, log, until) {
            Ok(true) => {}
            Ok(false) => return Finding::unverified("its output could not be read in time"),
            Err(error) => return Finding::unverified(&format!("its output cannot be read: {error}")),
        }
    }
    judge.decide(call.whole)
}

/// Gives every line of a log to the judge. False when the time was over before its end.
fn feed(judge: &mut Judge, log: &Path, until: Instant) -> io::Result<bool> {
    let mut reader = BufReader::new(File::open(log)?);
    let mut line = Vec::new();
    for number in 0.. {
        if number % LINES_AT_ONCE == 0 && Instant::now() >= until {
            return Ok(false);
        }
        line.clear();
        if (&mut reader).take(LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            reader.skip_until(b'\n')?;
        }
        judge.line(String::from_utf8_lossy(&line).trim_end_matches('\n'));
    }
    Ok(true)
}
