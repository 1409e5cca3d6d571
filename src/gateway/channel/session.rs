//! One runtime's stream, from its hello to its end.

use super::inbox::{Inbox, ReceiveError};
use super::outbox::{Outbox, SendError};
use super::work::{Action, Stage, Work};
use crate::assignment::NotAssignable;
use crate::auth::PodIdentity;
use crate::board::Live;
use crate::bounds;
use crate::contents::{Source, chunks, fetch};
use crate::ends::{Key, Report, Stored, store};
use crate::gateway::Gateway;
use crate::placement::placement;
use crate::prepare::{Prepared, prepare};
use crate::text::chain;
use agentrun_protocol::channel::{IDLE_MS, PING_MS, Refusal, ToGateway, ToRuntime};
use agentrun_protocol::version::{self, Version};
use agentrun_protocol::work::AttemptId;
use bytes::Bytes;
use http_body::Body;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

/// Why a stream ended, other than by the runtime's own wish.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("the runtime said no hello in {} s", bounds::HELLO.as_secs())]
    NoHello,
    #[error("the first message is no hello")]
    NotHello,
    #[error("the runtime said nothing for {} s", IDLE_MS / 1000)]
    Idle,
    #[error("the runtime asked for more than {} contents at once", bounds::GETS)]
    TooManyGets,
    /// Ends the stream, so that the runtime reports again.
    #[error("the end of an attempt could not be stored")]
    NotStored,
}

/// Serves one stream to its end.
pub(crate) async fn serve<B>(gateway: Arc<Gateway>, pod: PodIdentity, body: B, outbox: Outbox)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let span = tracing::info_span!(
        "channel",
        namespace = pod.namespace,
        pod = pod.name,
        pod_uid = pod.uid
    );
    let mut inbox = Inbox::new(body);
    async move {
        match run(gateway, pod, &mut inbox, outbox).await {
            Ok(()) => tracing::info!("channel closed"),
            Err(error) => {
                tracing::warn!(error = chain(&error), "channel broken");
            }
        }
    }
    .instrument(span)
    .await;
}

async fn run<B>(
    gateway: Arc<Gateway>,
    pod: PodIdentity,
    inbox: &mut Inbox<B>,
    outbox: Outbox,
) -> Result<(), SessionError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let protocol = tokio::select! {
        protocol = hello(inbox, &outbox) => protocol?,
        () = gateway.stop.cancelled() => return Ok(()),
    };
    if !protocol.is_served() {
        let message = format!(
            "protocol {protocol} is not served here, this gateway speaks {}",
            version::CURRENT
        );
        return refuse(&gateway, &outbox, Refusal::VersionSkew, message).await;
    }
    outbox
        .send(&ToRuntime::Welcome {
            protocol: version::CURRENT,
        })
        .await?;
    let mut registration = gateway.streams.register(&pod.uid);
    let _connected = Connected::count(&gateway);
    tracing::info!(%protocol, "runtime connected");
    let mut session = Session::new(Arc::clone(&gateway), pod, outbox);
    session.look().await?;
    let mut heard = Instant::now();
    loop {
        let retry = if session.work.is_waiting() {
            bounds::RETRY
        } else {
            Duration::MAX
        };
        tokio::select! {
            message = inbox.next() => {
                heard = Instant::now();
                match message? {
                    Some(message) => session.hear(message).await?,
                    None => return Ok(()),
                }
            }
            _ = registration.signals.changed() => {
                if registration.signals.borrow_and_update().superseded {
                    let message = "a newer connection of this Pod took over".to_owned();
                    return refuse(&gateway, &session.outbox, Refusal::Superseded, message).await;
                }
                session.look().await?;
            }
            Some(Ok(done)) = session.jobs.join_next() => session.finish(done).await?,
            () = tokio::time::sleep(retry) => session.look().await?,
            () = tokio::time::sleep_until(heard + Duration::from_millis(IDLE_MS)) => {
                return Err(SessionError::Idle);
            }
            () = gateway.stop.cancelled() => return Ok(()),
        }
    }
}

