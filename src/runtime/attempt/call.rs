//! Runs the work under its deadline and records what it says.

use super::context::Control;
use super::input::{Source, feed};
use super::judge::{MAX_DOCUMENT, is_document};
use super::record::Record;
use crate::executor::{Call, CallEvent, Link, Lost};
use crate::settings::Bounds;
use crate::task::Task;
use agentrun_protocol::executor::{Ended, Exec, MAX_OUTPUT_FILE, ProcessEnd, Stream};
use agentrun_protocol::work::WARM_READY;
use serde_json::Value;
use std::io;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long after the SIGKILL the executor may take to say that all is over. One that takes longer is
/// taken for lost: the Pod's end is then the only proof.
const LAST_WORD: Duration = Duration::from_secs(15);

/// Bytes that a program may write before the line that says that it can take calls.
const MAX_GREETING: usize = 1024;

/// Who ended the work, when it did not end by itself. The first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// Its deadline.
    Deadline,
    /// The gateway's order.
    Cancel,
    /// A function had written its document and did not exit.
    Complete,
    /// It is to serve calls and did not say that it can.
    NotReady,
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

/// What is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    /// The end of the program.
    End,
    /// The line that says that it can take calls, which must come by then.
    Ready(Instant),
    /// The line that answers one call.
    Answer,
}

/// How the wait ended.
#[derive(Debug)]
pub(super) enum Turn {
    /// With the end of the program.
    Over(Over),
    /// It can take calls.
    Ready,
    /// It has answered, and all of the answer is here.
    Answered(Rested),
}

/// A program after its answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rested {
    /// Largest resident size meanwhile, in bytes.
    pub(super) peak_memory_bytes: u64,
    /// Processor time since the program's start, in milliseconds.
    pub(super) cpu_ms: u64,
    /// All its processes are stopped, and its private temp folder is empty.
    pub(super) clean: bool,
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
    let mut call = link.call(exec).await?;
    let _feeder = Task::spawn(feed(call.stdin(), input));
    loop {
        if let Turn::Over(over) = follow(&mut call, Until::End, terms, record, control).await? {
            return Ok(over);
        }
    }
}

/// Follows a running program until what is waited for, or its end.
pub(super) async fn follow(
    call: &mut Call,
    until: Until,
    terms: &Terms,
    record: &mut Record,
    control: &mut Control,
) -> Result<Turn, Lost> {
    let mut running = Running {
        call,
        until,
        terms,
        record,
        ended_by: None,
        output_file: None,
        evidence: None,
        quiet_at: None,
        exit_at: None,
        give_up_at: None,
        said: Vec::new(),
        line: Line::Open,
    };
    running.run(control).await
}

struct Running<'a> {
    call: &'a mut Call,
    until: Until,
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
    /// What stdout holds before the program is ready.
    said: Vec<u8>,
    line: Line,
}

/// How far the answer is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    /// Its end has not come.
    Open,
    /// It is whole.
    Whole,
    /// More follows it, so that nobody could tell the next answer from this one's rest.
    Overrun,
}

