//! The order of an attempt: prepare, run, judge, collect, store.

use super::artifacts::{self, Artifacts, HASH_TIME, Listing};
use super::call::{self, Over, Terms};
use super::context::{Context, Control};
use super::judge::{MAX_DOCUMENT, Times, Verdict, judge, place_document, tails};
use super::output::Placed;
use super::prepare::{Basis, PrepareError, Prepared, prepare};
use super::program::{self, LOG_BYTES};
use super::record::Record;
use super::warm::{self, Server};
use crate::acceptance::{self, Before, CHECK_TIME, Call};
use crate::chain;
use crate::store::evidence::Evidence;
use crate::store::volume::VolumeError;
use agentrun_api::SubTaskReason;
use agentrun_core::acceptance::{CallEnd, CommandRun};
use agentrun_protocol::executor::{ProcessEnd, Stream};
use agentrun_protocol::result::{AttemptResult, CriterionVerdict, Ending, Timing, Usage};
use agentrun_protocol::work::{Assignment, Work};
use agentrun_sandbox::resolve::Roots;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How an attempt ended.
#[derive(Debug)]
pub enum AttemptEnd {
    /// With a result, stored below `state` where the volume allowed it.
    Result(Box<AttemptResult>),
    /// The executor went away; not an outcome.
    ExecutorLost {
        /// The end of stdout so far.
        stdout_tail: String,
        /// Head and end of stderr so far.
        stderr_tail: String,
    },
}

/// Does `assignment` to its end.
pub async fn run(context: Arc<Context>, assignment: Assignment, mut control: Control) -> AttemptEnd {
    let started = Instant::now();
    let evidence = match Evidence::new(&context.settings.folders.state, &assignment) {
        Ok(evidence) => evidence,
        Err(error) => {
            return AttemptEnd::Result(Box::new(blank(Ending::Error, SubTaskReason::StartFailed, &error)));
        }
    };
    let attempt = Attempt {
        deadline: started + Duration::from_millis(assignment.remaining_ms),
        context,
        assignment,
        evidence,
        started,
    };
    let mut result = match attempt.go(&mut control).await {
        AttemptEnd::Result(result) => result,
        lost @ AttemptEnd::ExecutorLost { .. } => return lost,
    };
    result.isolation = *attempt.context.isolation.borrow();
    let secrets = &attempt.context.secrets;
    result.message = secrets.blot(&result.message);
    for verdict in &mut result.acceptance {
        verdict.detail = secrets.blot(&verdict.detail);
    }
    AttemptEnd::Result(attempt.store(result).await)
}

pub(super) struct Attempt {
    pub(super) context: Arc<Context>,
    pub(super) assignment: Assignment,
    pub(super) evidence: Evidence,
    pub(super) started: Instant,
    pub(super) deadline: Instant,
}

impl Attempt {
    async fn go(&self, control: &mut Control) -> AttemptEnd {
        let prepared = tokio::select! {
            prepared = prepare(&self.context, &self.assignment, &self.evidence) => prepared,
            () = sleep_until(self.deadline) => return self.unstarted(Ending::Timeout, SubTaskReason::DeadlineExceeded, &Unstarted::Late),
            _ = control.stopped() => return self.unstarted(Ending::Cancelled, SubTaskReason::Cancelled, &Unstarted::Cancelled),
        };
        match prepared {
            Ok(prepared) => match self.cached(&prepared.basis).await {
                Some(result) => AttemptEnd::Result(result),
                None => self.work(prepared, control).await,
            },
            Err(error) => self.unprepared(&error),
        }
    }

