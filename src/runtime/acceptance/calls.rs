//! Reads the output of what a sub-task ran: the logs of a command, or the records of an agent's shell calls.

use crate::store::calls::read;
use crate::store::evidence::Evidence;
use agentrun_core::acceptance::{CallEnd, CommandRun, Finding, Judge, MAX_CRITERION, judge_of};
use agentrun_protocol::tool::{CallRecord, Effect};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The longest part of a line that is kept, in bytes.
const LINE: u64 = 16 * 1024;
/// Lines between two looks at the clock.
const LINES_AT_ONCE: usize = 1024;

/// The longest command of a shell tool that is compared with a criterion, in bytes: what the longest criterion takes.
/// Records of all calls together may be larger than our memory.
const MAX_COMMAND: usize = 4 * MAX_CRITERION;

/// One call, and where its output is.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// What was run, and how it ended.
    pub(crate) run: CommandRun,
    /// What it wrote.
    pub(crate) output: Output,
    /// All that it wrote is there.
    pub(crate) whole: bool,
}

/// Where the output of a call is.
#[derive(Clone, Debug)]
pub(crate) enum Output {
    /// Logs of its stdout and its stderr, below `state`.
    Logs([PathBuf; 2]),
    /// The record of a tool call, by its number.
    Recorded(Arc<Evidence>, u64),
}

/// What an agent ran by its shell tool in all attempts up to this one, oldest first: an agent goes on where its last
/// attempt was ended. Blocks.
pub(crate) fn of_agent(evidence: &Evidence, attempt: i32) -> io::Result<Vec<Call>> {
    let mut calls = Vec::new();
    for attempt in 1..=attempt {
        let evidence = Arc::new(evidence.of_attempt(attempt));
        calls.extend(read(&evidence)?.filter_map(|record| of_tool(record, &evidence)));
    }
    Ok(calls)
}

fn of_tool(record: CallRecord, evidence: &Arc<Evidence>) -> Option<Call> {
    let Effect::Bash(shell) = record.effect else {
        return None;
    };
    if shell.not_started.is_some() || shell.command.len() > MAX_COMMAND {
        return None;
    }
    let end = match shell.exit_code {
        Some(code) if !shell.timed_out => CallEnd::Exited(code),
        _ => CallEnd::Killed,
    };
    Some(Call {
        run: CommandRun {
            argv: vec!["bash".to_owned(), "-c".to_owned(), shell.command],
            end,
        },
        output: Output::Recorded(Arc::clone(evidence), record.number),
        whole: shell.tail.is_empty() && shell.sha256.is_some(),
    })
}

/// Decides `tests_passed:COMMAND`.
pub(super) fn tests_passed(command: &str, calls: &[Call], until: Instant) -> Finding {
    let runs: Vec<_> = calls.iter().map(|call| call.run.clone()).collect();
    let (index, mut judge) = match judge_of(command, &runs) {
        Ok(found) => found,
        Err(finding) => return finding,
    };
    let Some(call) = calls.get(index) else {
        return Finding::unverified("its record is gone");
    };
    match tell(&mut judge, &call.output, until) {
        Ok(true) => judge.decide(call.whole),
        Ok(false) => Finding::unverified("its output could not be read in time"),
        Err(error) => Finding::unverified(&format!("its output cannot be read: {error}")),
    }
}

/// Gives all of an output to the judge. False when the time was over before its end.
fn tell(judge: &mut Judge, output: &Output, until: Instant) -> io::Result<bool> {
    match output {
        Output::Logs(logs) => {
            for log in logs {
                if !feed(judge, log, until)? {
                    return Ok(false);
                }
            }
        }
        Output::Recorded(evidence, number) => {
            let record = read(evidence)?.find(|record| record.number == *number);
            if let Some(Effect::Bash(shell)) = record.map(|record| record.effect) {
                shell
                    .head
                    .lines()
                    .chain(shell.tail.lines())
                    .for_each(|line| judge.line(line));
            }
        }
    }
    Ok(true)
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
