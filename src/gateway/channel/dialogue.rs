//! What is said to one runtime, and why.

use super::outbox::{Outbox, SendError};
use super::session::SessionError;
use super::work::{Action, Stage, Work};
use crate::assignment::NotAssignable;
use crate::auth::PodIdentity;
use crate::board::Live;
use crate::bounds;
use crate::contents::{Source, chunks, fetch};
use crate::delegation::{self, Told};
use crate::ends::{Key, Report, Stored, store};
use crate::gateway::Gateway;
use crate::inspection;
use crate::models::{Calls, Piece};
use crate::placement::placement;
use crate::prepare::{Prepared, prepare};
use agentrun_protocol::agent::CallPlace;
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::inspection::SkillFound;
use agentrun_protocol::work::AttemptId;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

/// What a job of a stream ended with.
pub(super) enum Done {
    Prepared(Box<Live>, Result<Box<Prepared>, NotAssignable>),
    Stored {
        id: AttemptId,
        stored: Stored,
        acknowledge: bool,
    },
    Sent(Result<(), SendError>),
    /// What became of the delegations of an attempt.
    Asked(AttemptId, Vec<(CallPlace, delegation::Answer)>),
    /// Whether the attempt that the runtime speaks of is its own; `None` when that could not be found out.
    Checked(AttemptId, Option<bool>),
}

/// One side of the talk with a runtime: what it was told, and what is under way for it.
pub(super) struct Dialogue {
    gateway: Arc<Gateway>,
    pod: PodIdentity,
    outbox: Outbox,
    work: Work,
    jobs: JoinSet<Done>,
    calls: Calls,
    delegations: Told,
    gets: VecDeque<String>,
    sending: bool,
    /// What the runtime had taken from an earlier stream: what has changed since does not end it.
    resumed: Option<AttemptId>,
}

impl Dialogue {
    pub(super) fn new(gateway: Arc<Gateway>, pod: PodIdentity, outbox: Outbox) -> Self {
        let calls = Calls::new(Arc::clone(&gateway), pod.clone(), outbox.clone());
        Self {
            gateway,
            pod,
            outbox,
            calls,
            work: Work::default(),
            jobs: JoinSet::new(),
            delegations: Told::default(),
            gets: VecDeque::new(),
            sending: false,
            resumed: None,
        }
    }

    /// Whether an assignment or a delegation waits for something and must be tried again.
    pub(super) fn is_waiting(&self) -> bool {
        self.work.is_waiting() || self.delegations.is_waiting()
    }

    /// Where messages go.
    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The next job that ends. A job that was aborted ends nothing.
    pub(super) async fn job(&mut self) -> Option<Done> {
        loop {
            if let Ok(done) = self.jobs.join_next().await? {
                return Some(done);
            }
        }
    }

    /// Takes up an attempt that the runtime brought along, or ends it if the objects do not say that it runs here.
    pub(super) fn resume(&mut self, id: AttemptId) {
        self.check(id.clone());
        self.resumed = Some(id);
    }

    /// Compares the board with what the runtime has been told.
    pub(super) async fn look(&mut self) -> Result<(), SessionError> {
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
        let news = self.delegations.look(&self.gateway.board());
        self.say(news).await?;
        self.delegate();
        Ok(())
    }

    async fn say(&self, messages: Vec<ToRuntime>) -> Result<(), SessionError> {
        for message in messages {
            self.outbox.send(&message).await?;
        }
        Ok(())
    }

    /// Sees to the delegations that have no answer yet.
    fn delegate(&mut self) {
        for (id, known, asks) in self.delegations.next() {
            let (gateway, pod_uid) = (Arc::clone(&self.gateway), self.pod.uid.clone());
            self.jobs.spawn(async move {
                let answers = delegation::ask(&gateway, &pod_uid, &id, &known, &asks).await;
                Done::Asked(id, answers)
            });
        }
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

    /// Takes a message.
    pub(super) async fn hear(&mut self, message: ToGateway) -> Result<(), SessionError> {
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
            ToGateway::Skill { id, found } => self.inspected(id, found),
            ToGateway::Get { sha256 } => self.get(sha256).await?,
            ToGateway::ModelCall {
                id,
                call,
                last,
                data,
                spent,
            } => {
                self.check(id.clone());
                self.calls.piece(Piece {
                    id,
                    call,
                    last,
                    data: data.0,
                    spent,
                });
            }
            ToGateway::ModelCancel { id, call } => self.calls.cancel(&id, call),
            ToGateway::Delegate { id, mut delegations } => {
                self.check(id.clone());
                delegations.truncate(bounds::DELEGATIONS);
                let known = self.delegations.hear(&id, delegations, &self.gateway.board());
                self.say(known).await?;
                self.delegate();
            }
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

    /// Stores what an inspecting Pod found, in a task that outlives this stream.
    fn inspected(&mut self, id: AttemptId, found: SkillFound) {
        let (gateway, pod) = (Arc::clone(&self.gateway), self.pod.clone());
        let report = id.clone();
        let storing = async move { inspection::store(&gateway, &pod, &report, found).await };
        let storing = self.gateway.tasks.spawn(storing);
        self.jobs.spawn(async move {
            let stored = storing.await.unwrap_or(Stored::GivenUp);
            Done::Stored {
                id,
                stored,
                acknowledge: true,
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

    /// Takes the end of a job.
    pub(super) async fn finish(&mut self, done: Done) -> Result<(), SessionError> {
        match done {
            Done::Prepared(live, Ok(prepared)) => self.assign(&live, *prepared).await,
            Done::Prepared(live, Err(_)) if self.resumed.as_ref() == Some(&live.id) => {
                self.work.resume(live.id, Timestamp::now());
                self.look().await
            }
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
            Done::Asked(id, answers) => {
                let news = self.delegations.answered(&id, answers, &self.gateway.board());
                self.say(news).await
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
        if let Some(reason) = or_else.filter(|_| since.elapsed() >= bounds::REFERENCE) {
            let message = format!("{what} did not come in {} s", bounds::REFERENCE.as_secs());
            self.store(id, Report::unassignable(reason, &message), false);
        } else {
            tracing::debug!(
                subtask_uid = id.uid,
                attempt = id.attempt,
                what,
                "assignment waits"
            );
            self.work.set(id, Stage::Waiting { since });
        }
    }

    async fn acknowledge(&self, id: AttemptId, stored: Stored, wanted: bool) -> Result<(), SessionError> {
        match (stored, wanted) {
            (Stored::GivenUp, _) => Err(SessionError::NotStored),
            (Stored::Written | Stored::Dropped, true) => Ok(self.outbox.send(&ToRuntime::Ack(id)).await?),
            // Should the runtime have it all the same, from a gateway before this one, it must not go on.
            (Stored::Written | Stored::Dropped, false) => self.cancel(id).await,
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