    /// The result of the same work at an earlier time. One that cannot be read is none, and neither is one that does
    /// not meet the criteria now: F121.
    async fn cached(&self, basis: &Basis) -> Option<Box<AttemptResult>> {
        let (entry, evidence) = (basis.cache.clone()?, self.evidence.clone());
        let (criteria, before) = (self.assignment.acceptance.clone(), basis.unwritten.clone());
        let roots = self.context.settings.folders.roots();
        let found = crate::blocking(move || {
            let Some(bytes) = entry.load() else {
                return Ok(None);
            };
            let acceptance = acceptance::check(&criteria, &facts(&roots, &before, &[]));
            if acceptance.iter().any(fails) {
                return Ok(None);
            }
            Ok(Some((place_document(&bytes, &evidence)?, acceptance)))
        });
        let (output, acceptance) = found.await.ok()??;
        let mut result = AttemptResult {
            acceptance,
            ..assemble(Verdict::cached(output), Artifacts::default())
        };
        result.timing.start_ms = millis(self.started.elapsed());
        result.process_tree_empty = true;
        Some(Box::new(result))
    }

    pub(super) fn unprepared(&self, error: &PrepareError) -> AttemptEnd {
        self.unstarted(Ending::Error, error.reason(), error)
    }

    pub(super) fn unstarted(
        &self,
        ending: Ending,
        reason: SubTaskReason,
        error: &dyn std::error::Error,
    ) -> AttemptEnd {
        let mut result = blank(ending, reason, error);
        result.timing.start_ms = millis(self.started.elapsed());
        // Nothing was started, so nothing is left.
        result.process_tree_empty = true;
        AttemptEnd::Result(Box::new(result))
    }

    async fn work(&self, prepared: Prepared, control: &mut Control) -> AttemptEnd {
        if let Work::Agent(terms) = &self.assignment.work {
            return self.agent(prepared, terms, control).await;
        }
        let settings = &self.context.settings;
        let mut record = match Record::create(&self.evidence, &self.context.secrets) {
            Ok(record) => record,
            Err(error) => return self.unprepared(&self.volume(error).into()),
        };
        let exec = program::exec(&self.assignment, &settings.folders, &settings.seen);
        let terms = Terms {
            deadline: self.deadline,
            bounds: settings.bounds,
            contract: matches!(self.assignment.work, Work::Function { .. }),
        };
        let begun = Instant::now();
        let link = &self.context.link;
        let over = match program::warm(&self.assignment, &exec) {
            None => call::run(link, exec, prepared.input, &terms, &mut record, control).await,
            Some((key, warm)) => {
                let pool = &self.context.warm;
                let server = Server {
                    pool,
                    link,
                    key,
                    warm,
                };
                warm::run(server, prepared.input, &terms, &mut record, control).await
            }
        };
        let timing = Timing {
            start_ms: millis(begun - self.started),
            run_ms: millis(begun.elapsed()),
        };
        let finished = record.finish();
        let (stdout_tail, stderr_tail) = tails(&record);
        let Ok(mut over) = over else {
            return AttemptEnd::ExecutorLost {
                stdout_tail,
                stderr_tail,
            };
        };
        over.evidence = over.evidence.or(finished.err());
        let usage = Usage {
            peak_memory_bytes: i64::try_from(over.ended.peak_memory_bytes).unwrap_or(i64::MAX),
            cpu_ms: i64::try_from(over.ended.cpu_ms).unwrap_or(i64::MAX),
        };
        let process_tree_empty = over.ended.tree_empty;
        let result = self.collect(over, record, prepared.basis).await;
        let result = result.unwrap_or_else(|error| self.unwritable(error));
        AttemptEnd::Result(Box::new(AttemptResult {
            stdout_tail,
            stderr_tail,
            timing,
            usage,
            process_tree_empty,
            ..result
        }))
    }

