//! Puts the facts of a call before the contract of `agentrun-core`.

use super::call::{EndedBy, Over};
use super::output::{self, Placed};
use super::record::Record;
use super::schemas::check_output;
use crate::store::evidence::Evidence;
use agentrun_api::SubTaskReason;
use agentrun_core::contract::{self, Call, Delivery, Judgement, Output};
use agentrun_core::schema::Schema;
use agentrun_protocol::executor::MAX_OUTPUT_FILE;
use agentrun_protocol::result::Ending;
use agentrun_protocol::work::Work;
use std::io;

/// The largest document that is judged (1 MiB), of a function as of a command. A parsed document takes up to
/// twenty times its bytes, and the container has 64 MiB.
pub(super) const MAX_DOCUMENT: u64 = MAX_OUTPUT_FILE;
/// Bytes of each tail in a result.
pub(super) const TAIL: usize = 2048;

/// What the result says of the work itself.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) ending: Ending,
    pub(super) reason: SubTaskReason,
    pub(super) message: String,
    pub(super) exit_code: Option<i32>,
    pub(super) output: Option<Placed>,
}

/// The times that the work had, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// For all of it.
    pub(super) limit_ms: u64,
    /// For a warm process to be ready.
    pub(super) warm_start_ms: u64,
}

impl Verdict {
    /// An earlier result was taken.
    pub(super) fn cached(output: Placed) -> Self {
        Verdict {
            ending: Ending::Success,
            reason: SubTaskReason::Cached,
            message: String::new(),
            exit_code: None,
            output: Some(output),
        }
    }
}

/// The end of stdout, and head and end of stderr, for people.
pub(super) fn tails(record: &Record) -> (String, String) {
    (
        record.stdout.ends().tail(TAIL),
        record.stderr.ends().head_and_tail(TAIL),
    )
}

/// Whether `stdout` is one whole document.
pub(super) fn is_document(stdout: &[u8]) -> bool {
    contract::parse_stdout(stdout).is_ok()
}

/// Judges the call by the contract and its function's `schema`, and puts its output in its place. Blocks.
pub(super) fn judge(
    work: &Work,
    over: &Over,
    record: &Record,
    times: Times,
    schema: Option<&Schema>,
    evidence: &Evidence,
) -> io::Result<Verdict> {
    let kept = record.stdout.head(MAX_DOCUMENT)?;
    let (stdout_tail, _) = tails(record);
    let delivery = match work {
        Work::Function { .. } => Delivery::Stdout {
            kept: &kept,
            total: record.stdout.total(),
        },
        Work::Command { .. } | Work::Agent(_) => Delivery::File {
            file: over
                .output_file
                .as_ref()
                .map(|(bytes, total)| (bytes.as_slice(), *total)),
            stdout_tail: &stdout_tail,
        },
    };
    let call = Call {
        ended_by: ended_by(over.ended_by, times.limit_ms, times.warm_start_ms),
        process: &over.ended.end,
        too_many_processes: over.ended.too_many_processes,
        killed_for_memory: over.ended.killed_for_memory,
        blocked_on_stdin: over.ended.blocked_on_stdin,
        delivery,
        stderr: &record.stderr.ends().tail(super::record::ENDS),
    };
    let judgement = contract::judge(&call);
    let unfit = schema.zip(judgement.output.as_ref());
    let unfit = unfit.and_then(|(schema, output)| check_output(schema, output.value()));
    if let Some(verdict) = unfit {
        return Ok(Verdict {
            exit_code: judgement.exit_code,
            ..verdict
        });
    }
    let output = judgement
        .output
        .as_ref()
        .map(|output| place(output, evidence))
        .transpose()?;
    let Judgement {
        ending,
        reason,
        message,
        code,
        exit_code,
        ..
    } = judgement;
    let message = match code {
        Some(code) if !message.contains(&code) => format!("{code}: {message}"),
        _ => message,
    };
    Ok(Verdict {
        ending,
        reason,
        message,
        exit_code,
        output,
    })
}

fn ended_by(by: Option<EndedBy>, limit_ms: u64, warm_start_ms: u64) -> contract::EndedBy {
    match by {
        None | Some(EndedBy::Evidence) => contract::EndedBy::Itself,
        Some(EndedBy::Deadline) => contract::EndedBy::Timeout { limit_ms },
        Some(EndedBy::Cancel) => contract::EndedBy::Cancel,
        Some(EndedBy::Complete) => contract::EndedBy::Lingering,
        Some(EndedBy::NotReady) => contract::EndedBy::NotReady {
            limit_ms: warm_start_ms,
        },
    }
}

/// Puts the document that `stdout` is in its place. Blocks.
pub(super) fn place_document(stdout: &[u8], evidence: &Evidence) -> io::Result<Placed> {
    let document = contract::parse_stdout(stdout).map_err(io::Error::other)?;
    output::place(document.raw.as_bytes(), &document.value, evidence)
}

fn place(output: &Output<'_>, evidence: &Evidence) -> io::Result<Placed> {
    match output {
        Output::Document(document) => output::place(document.raw.as_bytes(), &document.value, evidence),
        Output::Made(value) => output::place(&serde_json::to_vec(value)?, value, evidence),
    }
}