/// Waits for the hello, which comes when the executor answers: after the image of the sandbox is pulled. Until then the
/// stream is kept alive from here.
async fn hello<B>(inbox: &mut Inbox<B>, outbox: &Outbox) -> Result<Version, SessionError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let latest = Instant::now() + bounds::HELLO;
    loop {
        tokio::select! {
            first = inbox.next() => return match first? {
                Some(ToGateway::Hello { protocol, .. }) => Ok(protocol),
                _ => Err(SessionError::NotHello),
            },
            () = tokio::time::sleep(Duration::from_millis(PING_MS)) => outbox.send(&ToRuntime::Pong).await?,
            () = tokio::time::sleep_until(latest) => return Err(SessionError::NoHello),
        }
    }
}

async fn refuse(
    gateway: &Gateway,
    outbox: &Outbox,
    code: Refusal,
    message: String,
) -> Result<(), SessionError> {
    let label = match code {
        Refusal::VersionSkew => "VersionSkew",
        Refusal::Unauthenticated => "Unauthenticated",
        Refusal::Superseded => "Superseded",
    };
    gateway.metrics.refusals.with_label_values(&[label]).inc();
    tracing::info!(message, "runtime refused");
    Ok(outbox.send(&ToRuntime::Refused { code, message }).await?)
}

/// Counts a connected runtime for as long as it lives.
struct Connected(prometheus::IntGauge);

