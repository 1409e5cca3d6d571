//! Calls over the executor's connection.

use crate::frames::FrameReader;
use crate::lock::lock;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{
    CallId, Ended, Exec, ProcessEnd, StartError, Stream, ToExecutor, ToRuntime,
};
use agentrun_protocol::frame::{self, FrameError, MAX_FRAME};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// Events of one call that wait for their reader; a slow reader slows the executor, not the memory.
const EVENTS: usize = 4;
const WRITES: usize = 4;

/// The executor's connection ended.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the executor's connection ended")]
pub struct Lost;

/// What a call tells.
#[derive(Debug)]
pub enum CallEvent {
    /// A piece of output.
    Output(Stream, Vec<u8>),
    /// A piece of the output file, and the size of the whole file.
    OutputFile {
        /// The bytes.
        data: Vec<u8>,
        /// Size of the whole file.
        total: u64,
    },
    /// All of the answer was sent.
    Rested {
        /// Largest resident size since it last rested, in bytes.
        peak_memory_bytes: u64,
        /// Processor time since the start, in milliseconds.
        cpu_ms: u64,
        /// All its processes are stopped, and its private temp folder is empty.
        clean: bool,
    },
    /// The last event.
    Ended(Box<Ended>),
}

type Calls = Arc<Mutex<HashMap<CallId, mpsc::Sender<CallEvent>>>>;

/// The connection, shared by all calls.
#[derive(Clone, Debug)]
pub struct Link {
    calls: Calls,
    next: Arc<AtomicU64>,
    queue: mpsc::Sender<Vec<u8>>,
    lost: watch::Receiver<bool>,
    /// How often the executor was asked to clear, and how often it has answered.
    asked: Arc<AtomicU64>,
    cleared: watch::Receiver<u64>,
}

impl Link {
    pub(super) fn start(reader: FrameReader<OwnedReadHalf>, writer: OwnedWriteHalf) -> Self {
        let calls = Calls::default();
        let (queue, queued) = mpsc::channel(WRITES);
        let (end, lost) = watch::channel(false);
        let (answers, cleared) = watch::channel(0);
        tokio::spawn(write(queued, writer));
        let known = Arc::clone(&calls);
        tokio::spawn(async move {
            read(reader, &known, &answers).await;
            // Order matters: a call that registers after this sees `lost`.
            end.send_replace(true);
            lock(&known).clear();
        });
        Link {
            calls,
            next: Arc::new(AtomicU64::new(1)),
            queue,
            lost,
            asked: Arc::default(),
            cleared,
        }
    }

    /// Has the executor empty the folders that all calls share. [`Link::cleared`] waits for that.
    pub fn clear(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let link = self.clone();
        tokio::spawn(async move { link.send(&ToExecutor::Clear).await });
    }

    /// Returns when the executor has done all clearing that it was asked for, or is lost; false when that takes longer
    /// than `within`.
    pub async fn cleared(&self, within: Duration) -> bool {
        let mut cleared = self.cleared.clone();
        let asked = self.asked.load(Ordering::Relaxed);
        let done = cleared.wait_for(|answers| *answers >= asked);
        timeout(within, done).await.is_ok()
    }

    /// Starts a program. `exec.id` is replaced. One that is longer than a message may be has ended before it began.
    pub async fn call(&self, mut exec: Exec) -> Result<Call, Lost> {
        exec.id = self.next.fetch_add(1, Ordering::Relaxed);
        let id = exec.id;
        let (events, receiver) = mpsc::channel(EVENTS);
        let call = Call {
            id,
            events: receiver,
            link: self.clone(),
        };
        let message = match frame::encode(&ToExecutor::Exec(Box::new(exec))) {
            Ok(message) => message,
            Err(error) => {
                // It is new, so it has room.
                let _ = events.try_send(CallEvent::Ended(Box::new(refused(id, &error))));
                return Ok(call);
            }
        };
        lock(&self.calls).insert(id, events);
        if *self.lost.borrow() {
            return Err(Lost);
        }
        self.queue.send(message).await.map_err(|_| Lost)?;
        Ok(call)
    }

    /// Returns when the executor is lost.
    pub async fn lost(&self) {
        let mut lost = self.lost.clone();
        // An error means that the reader is gone, which is the same thing.
        let _ = lost.wait_for(|lost| *lost).await;
    }

