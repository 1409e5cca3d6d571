//! Calls of a function whose processes stay.
//!
//! A process says `{"ready":true}` on stdout, then answers each line on stdin with one line on stdout. Between calls all of
//! it is stopped: nothing of it runs behind the back of a result, whatever files it may write. It serves calls
//! of one skill's digest, function, environment and bounds. After an answer that is no document, more than one line, an
//! end, a timeout or its last call it is killed, and the next call starts another.

mod pool;

pub(super) use pool::Key;
pub use pool::Pool;

use super::call::{EndedBy, Over, Rested, Terms, Turn, Until, follow, is_answer};
use super::context::Control;
use super::input::{Source, feed_line};
use super::record::Record;
use crate::executor::{Link, Lost};
use crate::task::Task;
use agentrun_protocol::executor::{Ended, ProcessEnd};
use agentrun_protocol::work::Warm;
use pool::{Place, Process};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

/// How long after the answer the rest of the input may be on its way to the executor.
const FED: Duration = Duration::from_millis(200);

/// Where a call runs.
pub(super) struct Server<'a> {
    pub(super) pool: &'a Pool,
    pub(super) link: &'a Link,
    pub(super) key: Key,
    pub(super) warm: Warm,
}

/// Has a process answer `input`.
pub(super) async fn run(
    server: Server<'_>,
    input: Source,
    terms: &Terms,
    record: &mut Record,
    control: &mut Control,
) -> Result<Over, Lost> {
    let Server {
        pool,
        link,
        key,
        warm,
    } = server;
    let place = pool.place(key, warm.instances);
    let _room = tokio::select! {
        room = place.room() => room,
        () = sleep_until(terms.deadline) => return Ok(unstarted(EndedBy::Deadline)),
        _ = control.stopped() => return Ok(unstarted(EndedBy::Cancel)),
    };
    let mut process = match place.take().await {
        Some(process) => process,
        None => match start(&place, link, terms, record, control).await? {
            Ok(process) => process,
            Err(over) => return Ok(over),
        },
    };
    let mut feeder = Task::spawn(feed_line(process.call.stdin(), input));
    let turn = follow(&mut process.call, Until::Answer, terms, record, control).await?;
    let rested = match turn {
        Turn::Over(over) => return Ok(heard(over)),
        Turn::Answered(rested) => rested,
        Turn::Ready => Rested::default(),
    };
    let over = answered(
        rested.peak_memory_bytes,
        rested.cpu_ms.saturating_sub(process.cpu_ms),
    );
    process.cpu_ms = rested.cpu_ms;
    process.calls += 1;
    let fed = matches!(timeout(FED, &mut feeder.0).await, Ok(Ok(Ok(true))));
    let spent = warm.max_calls.is_some_and(|most| process.calls >= most);
    if fed && rested.clean && !spent && is_answer(record) {
        place.keep(process);
    } else {
        process.end().await;
    }
    Ok(over)
}

/// Starts a process and waits until it can take calls.
async fn start(
    place: &Place,
    link: &Link,
    terms: &Terms,
    record: &mut Record,
    control: &mut Control,
) -> Result<Result<Process, Over>, Lost> {
    let mut process = Process::new(link.call(place.exec().clone()).await?);
    let by = Instant::now() + terms.bounds.warm_start;
    Ok(
        match follow(&mut process.call, Until::Ready(by), terms, record, control).await? {
            Turn::Over(over) => Err(heard(over)),
            Turn::Ready | Turn::Answered(_) => Ok(process),
        },
    )
}

/// Stdin is never closed here, so that waiting for it says nothing of a call that was ended.
fn heard(mut over: Over) -> Over {
    over.ended.blocked_on_stdin = false;
    over
}

/// A process that goes on has answered; that it does is why its tree is not empty.
fn answered(peak_memory_bytes: u64, cpu_ms: u64) -> Over {
    over(
        Ended {
            end: ProcessEnd::Exited { code: 0 },
            peak_memory_bytes,
            cpu_ms,
            tree_empty: false,
            ..nothing()
        },
        None,
    )
}

fn unstarted(by: EndedBy) -> Over {
    over(nothing(), Some(by))
}

fn over(ended: Ended, ended_by: Option<EndedBy>) -> Over {
    Over {
        ended: Box::new(ended),
        ended_by,
        output_file: None,
        evidence: None,
    }
}

fn nothing() -> Ended {
    Ended::without_work(0, ProcessEnd::Signalled { signal: 9 }, 0)
}
