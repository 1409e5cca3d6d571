//! Runs the work under its deadline and records what it says.

use super::context::Control;
use super::input::{Source, feed};
use super::judge::{MAX_DOCUMENT, is_document};
use super::record::Record;
use crate::executor::{Call, CallEvent, Link, Lost};
use crate::settings::Bounds;
use crate::task::Task;
use agentrun_protocol::executor::{Ended, Exec, MAX_OUTPUT_FILE, ProcessEnd, Stream};
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long after the SIGKILL the executor may take to say that all is over. One that takes longer is
/// taken for lost: the Pod's end is then the only proof.
const LAST_WORD: Duration = Duration::from_secs(15);

/// Who ended the work, when it did not end by itself. The first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Its deadline.
    Deadline,
    /// The gateway's order.
    Cancel,
    /// A function had written its document and did not exit.
    Complete,
    /// Its log could not be written any more.
    Evidence,
}

/// What is known when the work is over.
#[derive(Debug)]
pub(super) struct Over {
    pub(super) ended: Box<Ended>,
    pub(super) ended_by: Option<EndedBy>,
    /// The output file and its whole size.
    pub(super) output_file: Option<(Vec<u8>, u64)>,
    /// Why the log is incomplete.
    pub(super) evidence: Option<io::Error>,
}

/// How the work is to be run.
pub(super) struct Terms {
    pub(super) deadline: Instant,
    pub(super) bounds: Bounds,
    /// Stdout is one JSON document: a function.
    pub(super) contract: bool,
}

/// Runs `exec` to its end.
pub(super) async fn run(
    link: &Link,
    exec: Exec,
    input: Source,
    terms: &Terms,
    record: &mut Record,
    control: &mut Control,
) -> Result<Over, Lost> {
    let call = link.call(exec).await?;
    let _feeder = Task::spawn(feed(call.stdin(), input));
    let mut running = Running {
        call,
        terms,
        record,
        ended_by: None,
        output_file: None,
        evidence: None,
        quiet_at: None,
        exit_at: None,
        give_up_at: None,
    };
    running.run(control).await
}

struct Running<'a> {
    call: Call,
    terms: &'a Terms,
    record: &'a mut Record,
    ended_by: Option<EndedBy>,
    output_file: Option<(Vec<u8>, u64)>,
    evidence: Option<io::Error>,
    /// When stdout has been quiet for long enough to look whether it is complete.
    quiet_at: Option<Instant>,
    /// When a function that has written its document is ended.
    exit_at: Option<Instant>,
    /// When the executor is taken for lost.
    give_up_at: Option<Instant>,
}

impl Running<'_> {
    async fn run(&mut self, control: &mut Control) -> Result<Over, Lost> {
        loop {
            let open = self.ended_by.is_none();
            tokio::select! {
                event = self.call.next() => if let Some(ended) = self.take(event?).await? {
                    return Ok(self.over(ended));
                },
                () = sleep_until(self.terms.deadline), if open => {
                    self.end(EndedBy::Deadline, self.terms.bounds.timeout_grace).await?;
                }
                stop = control.stopped(), if open => self.end(EndedBy::Cancel, stop.grace).await?,
                () = at(self.quiet_at), if open => {
                    self.quiet_at = None;
                    if self.is_complete() {
                        self.exit_at = Some(Instant::now() + self.terms.bounds.exit_grace);
                    }
                }
                () = at(self.exit_at), if open => {
                    self.end(EndedBy::Complete, self.terms.bounds.timeout_grace).await?;
                }
                () = at(self.give_up_at) => {
                    tracing::error!("the executor does not say that the call is over");
                    return Err(Lost);
                }
            }
        }
    }

    async fn take(&mut self, event: CallEvent) -> Result<Option<Box<Ended>>, Lost> {
        match event {
            CallEvent::Output(stream, data) => self.output(stream, &data).await?,
            CallEvent::OutputFile { data, total } => {
                let (bytes, whole) = self.output_file.get_or_insert_default();
                *whole = total;
                let room = usize::try_from(MAX_OUTPUT_FILE).unwrap_or(usize::MAX) - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
            }
            CallEvent::Ended(ended) => return Ok(Some(ended)),
        }
        Ok(None)
    }

    async fn output(&mut self, stream: Stream, data: &[u8]) -> Result<(), Lost> {
        if let Err(error) = self.record.add(stream, data) {
            self.evidence.get_or_insert(error);
            if self.ended_by.is_none() {
                self.end(EndedBy::Evidence, Duration::ZERO).await?;
            }
        }
        if stream == Stream::Stdout && self.terms.contract {
            self.quiet_at = Some(Instant::now() + self.terms.bounds.quiet);
            self.exit_at = None;
        }
        Ok(())
    }

    /// Whether stdout is one whole document. Asked once after each silence, never for each piece.
    fn is_complete(&self) -> bool {
        let stdout = &self.record.stdout;
        stdout.total() <= MAX_DOCUMENT && stdout.head(MAX_DOCUMENT).is_ok_and(|bytes| is_document(&bytes))
    }

    async fn end(&mut self, by: EndedBy, grace: Duration) -> Result<(), Lost> {
        tracing::info!(?by, ?grace, "ending the work");
        self.ended_by = Some(by);
        self.give_up_at = Some(Instant::now() + grace + LAST_WORD);
        self.call.kill(grace).await
    }

    fn over(&mut self, ended: Box<Ended>) -> Over {
        // The Pod is being stopped, and the executor was told before us: F018. What had ended well stays so.
        let ended_well = ended.end == (ProcessEnd::Exited { code: 0 });
        let stopped = (ended.stopped && !ended_well).then_some(EndedBy::Cancel);
        self.record.stdout.end(&ended.stdout);
        self.record.stderr.end(&ended.stderr);
        Over {
            ended,
            ended_by: self.ended_by.or(stopped),
            output_file: self.output_file.take(),
            evidence: self.evidence.take(),
        }
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
