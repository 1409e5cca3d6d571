//! The runtime's life: one executor, one gateway, one attempt at a time.

use crate::attempt::{self, AttemptEnd, Context, Control, LastSchemas, Pool, Stop};
use crate::channel::{self, Event, Outbox, TlsError};
use crate::executor::{self, AcceptError};
use crate::probe::probe;
use crate::settings::Settings;
use crate::store::evidence::Evidence;
use crate::store::skills::Skills;
use crate::task::Task;
use agentrun_core::redact::Secrets;
use agentrun_protocol::channel::{Refusal, ToGateway};
use agentrun_protocol::exit;
use agentrun_protocol::result::AttemptResult;
use agentrun_protocol::work::{Assignment, AttemptId};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// What runs when the Pod is ended gets this long to end by itself.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// The gateway's wishes that wait to be looked at.
const EVENTS: usize = 16;

/// Why the runtime could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Its socket could not be made.
    #[error("the executor's socket could not be made")]
    Socket(#[from] io::Error),
    /// There is no executor.
    #[error(transparent)]
    Executor(#[from] AcceptError),
    /// The gateway's authority is of no use.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl ServeError {
    /// The exit code that tells the operator.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Socket(_) | Self::Tls(_) => exit::MISCONFIGURED,
            Self::Executor(_) => exit::EXECUTOR_REFUSED,
        }
    }
}

/// Serves until the executor is lost, the gateway refuses us, or `shutdown` returns. Gives back the exit code.
pub async fn serve(settings: Settings, shutdown: impl Future<Output = ()>) -> Result<u8, ServeError> {
    let trust = channel::trust(&settings.gateway.authorities)?;
    let listener = executor::bind(&settings.executor_socket)?;
    let outbox = Outbox::default();
    let (sender, events) = mpsc::channel(EVENTS);
    let mut shutdown = std::pin::pin!(shutdown);
    // Connecting and probing take their time while the executor starts.
    let _channel = Task::spawn(channel::run(
        settings.gateway.clone(),
        trust,
        outbox.clone(),
        sender,
    ));
    let (found, isolation) = watch::channel(None);
    let (targets, bound) = (settings.probe.clone(), settings.bounds.isolation);
    let _probe = Task::spawn(async move { found.send(Some(probe(&targets, bound).await)) });
    let (link, secrets) = tokio::select! {
        link = accept(listener, &settings) => link?,
        () = &mut shutdown => return Ok(exit::DONE),
    };
    outbox.ready();
    let context = Arc::new(Context {
        settings,
        link,
        secrets,
        outbox,
        isolation,
        skills: Skills::default(),
        warm: Pool::default(),
        schemas: LastSchemas::default(),
        volume_tested: AtomicBool::new(false),
    });
    let engine = Engine {
        context,
        running: None,
    };
    Ok(engine.run(events, shutdown).await)
}

async fn accept(
    listener: UnixListener,
    settings: &Settings,
) -> Result<(executor::Link, Secrets), AcceptError> {
    executor::accept(
        listener,
        &settings.executor_socket,
        &settings.sandbox,
        settings.bounds.executor,
    )
    .await
}

struct Engine {
    context: Arc<Context>,
    running: Option<Running>,
}

struct Running {
    id: AttemptId,
    stop: watch::Sender<Option<Stop>>,
    task: JoinHandle<AttemptEnd>,
}

impl Engine {
    async fn run(mut self, mut events: mpsc::Receiver<Event>, shutdown: impl Future<Output = ()>) -> u8 {
        let mut shutdown = std::pin::pin!(shutdown);
        let link = self.context.link.clone();
        loop {
            let step = tokio::select! {
                Some(event) = events.recv() => self.take(event).await,
                end = ended(&mut self.running) => self.finish(end),
                () = link.lost(), if self.running.is_none() => {
                    tracing::error!("the executor is lost while nothing runs");
                    Some(exit::EXECUTOR_LOST)
                }
                () = &mut shutdown => {
                    self.shut_down().await;
                    Some(exit::DONE)
                }
            };
            let Some(code) = step else { continue };
            self.farewell().await;
            return code;
        }
    }