    /// Judges, hashes and places. Away from the timers, since all of it reads and writes files; what is not over when
    /// the time is, is left out, and the result says so.
    async fn collect(&self, mut over: Over, record: Record, basis: Basis) -> io::Result<AttemptResult> {
        if let Some(error) = over.evidence.take() {
            return Err(error);
        }
        let bounds = self.context.settings.bounds;
        let until = Instant::now() + bounds.collect;
        let times = Times {
            limit_ms: self.assignment.remaining_ms,
            warm_start_ms: u64::try_from(bounds.warm_start.as_millis()).unwrap_or(u64::MAX),
        };
        let (work, evidence) = (self.assignment.work.clone(), self.evidence.clone());
        let (over, record) = (Arc::new(over), Arc::new(record));
        let schemas = Arc::clone(&basis.schemas);
        let (ended, logs) = (Arc::clone(&over), Arc::clone(&record));
        let judged =
            crate::blocking(move || judge(&work, &ended, &logs, times, schemas.output.as_ref(), &evidence));
        let verdict = judged.await?;
        let command = match &self.assignment.work {
            Work::Command { argv, .. } => Some(command_run(argv, &over, &record, &self.evidence)),
            Work::Function { .. } | Work::Agent(_) => None,
        };
        let result = self
            .deliver(verdict, command, basis.before, basis.unwritten, until)
            .await?;
        let is_reusable = result.ending == Ending::Success && !result.acceptance.iter().any(fails);
        if let Some(entry) = basis.cache.filter(|_| is_reusable) {
            let roots = self.context.settings.folders.roots();
            let kept = crate::blocking(move || {
                entry.store(&roots, &record.stdout.head(MAX_DOCUMENT)?);
                Ok(())
            });
            in_time(until, kept).await?;
        }
        Ok(result)
    }

    /// Looks at what was delivered: hashes it, and checks it where the work ended well.
    pub(super) async fn deliver(
        &self,
        verdict: Verdict,
        command: Option<Call>,
        before: Listing,
        unwritten: Before,
        until: Instant,
    ) -> io::Result<AttemptResult> {
        let artifacts = self.artifacts(before, until).await?;
        let acceptance = match verdict.ending {
            Ending::Success => self.check(unwritten, command, until).await?,
            _ => Vec::new(),
        };
        Ok(AttemptResult {
            acceptance,
            ..assemble(verdict, artifacts)
        })
    }

    async fn artifacts(&self, before: Listing, until: Instant) -> io::Result<Artifacts> {
        let roots = self.context.settings.folders.roots();
        let soon = until.into_std().min(std::time::Instant::now() + HASH_TIME);
        let found = crate::blocking(move || artifacts::changed(&roots, &before, soon));
        Ok(in_time(until, found).await?.unwrap_or_else(Artifacts::unseen))
    }

    async fn check(
        &self,
        before: Before,
        command: Option<Call>,
        until: Instant,
    ) -> io::Result<Vec<CriterionVerdict>> {
        let criteria = self.assignment.acceptance.clone();
        let roots = self.context.settings.folders.roots();
        let mut calls: Vec<Call> = command.into_iter().collect();
        let agent = match &self.assignment.work {
            Work::Agent(_) => Some((self.evidence.clone(), self.assignment.id.attempt)),
            Work::Command { .. } | Work::Function { .. } => None,
        };
        let soon = until.into_std().min(std::time::Instant::now() + CHECK_TIME);
        let checked = crate::blocking(move || {
            if let Some((evidence, attempt)) = agent {
                calls = acceptance::of_agent(&evidence, attempt)?;
            }
            let facts = acceptance::Facts {
                until: soon,
                ..facts(&roots, &before, &calls)
            };
            Ok(acceptance::check(&criteria, &facts))
        });
        let unchecked = || acceptance::unchecked(&self.assignment.acceptance);
        Ok(in_time(until, checked).await?.unwrap_or_else(unchecked))
    }

    async fn store(&self, result: Box<AttemptResult>) -> Box<AttemptResult> {
        let evidence = self.evidence.clone();
        let stored = crate::blocking(move || {
            let error = evidence.store_result(&result).err();
            Ok((result, error))
        });
        match stored.await {
            Ok((result, None)) => result,
            // A success that left no evidence is none: the next reader of this volume would not find it.
            Ok((result, Some(error))) if result.ending == Ending::Success => {
                let failed = self.unwritable(error);
                Box::new(AttemptResult {
                    ending: failed.ending,
                    reason: failed.reason,
                    message: failed.message,
                    ..*result
                })
            }
            Ok((result, Some(error))) => {
                tracing::warn!(%error, "the result is not stored");
                result
            }
            Err(error) => Box::new(self.unwritable(error)),
        }
    }