    async fn send(&self, message: &ToExecutor) -> Result<(), Lost> {
        let bytes = frame::encode(message).map_err(|error| {
            tracing::error!(%error, "a message for the executor was not sent");
            Lost
        })?;
        self.queue.send(bytes).await.map_err(|_| Lost)
    }
}

/// The end of a call that no message can hold.
fn refused(id: CallId, error: &FrameError) -> Ended {
    let message = match error {
        FrameError::TooLong { found } => format!(
            "its command line and variables take {found} bytes, at most {MAX_FRAME} are allowed; hand over large values \
             by stdin or in a file"
        ),
        FrameError::Malformed(_) => error.to_string(),
    };
    let end = ProcessEnd::NotStarted {
        error: StartError::TooLong,
        message,
    };
    Ended::without_work(id, end, 0)
}

/// A running program.
#[derive(Debug)]
pub struct Call {
    id: CallId,
    events: mpsc::Receiver<CallEvent>,
    link: Link,
}

impl Call {
    /// The next event, `Lost` when the connection ended before the call did. May be dropped and called again.
    pub async fn next(&mut self) -> Result<CallEvent, Lost> {
        self.events.recv().await.ok_or(Lost)
    }

    /// Between two requests: asks for `Rested`.
    pub async fn rest(&self) -> Result<(), Lost> {
        self.link.send(&ToExecutor::Rest { id: self.id }).await
    }

    /// What feeds stdin.
    pub fn stdin(&self) -> Stdin {
        Stdin {
            id: self.id,
            link: self.link.clone(),
        }
    }

    /// SIGTERM now, SIGKILL after the grace.
    pub async fn kill(&self, grace: Duration) -> Result<(), Lost> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.link
            .send(&ToExecutor::Kill {
                id: self.id,
                grace_ms,
            })
            .await
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        lock(&self.link.calls).remove(&self.id);
    }
}

/// The writing end of a call's stdin.
#[derive(Debug)]
pub struct Stdin {
    id: CallId,
    link: Link,
}

impl Stdin {
    /// Sends a piece of at most [`frame::MAX_BLOB`] bytes.
    pub async fn write(&self, data: Vec<u8>, last: bool) -> Result<(), Lost> {
        let data = Blob(data);
        self.link
            .send(&ToExecutor::Stdin {
                id: self.id,
                data,
                last,
            })
            .await
    }

    /// Sends all of it and closes it.
    pub async fn write_all(&self, data: &[u8]) -> Result<(), Lost> {
        for piece in data.chunks(frame::MAX_BLOB) {
            self.write(piece.to_vec(), false).await?;
        }
        self.write(Vec::new(), true).await
    }
}

async fn write(mut queue: mpsc::Receiver<Vec<u8>>, mut writer: OwnedWriteHalf) {
    while let Some(bytes) = queue.recv().await {
        if let Err(error) = writer.write_all(&bytes).await {
            tracing::warn!(%error, "writing to the executor failed");
            return;
        }
    }
}

async fn read(mut reader: FrameReader<OwnedReadHalf>, calls: &Calls, cleared: &watch::Sender<u64>) {
    loop {
        match reader.next().await {
            Ok(Some(ToRuntime::Cleared { clean })) => {
                tracing::debug!(clean, "the shared folders of the sandbox");
                cleared.send_modify(|answers| *answers += 1);
            }
            Ok(Some(message)) => hand_out(message, calls).await,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "reading from the executor failed");
                return;
            }
        }
    }
}

async fn hand_out(message: ToRuntime, calls: &Calls) {
    let (id, event) = match message {
        ToRuntime::Output { id, stream, data } => (id, CallEvent::Output(stream, data.0)),
        ToRuntime::OutputFile { id, data, total, .. } => (id, CallEvent::OutputFile { data: data.0, total }),
        ToRuntime::Rested {
            id,
            peak_memory_bytes,
            cpu_ms,
            clean,
        } => (
            id,
            CallEvent::Rested {
                peak_memory_bytes,
                cpu_ms,
                clean,
            },
        ),
        ToRuntime::Ended(ended) => (ended.id, CallEvent::Ended(ended)),
        ToRuntime::Ready { .. } | ToRuntime::Refused { .. } | ToRuntime::Cleared { .. } => return,
    };
    let events = lock(calls).get(&id).cloned();
    if let Some(events) = events {
        // An error means that nobody waits for this call any more.
        let _ = events.send(event).await;
    }
}