    async fn take(&mut self, event: Event) -> Option<u8> {
        match event {
            Event::Assign(assignment) => self.assign(assignment).await,
            Event::Cancel { id, grace } => self.cancel(&id, grace),
            Event::Refused(Refusal::VersionSkew) => return Some(exit::VERSION_SKEW),
            Event::Refused(_) => return Some(exit::REFUSED),
        }
        None
    }

    async fn assign(&mut self, assignment: Box<Assignment>) {
        let id = assignment.id.clone();
        if let Some(running) = &self.running {
            if running.id == id {
                self.context.outbox.taken(id);
            } else {
                tracing::warn!(
                    uid = id.uid,
                    attempt = id.attempt,
                    "refused: another attempt is running"
                );
            }
            return;
        }
        if let Some(result) = self.stored(&assignment).await {
            tracing::info!(
                uid = id.uid,
                attempt = id.attempt,
                "this attempt has already ended"
            );
            self.post(id, result);
            return;
        }
        tracing::info!(
            subtask = assignment.subtask,
            task = assignment.task,
            attempt = id.attempt,
            "taken"
        );
        self.context.outbox.taken(id.clone());
        let (stop, control) = Control::new();
        let task = tokio::spawn(attempt::run(Arc::clone(&self.context), *assignment, control));
        self.running = Some(Running { id, stop, task });
    }

    async fn stored(&self, assignment: &Assignment) -> Option<AttemptResult> {
        let evidence = Evidence::new(&self.context.settings.folders.state, assignment).ok()?;
        crate::blocking(move || Ok(evidence.result())).await.ok()?
    }

    fn cancel(&self, id: &AttemptId, grace: Duration) {
        match &self.running {
            Some(running) if running.id == *id => {
                running.stop.send_replace(Some(Stop { grace }));
            }
            _ => tracing::info!(
                uid = id.uid,
                attempt = id.attempt,
                "cancelled, but it does not run here"
            ),
        }
    }

    fn finish(&mut self, (id, end): (AttemptId, AttemptEnd)) -> Option<u8> {
        match end {
            AttemptEnd::Result(result) => {
                self.post(id, *result);
                self.context.link.clear();
                None
            }
            AttemptEnd::ExecutorLost {
                stdout_tail,
                stderr_tail,
            } => {
                tracing::error!(uid = id.uid, attempt = id.attempt, "the executor is lost");
                let lost = ToGateway::ExecutorLost {
                    id: id.clone(),
                    stdout_tail,
                    stderr_tail,
                };
                self.context.outbox.post(id, lost);
                Some(exit::EXECUTOR_LOST)
            }
        }
    }

    fn post(&self, id: AttemptId, result: AttemptResult) {
        tracing::info!(uid = id.uid, attempt = id.attempt, ending = ?result.ending, reason = result.reason, "ended");
        let result = ToGateway::Result {
            id: id.clone(),
            result: Box::new(result),
        };
        self.context.outbox.post(id, result);
    }

    async fn shut_down(&mut self) {
        tracing::info!("told to end");
        let Some(running) = &self.running else { return };
        running.stop.send_replace(Some(Stop {
            grace: SHUTDOWN_GRACE,
        }));
        let end = ended(&mut self.running).await;
        self.finish(end);
    }

    async fn farewell(&self) {
        let drained = self.context.outbox.drained();
        if timeout(self.context.settings.bounds.farewell, drained)
            .await
            .is_err()
        {
            tracing::warn!("the last result was not acknowledged; it is stored");
        }
    }
}

/// The end of what runs; never, when nothing does. May be dropped and called again.
async fn ended(slot: &mut Option<Running>) -> (AttemptId, AttemptEnd) {
    let Some(running) = slot else {
        return std::future::pending().await;
    };
    let end = (&mut running.task).await;
    let id = running.id.clone();
    *slot = None;
    // A task that panicked leaves nothing to tell, like an executor that is gone.
    let lost = AttemptEnd::ExecutorLost {
        stdout_tail: String::new(),
        stderr_tail: String::new(),
    };
    (id, end.unwrap_or(lost))
}
