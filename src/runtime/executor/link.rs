//! Calls over the executor's connection.

use crate::frames::FrameReader;
use crate::lock::lock;
use agentrun_protocol::Blob;
use agentrun_protocol::executor::{CallId, Ended, Exec, Stream, ToExecutor, ToRuntime};
use agentrun_protocol::frame;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};

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
    /// All of the answer was sent, and the private temp folder is empty.
    Rested {
        /// Largest resident size since it last rested, in bytes.
        peak_memory_bytes: u64,
        /// Processor time since the start, in milliseconds.
        cpu_ms: u64,
        /// All its processes are stopped.
        still: bool,
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
}

impl Link {
    pub(super) fn start(reader: FrameReader<OwnedReadHalf>, writer: OwnedWriteHalf) -> Self {
        let calls = Calls::default();
        let (queue, queued) = mpsc::channel(WRITES);
        let (end, lost) = watch::channel(false);
        tokio::spawn(write(queued, writer));
        let known = Arc::clone(&calls);
        tokio::spawn(async move {
            read(reader, &known).await;
            // Order matters: a call that registers after this sees `lost`.
            end.send_replace(true);
            lock(&known).clear();
        });
        Link {
            calls,
            next: Arc::new(AtomicU64::new(1)),
            queue,
            lost,
        }
    }

    /// Starts a program. `exec.id` is replaced.
    pub async fn call(&self, mut exec: Exec) -> Result<Call, Lost> {
        exec.id = self.next.fetch_add(1, Ordering::Relaxed);
        let id = exec.id;
        let (events, receiver) = mpsc::channel(EVENTS);
        lock(&self.calls).insert(id, events);
        let call = Call {
            id,
            events: receiver,
            link: self.clone(),
        };
        if *self.lost.borrow() {
            return Err(Lost);
        }
        self.send(&ToExecutor::Exec(Box::new(exec))).await?;
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

async fn read(mut reader: FrameReader<OwnedReadHalf>, calls: &Calls) {
    loop {
        match reader.next().await {
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
            still,
        } => (
            id,
            CallEvent::Rested {
                peak_memory_bytes,
                cpu_ms,
                still,
            },
        ),
        ToRuntime::Ended(ended) => (ended.id, CallEvent::Ended(ended)),
        ToRuntime::Ready { .. } | ToRuntime::Refused { .. } => return,
    };
    let events = lock(calls).get(&id).cloned();
    if let Some(events) = events {
        // An error means that nobody waits for this call any more.
        let _ = events.send(event).await;
    }
}