impl Connected {
    fn count(gateway: &Gateway) -> Self {
        gateway.metrics.runtimes.inc();
        Self(gateway.metrics.runtimes.clone())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// What a job of a stream ended with.
enum Done {
    Prepared(Box<Live>, Result<Box<Prepared>, NotAssignable>),
    Stored {
        id: AttemptId,
        stored: Stored,
        acknowledge: bool,
    },
    Sent(Result<(), SendError>),
    /// Whether the attempt that the runtime speaks of is its own; `None` when that could not be found out.
    Checked(AttemptId, Option<bool>),
}

struct Session {
    gateway: Arc<Gateway>,
    pod: PodIdentity,
    outbox: Outbox,
    work: Work,
    jobs: JoinSet<Done>,
    gets: VecDeque<String>,
    sending: bool,
}

impl Session {
    fn new(gateway: Arc<Gateway>, pod: PodIdentity, outbox: Outbox) -> Self {
        Self {
            gateway,
            pod,
            outbox,
            work: Work::default(),
            jobs: JoinSet::new(),
            gets: VecDeque::new(),
            sending: false,
        }
    }

    /// Compares the board with what the runtime has been told.
    async fn look(&mut self) -> Result<(), SessionError> {
        let live = self.gateway.board().work_of(&self.pod.uid);
        for action in self.work.consider(live, Instant::now()) {
            match action {
                Action::Prepare(live) => {
                    let gateway = Arc::clone(&self.gateway);
                    self.jobs.spawn(async move {
                        let prepared = prepare(&gateway, &live).await.map(Box::new);
                        Done::Prepared(live, prepared)
                    });
                }
                Action::Cancel(id) => self.cancel(id).await?,
            }
        }
        Ok(())
    }

    async fn cancel(&self, id: AttemptId) -> Result<(), SessionError> {
        tracing::info!(subtask_uid = id.uid, attempt = id.attempt, "attempt cancelled");
        Ok(self
            .outbox
            .send(&ToRuntime::Cancel {
                id,
                grace_ms: bounds::CANCEL_GRACE_MS,
            })
            .await?)
    }

    async fn hear(&mut self, message: ToGateway) -> Result<(), SessionError> {
        match message {
            ToGateway::Hello { .. } => {}
            ToGateway::Ping => self.outbox.send(&ToRuntime::Pong).await?,
            ToGateway::Taken(id) => {
                tracing::info!(subtask_uid = id.uid, attempt = id.attempt, "attempt taken");
                self.check(id);
            }
            ToGateway::Progress { id, .. } => self.check(id),
            ToGateway::Result { id, result } => self.store(id, (*result).into(), true),
            ToGateway::ExecutorLost {
                id,
                stdout_tail,
                stderr_tail,
            } => {
                tracing::warn!(subtask_uid = id.uid, attempt = id.attempt, "executor lost");
                self.store(id, Report::lost(&stdout_tail, &stderr_tail), true);
            }
            ToGateway::Get { sha256 } => self.get(sha256).await?,
        }
        Ok(())
    }

    /// A runtime that works on what this stream did not assign has it from a gateway before, or should not have it any
    /// more: the object knows.
    fn check(&mut self, id: AttemptId) {
        if self.work.stage(&id).is_some() {
            return;
        }
        let gateway = Arc::clone(&self.gateway);
        let pod = self.pod.clone();
        self.jobs.spawn(async move {
            let own = is_placed(&gateway, &id, &pod).await.ok();
            Done::Checked(id, own)
        });
    }

    /// Stores an end in a task that outlives this stream: the runtime may be on its way out.
    fn store(&mut self, id: AttemptId, report: Report, acknowledge: bool) {
        let waited = match self.work.stage(&id) {
            Some(Stage::Ending) => return,
            Some(Stage::Assigned { at, .. }) => self.waited(&id, *at),
            _ => None,
        };
        self.work.set(id.clone(), Stage::Ending);
        let gateway = Arc::clone(&self.gateway);
        let namespace = self.pod.namespace.clone();
        let key = Key {
            id: id.clone(),
            pod_uid: self.pod.uid.clone(),
            waited,
        };
        let span = tracing::info_span!("end", subtask_uid = id.uid, attempt = id.attempt);
        let storing = async move { store(&gateway, &namespace, &key, report).await };
        let storing = self.gateway.tasks.spawn(storing.instrument(span));
        self.jobs.spawn(async move {
            let stored = storing.await.unwrap_or(Stored::GivenUp);
            Done::Stored {
                id,
                stored,
                acknowledge,
            }
        });
    }

    /// How long the operator's assignment had waited when it went out at `at`.
    fn waited(&self, id: &AttemptId, at: Timestamp) -> Option<jiff::SignedDuration> {
        let live = self.gateway.board().live(&id.uid).filter(|live| live.id == *id)?;
        let attempts = &live.subtask.status.as_ref()?.attempts;
        let attempt = attempts.iter().find(|attempt| attempt.number == id.attempt)?;
        Some(at.duration_since(attempt.started.as_ref()?.0))
    }

    async fn get(&mut self, sha256: String) -> Result<(), SessionError> {
        if self.gets.len() >= bounds::GETS {
            return Err(SessionError::TooManyGets);
        }
        self.gets.push_back(sha256);
        self.next_get().await
    }

    /// Sends one content at a time, so that a slow runtime costs one content of memory.
    async fn next_get(&mut self) -> Result<(), SessionError> {
        while !self.sending {
            let Some(sha256) = self.gets.pop_front() else {
                return Ok(());
            };
            let Some(source) = self.work.source(&sha256).cloned() else {
                let message = "no assignment of this connection names this digest".to_owned();
                self.outbox.send(&ToRuntime::Missing { sha256, message }).await?;
                continue;
            };
            self.sending = true;
            let gateway = Arc::clone(&self.gateway);
            let outbox = self.outbox.clone();
            self.jobs
                .spawn(async move { Done::Sent(send_content(&gateway, &outbox, &source, &sha256).await) });
        }
        Ok(())
    }

    async fn finish(&mut self, done: Done) -> Result<(), SessionError> {
        match done {
            Done::Prepared(live, Ok(prepared)) => self.assign(&live, *prepared).await,
            Done::Prepared(live, Err(NotAssignable::Wait { what, or_else })) => {
                self.wait(live.id, &what, or_else);
                Ok(())
            }
            Done::Prepared(live, Err(NotAssignable::Never { reason, message })) => {
                self.store(live.id, Report::unassignable(reason, &message), false);
                Ok(())
            }
            Done::Stored {
                id,
                stored,
                acknowledge,
            } => self.acknowledge(id, stored, acknowledge).await,
            Done::Sent(sent) => {
                sent?;
                self.sending = false;
                self.next_get().await
            }
            Done::Checked(id, Some(false)) if self.work.stage(&id).is_none() => self.cancel(id).await,
            Done::Checked(..) => Ok(()),
        }
    }

    async fn assign(&mut self, live: &Live, prepared: Prepared) -> Result<(), SessionError> {
        if !matches!(self.work.stage(&live.id), Some(Stage::Preparing { .. })) {
            return Ok(());
        }
        let Prepared { assignment, allowed } = prepared;
        tracing::info!(
            run_uid = assignment.run_uid,
            subtask = assignment.subtask,
            subtask_uid = live.id.uid,
            attempt = live.id.attempt,
            "attempt assigned"
        );
        let at = Timestamp::now();
        self.work.set(
            live.id.clone(),
            Stage::Assigned {
                at,
                allowed,
                cancelled: false,
            },
        );
        match self.outbox.send(&ToRuntime::Assign(Box::new(assignment))).await {
            Err(SendError::Encode(_)) => {
                let message = "the assignment is longer than a message: use fewer files or a smaller input";
                self.store(live.id.clone(), Report::unassignable("Invalid", message), false);
                Ok(())
            }
            // The board may have changed while the assignment was made.
            sent => {
                sent?;
                self.look().await
            }
        }
    }

    fn wait(&mut self, id: AttemptId, what: &str, or_else: Option<&'static str>) {
        let Some(since) = self.work.stage(&id).and_then(Stage::since) else {
            return;
        };
        match or_else.filter(|_| since.elapsed() >= bounds::REFERENCE) {
            Some(reason) => {
                let message = format!("{what} did not come in {} s", bounds::REFERENCE.as_secs());
                self.store(id, Report::unassignable(reason, &message), false);
            }
            None => {
                tracing::debug!(
                    subtask_uid = id.uid,
                    attempt = id.attempt,
                    what,
                    "assignment waits"
                );
                self.work.set(id, Stage::Waiting { since });
            }
        }
    }

    async fn acknowledge(&self, id: AttemptId, stored: Stored, wanted: bool) -> Result<(), SessionError> {
        match (stored, wanted) {
            (Stored::GivenUp, _) => Err(SessionError::NotStored),
            (Stored::Written | Stored::Dropped, true) => Ok(self.outbox.send(&ToRuntime::Ack(id)).await?),
            (Stored::Written | Stored::Dropped, false) => Ok(()),
        }
    }
}

async fn send_content(
    gateway: &Gateway,
    outbox: &Outbox,
    source: &Source,
    sha256: &str,
) -> Result<(), SendError> {
    match fetch(gateway, source, sha256).await {
        Ok(bytes) => {
            for chunk in chunks(sha256, &bytes) {
                outbox.send(&chunk).await?;
            }
            Ok(())
        }
        Err(message) => {
            tracing::warn!(sha256, message, "content missing");
            outbox
                .send(&ToRuntime::Missing {
                    sha256: sha256.to_owned(),
                    message,
                })
                .await
        }
    }
}

/// Whether the object says that this attempt runs in this Pod.
async fn is_placed(gateway: &Gateway, id: &AttemptId, pod: &PodIdentity) -> Result<bool, kube::Error> {
    let known = gateway.board().name_of(&id.uid);
    let name = match known {
        Some(name) => Some(name),
        None => gateway.objects.find_subtask(&pod.namespace, &id.uid).await?,
    };
    let Some(name) = name else { return Ok(false) };
    let subtask = gateway.objects.subtask(&name).await?;
    Ok(subtask.is_some_and(|subtask| {
        placement(&subtask).is_some_and(|(pod_uid, placed)| pod_uid == pod.uid && placed == *id)
    }))
}
