//! The model calls of one stream: put together from their pieces, asked side by side, answered in any order. The stream's
//! end drops them; the runtime asks again elsewhere.

use super::ask::{Asked, Caller, ask};
use super::limits::{CALLER, CALLS};
use super::texts::Texts;
use crate::auth::PodIdentity;
use crate::bounds;
use crate::channel::{Outbox, SendError};
use crate::gateway::Gateway;
use crate::placement::placement;
use agentrun_protocol::agent::Spent;
use agentrun_protocol::channel::{MAX_MODEL_REQUEST, ToRuntime};
use agentrun_protocol::chat::{ModelAnswer, ModelFailure, ModelFailureCode, ModelRequest};
use agentrun_protocol::work::AttemptId;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tracing::Instrument as _;

/// A piece of a call, as a runtime says it.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The attempt that asks.
    pub(crate) id: AttemptId,
    /// Number of the call.
    pub(crate) call: u64,
    /// No piece follows.
    pub(crate) last: bool,
    /// Bytes of the request.
    pub(crate) data: Vec<u8>,
    /// What the agent has used.
    pub(crate) spent: Spent,
}

type Key = (AttemptId, u64);

/// The calls of one stream.
#[derive(Debug)]
pub(crate) struct Calls {
    gateway: Arc<Gateway>,
    pod: PodIdentity,
    outbox: Outbox,
    open: HashMap<Key, Open>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
enum Open {
    /// Pieces are still to come.
    Collecting(Collected),
    /// It was refused; the rest of its pieces is passed over.
    Refused,
    /// A model is asked.
    Asked(AbortHandle),
}

#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    /// The room that the bytes take in this gateway, for as long as they are needed.
    room: Option<OwnedSemaphorePermit>,
}

impl Calls {
    pub(crate) fn new(gateway: Arc<Gateway>, pod: PodIdentity, outbox: Outbox) -> Self {
        Self {
            gateway,
            pod,
            outbox,
            open: HashMap::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Takes a piece. A call that is being asked already goes on: the runtime repeats only what it got no answer to.
    pub(crate) fn piece(&mut self, piece: Piece) {
        self.forget_the_answered();
        let key = (piece.id.clone(), piece.call);
        let collected = match self.open.remove(&key) {
            None if self.open.len() >= CALLS => {
                let message = format!("the sandbox asks for more than {CALLS} answers at once: wait for one");
                return self.refuse(key, piece.last, ModelFailureCode::Refused, message);
            }
            None => Collected::default(),
            Some(Open::Collecting(collected)) => collected,
            Some(open @ Open::Asked(_)) => {
                self.open.insert(key, open);
                return;
            }
            Some(Open::Refused) => {
                if !piece.last {
                    self.open.insert(key, Open::Refused);
                }
                return;
            }
        };
        match self.collect(collected, &piece.data) {
            Err((code, message)) => self.refuse(key, piece.last, code, message),
            Ok(collected) if piece.last => self.ask(key, collected, piece.spent),
            Ok(collected) => {
                self.open.insert(key, Open::Collecting(collected));
            }
        }
    }

    /// Gives a call up.
    pub(crate) fn cancel(&mut self, id: &AttemptId, call: u64) {
        self.forget_the_answered();
        if let Some(Open::Asked(task)) = self.open.remove(&(id.clone(), call)) {
            task.abort();
        }
    }

    fn collect(
        &self,
        mut collected: Collected,
        data: &[u8],
    ) -> Result<Collected, (ModelFailureCode, String)> {
        let length = collected.bytes.len() + data.len();
        if length > MAX_MODEL_REQUEST {
            let message = format!("the conversation has more than {MAX_MODEL_REQUEST} bytes: shorten it");
            return Err((ModelFailureCode::ContextTooLong, message));
        }
        let Some(room) = self.gateway.models.room(data.len()) else {
            let message =
                "the gateway serves as many conversations as it has memory for: ask later".to_owned();
            return Err((ModelFailureCode::RateLimited, message));
        };
        match &mut collected.room {
            Some(held) => held.merge(room),
            none => *none = Some(room),
        }
        collected.bytes.extend_from_slice(data);
        Ok(collected)
    }

    fn refuse(&mut self, key: Key, last: bool, code: ModelFailureCode, message: String) {
        let (id, call) = key.clone();
        if !last {
            self.open.insert(key, Open::Refused);
        }
        let outbox = self.outbox.clone();
        self.tasks.spawn(async move {
            let failure = ModelFailure { code, message };
            let _ = outbox.send(&answer(id, call, Err(failure))).await;
        });
    }

    fn ask(&mut self, key: Key, collected: Collected, spent: Spent) {
        let (id, call) = key.clone();
        let (gateway, pod) = (Arc::clone(&self.gateway), self.pod.clone());
        let outbox = self.outbox.clone();
        let span = tracing::info_span!("model call", subtask_uid = id.uid, attempt = id.attempt, call);
        let asking = async move {
            let mut texts = Texts::of(outbox.clone(), id.clone(), call);
            let answered = answered(&gateway, &pod, &id, collected, spent, &mut texts).await;
            let went_out = outbox
                .send(&answer(id.clone(), call, answered.map(Box::new)))
                .await;
            if let Err(SendError::Encode(_)) = went_out {
                let failure = ModelFailure {
                    code: ModelFailureCode::BadAnswer,
                    message: "the answer is longer than a message of the channel: ask for less".to_owned(),
                };
                let _ = outbox.send(&answer(id, call, Err(failure))).await;
            }
        };
        let task = self.tasks.spawn(asking.instrument(span));
        self.open.insert(key, Open::Asked(task));
    }

    fn forget_the_answered(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        self.open
            .retain(|_, open| !matches!(open, Open::Asked(task) if task.is_finished()));
    }
}

fn answer(id: AttemptId, call: u64, answer: Result<Box<ModelAnswer>, ModelFailure>) -> ToRuntime {
    ToRuntime::ModelAnswer { id, call, answer }
}

async fn answered(
    gateway: &Gateway,
    pod: &PodIdentity,
    id: &AttemptId,
    collected: Collected,
    spent: Spent,
    texts: &mut Texts,
) -> Result<ModelAnswer, ModelFailure> {
    let Collected { bytes, room } = collected;
    let request: ModelRequest = serde_json::from_slice(&bytes).map_err(|error| ModelFailure {
        code: ModelFailureCode::Refused,
        message: format!("the runtime's request is none: {error}"),
    })?;
    let length = bytes.len();
    drop(bytes);
    let caller = caller(gateway, pod, id).await.ok_or_else(|| ModelFailure {
        code: ModelFailureCode::Refused,
        message: format!("attempt {} of the sub-task does not run in this Pod", id.attempt),
    })?;
    let asked = Asked {
        request: Arc::new(request),
        bytes: length,
        spent,
    };
    let answered = ask(gateway, &caller, &asked, texts).await;
    drop(room);
    answered
}

/// Whose call it is. The watches get a moment to show it: the runtime may have its work from another gateway.
async fn caller(gateway: &Gateway, pod: &PodIdentity, id: &AttemptId) -> Option<Caller> {
    let latest = Instant::now() + CALLER;
    loop {
        if let Some(live) = gateway.board().live(&id.uid)
            && placement(&live.subtask).is_some_and(|(pod_uid, placed)| pod_uid == pod.uid && placed == *id)
            && let Some(run) = live.run
        {
            let subtask = live.subtask;
            return Some(Caller { subtask, run });
        }
        if Instant::now() >= latest {
            return None;
        }
        tokio::time::sleep(bounds::RETRY).await;
    }
}