    pub(super) fn unwritable(&self, error: io::Error) -> AttemptResult {
        blank(
            Ending::Error,
            SubTaskReason::VolumeNotWritable,
            &self.volume(error),
        )
    }

    pub(super) fn volume(&self, error: io::Error) -> VolumeError {
        VolumeError::new(&self.context.settings.sandbox.volume, error)
    }
}

/// What `looking` finds, or nothing when the time is over before it ends. A look that hangs in the volume goes on behind
/// our back: nobody can end it, and nobody waits for it.
async fn in_time<T>(until: Instant, looking: impl Future<Output = io::Result<T>>) -> io::Result<Option<T>> {
    match timeout_at(until, looking).await {
        Ok(found) => found.map(Some),
        Err(_) => Ok(None),
    }
}

/// The work was over before it began.
#[derive(Debug, thiserror::Error)]
enum Unstarted {
    #[error(
        "the deadline came before the work could start: files, skills or the isolation probe took too long"
    )]
    Late,
    #[error("cancelled before the work started")]
    Cancelled,
}

fn facts<'a>(roots: &'a Roots, before: &'a Before, calls: &'a [Call]) -> acceptance::Facts<'a> {
    acceptance::Facts {
        roots,
        before,
        calls,
        until: std::time::Instant::now() + CHECK_TIME,
    }
}

fn fails(verdict: &CriterionVerdict) -> bool {
    verdict.checked && !verdict.holds
}

/// What a command ran: it is one call of its own.
fn command_run(argv: &[String], over: &Over, record: &Record, evidence: &Evidence) -> Call {
    let end = match over.ended.end {
        ProcessEnd::Exited { code } => CallEnd::Exited(code),
        _ => CallEnd::Killed,
    };
    let totals = [record.stdout.total(), record.stderr.total()];
    let logs = [Stream::Stdout, Stream::Stderr].map(|stream| evidence.log_path(stream));
    Call {
        run: CommandRun {
            argv: argv.to_vec(),
            end,
        },
        output: acceptance::Output::Logs(logs),
        whole: totals.into_iter().all(|total| total <= LOG_BYTES),
    }
}

fn assemble(verdict: Verdict, artifacts: Artifacts) -> AttemptResult {
    let (output, output_ref) = match verdict.output {
        None => (None, None),
        Some(Placed::Inline(value)) => (Some(value), None),
        Some(Placed::Stored(file)) => (None, Some(file)),
    };
    let mut message = verdict.message;
    let mut note = |note: String| {
        let separator = if message.is_empty() { "" } else { "; " };
        message = format!("{message}{separator}{note}");
    };
    if artifacts.left_out > 0 {
        note(format!("{} further artifacts are not listed", artifacts.left_out));
    }
    if !artifacts.whole {
        note("not all of /mnt/user-data/outputs was looked at, so that artifacts may be missing".to_owned());
    }
    AttemptResult {
        ending: verdict.ending,
        reason: verdict.reason.to_string(),
        message,
        exit_code: verdict.exit_code,
        output,
        output_ref,
        artifacts: artifacts.files,
        ..empty()
    }
}

fn blank(ending: Ending, reason: SubTaskReason, error: &dyn std::error::Error) -> AttemptResult {
    AttemptResult {
        ending,
        reason: reason.to_string(),
        message: chain(error),
        ..empty()
    }
}

fn empty() -> AttemptResult {
    AttemptResult {
        ending: Ending::Error,
        reason: String::new(),
        message: String::new(),
        exit_code: None,
        output: None,
        output_ref: None,
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        artifacts: Vec::new(),
        acceptance: Vec::new(),
        timing: Timing::default(),
        usage: Usage::default(),
        agent: None,
        isolation: None,
        process_tree_empty: false,
    }
}

pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