impl Running<'_> {
    async fn run(&mut self, control: &mut Control) -> Result<Turn, Lost> {
        let ready_by = match self.until {
            Until::Ready(by) => Some(by),
            Until::End | Until::Answer => None,
        };
        loop {
            let open = self.ended_by.is_none();
            tokio::select! {
                event = self.call.next() => if let Some(turn) = self.take(event?).await? {
                    return Ok(turn);
                },
                () = sleep_until(self.terms.deadline), if open => {
                    self.end(EndedBy::Deadline, self.terms.bounds.timeout_grace).await?;
                }
                stop = control.stopped(), if open => self.end(EndedBy::Cancel, stop.grace).await?,
                () = at(ready_by), if open => self.end(EndedBy::NotReady, Duration::ZERO).await?,
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

    async fn take(&mut self, event: CallEvent) -> Result<Option<Turn>, Lost> {
        match event {
            CallEvent::Output(Stream::Stdout, data) if self.ended_by.is_none() => {
                return self.stdout(&data).await;
            }
            CallEvent::Output(stream, data) => self.write(stream, &data).await?,
            CallEvent::OutputFile { data, total } => {
                let (bytes, whole) = self.output_file.get_or_insert_default();
                *whole = total;
                let room = usize::try_from(MAX_OUTPUT_FILE).unwrap_or(usize::MAX) - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
            }
            CallEvent::Rested {
                peak_memory_bytes,
                cpu_ms,
                clean,
            } => {
                return self
                    .rested(Rested {
                        peak_memory_bytes,
                        cpu_ms,
                        clean,
                    })
                    .await;
            }
            CallEvent::Ended(ended) => return Ok(Some(Turn::Over(self.over(ended)))),
        }
        Ok(None)
    }

    async fn stdout(&mut self, data: &[u8]) -> Result<Option<Turn>, Lost> {
        if let Until::Ready(_) = self.until {
            return self.greeting(data).await;
        }
        self.write(Stream::Stdout, data).await?;
        if self.ended_by.is_some() {
            return Ok(None);
        }
        match self.until {
            Until::Answer => self.answer(data).await?,
            Until::End if self.terms.contract => {
                self.quiet_at = Some(Instant::now() + self.terms.bounds.quiet);
                self.exit_at = None;
            }
            Until::End | Until::Ready(_) => {}
        }
        Ok(None)
    }

    async fn greeting(&mut self, data: &[u8]) -> Result<Option<Turn>, Lost> {
        self.said.extend_from_slice(data);
        let line = self
            .said
            .split_inclusive(|byte| *byte == b'\n')
            .next()
            .unwrap_or_default();
        let whole = line.ends_with(b"\n");
        if whole && line.len() == self.said.len() && is_ready(line) {
            self.said.clear();
            return Ok(Some(Turn::Ready));
        }
        if whole || self.said.len() > MAX_GREETING {
            self.end(EndedBy::NotReady, Duration::ZERO).await?;
        }
        Ok(None)
    }

    async fn answer(&mut self, data: &[u8]) -> Result<(), Lost> {
        let end = data.iter().position(|byte| *byte == b'\n');
        match (self.line, end) {
            (Line::Open, Some(end)) => {
                let last = end + 1 == data.len();
                self.line = if last { Line::Whole } else { Line::Overrun };
                self.call.rest().await
            }
            (Line::Open, None) if self.record.stdout.total() > MAX_DOCUMENT => {
                self.end(EndedBy::Complete, Duration::ZERO).await
            }
            (Line::Open, None) => Ok(()),
            (Line::Whole | Line::Overrun, _) => {
                self.line = Line::Overrun;
                Ok(())
            }
        }
    }

    async fn rested(&mut self, rested: Rested) -> Result<Option<Turn>, Lost> {
        if self.ended_by.is_some() {
            return Ok(None);
        }
        if self.line == Line::Whole {
            return Ok(Some(Turn::Answered(rested)));
        }
        self.end(EndedBy::Complete, Duration::ZERO).await?;
        Ok(None)
    }

    async fn write(&mut self, stream: Stream, data: &[u8]) -> Result<(), Lost> {
        if let Err(error) = self.record.add(stream, data) {
            self.evidence.get_or_insert(error);
            if self.ended_by.is_none() {
                self.end(EndedBy::Evidence, Duration::ZERO).await?;
            }
        }
        Ok(())
    }

    /// Whether stdout is one whole document. Asked once after each silence, never for each piece.
    fn is_complete(&self) -> bool {
        self.record.stdout.total() <= MAX_DOCUMENT && is_answer(self.record)
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
        if let Until::End = self.until {
            self.record.stdout.end(&ended.stdout);
            self.record.stderr.end(&ended.stderr);
        }
        if let Err(error) = self.record.add(Stream::Stdout, &self.said) {
            self.evidence.get_or_insert(error);
        }
        Over {
            ended,
            ended_by: self.ended_by.or(stopped),
            output_file: self.output_file.take(),
            evidence: self.evidence.take(),
        }
    }
}

/// Whether what was recorded of stdout is one whole document.
pub(super) fn is_answer(record: &Record) -> bool {
    record
        .stdout
        .head(MAX_DOCUMENT)
        .is_ok_and(|bytes| is_document(&bytes))
}

fn is_ready(line: &[u8]) -> bool {
    let said: Option<Value> = serde_json::from_slice(line).ok();
    said.is_some() && said == serde_json::from_str(WARM_READY).ok()
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
