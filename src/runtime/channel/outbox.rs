//! What the runtime has to say, whether or not a connection is there.

use super::fit::fitting;
use super::questions::{Answered, ModelQuestion, Questions};
use crate::lock::lock;
use agentrun_protocol::agent::{CallPlace, Delegation, DelegationState};
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::chat::{ModelFailure, ModelFailureCode};
use agentrun_protocol::work::{AttemptId, FileRef};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, mpsc, oneshot};

/// Messages that may be lost and wait for the network; the oldest goes first when more come.
const PASSING: usize = 64;
/// The largest content that is taken over the channel, in bytes. ConfigMaps and objects hold at most
/// 1 to 1.5 MiB; claims are mounts.
pub(super) const MAX_CONTENT: u64 = 4 << 20;

/// A content could not be had.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FetchError {
    /// The gateway does not have it any more.
    #[error("the gateway has no such content: {0}")]
    Missing(String),
    /// It is longer or shorter than the assignment says.
    #[error("expected {expected} bytes, found {found}")]
    Length {
        /// Size by the assignment.
        expected: u64,
        /// Size that came, or so far.
        found: u64,
    },
    /// It is larger than what travels over the channel.
    #[error("{found} bytes are more than the {MAX_CONTENT} that travel over the channel; use a claim")]
    TooLarge {
        /// Size by the assignment.
        found: u64,
    },
}

type Fetched = Result<Arc<[u8]>, FetchError>;

/// Shared by everyone who has something to say and by the connection that says it.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
    acknowledged: Arc<Notify>,
    readied: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the gateway may be told that we are here.
    ready: bool,
    /// Whether a session takes messages.
    open: bool,
    /// Whether this session has brought an assignment. Before that a gateway knows no content to give.
    assigned: bool,
    /// For the session that is open now.
    passing: VecDeque<ToGateway>,
    /// The attempt that runs; a gateway is told of it with the hello.
    running: Option<AttemptId>,
    /// Ends of attempts, in order, until they are acknowledged.
    ends: Vec<(AttemptId, ToGateway)>,
    fetches: HashMap<String, Fetch>,
    questions: Questions,
}

/// The delegates of one turn. Dropping it ends no delegate; nobody hears of them any more.
#[derive(Debug)]
pub struct Delegates {
    outbox: Outbox,
    id: AttemptId,
    turn: u32,
    ends: mpsc::UnboundedReceiver<(CallPlace, DelegationState)>,
}

impl Delegates {
    /// The next one that is refused or has ended; `None` when there is none left. May be dropped and called again.
    pub async fn next(&mut self) -> Option<(CallPlace, DelegationState)> {
        self.ends.recv().await
    }
}

impl Drop for Delegates {
    fn drop(&mut self) {
        lock(&self.outbox.state).questions.forget(&self.id, self.turn);
    }
}

/// A model call that waits for its answer; dropping it tells the gateway that the answer is not wanted any more.
struct Asked<'a> {
    outbox: &'a Outbox,
    id: AttemptId,
    call: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let (id, call) = (self.id.clone(), self.call);
        let was_open = lock(&self.outbox.state).questions.withdraw(&id, call);
        if was_open {
            self.outbox.say(ToGateway::ModelCancel { id, call });
        }
    }
}

#[derive(Debug)]
struct Fetch {
    expected: u64,
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<Fetched>>,
}

impl Outbox {
    /// Says something once; lost when there is no connection.
    pub fn say(&self, message: ToGateway) {
        lock(&self.state).pass(message);
        self.changed.notify_one();
    }

    /// Says the end of attempt `id` until it is acknowledged. A repeat replaces the former. One that no frame can hold
    /// is said without what makes it so long.
    pub fn post(&self, id: AttemptId, message: ToGateway) {
        let message = fitting(message);
        {
            let mut state = lock(&self.state);
            state.running.take_if(|running| *running == id);
            state.ends.retain(|(known, _)| *known != id);
            state.ends.push((id, message.clone()));
            state.pass(message);
        }
        self.changed.notify_one();
    }

    /// Says that `id` is taken, and tells it to every later gateway until its end is posted.
    pub fn taken(&self, id: AttemptId) {
        lock(&self.state).running = Some(id.clone());
        self.say(ToGateway::Taken(id));
    }

    /// The attempt that runs.
    pub(super) fn running(&self) -> Option<AttemptId> {
        lock(&self.state).running.clone()
    }

    /// Lets connections say hello: from now on work can be done.
    pub fn ready(&self) {
        lock(&self.state).ready = true;
        self.readied.notify_waiters();
    }

    /// Returns when a connection may say hello.
    pub(super) async fn until_ready(&self) {
        loop {
            let change = self.readied.notified();
            if lock(&self.state).ready {
                return;
            }
            change.await;
        }
    }

    /// Returns when every end is acknowledged.
    pub async fn drained(&self) {
        loop {
            let change = self.acknowledged.notified();
            if lock(&self.state).ends.is_empty() {
                return;
            }
            change.await;
        }
    }

    /// Gets the content of `file`. The size is checked here, the digest by the caller.
    pub async fn fetch(&self, file: &FileRef) -> Fetched {
        if file.bytes > MAX_CONTENT {
            return Err(FetchError::TooLarge { found: file.bytes });
        }
        let (sender, receiver) = oneshot::channel();
        lock(&self.state).want(file, sender);
        self.changed.notify_one();
        receiver
            .await
            .unwrap_or_else(|_| Err(FetchError::Missing("the request was dropped".to_owned())))
    }

    /// Asks a model and waits for the answer, through all reconnects. Dropping the future withdraws the question.
    pub async fn ask(&self, question: ModelQuestion) -> Answered {
        let (sender, receiver) = oneshot::channel();
        let _asked = Asked {
            outbox: self,
            id: question.id.clone(),
            call: question.call,
        };
        lock(&self.state).questions.ask(question, sender);
        self.changed.notify_one();
        receiver.await.unwrap_or_else(|_| {
            Err(ModelFailure {
                code: ModelFailureCode::Unreachable,
                message: "the question was dropped".to_owned(),
            })
        })
    }

    /// Delegates the work of one turn of attempt `id`.
    pub fn delegate(&self, id: AttemptId, turn: u32, delegations: Vec<Delegation>) -> Delegates {
        let ends = lock(&self.state)
            .questions
            .delegate(id.clone(), turn, delegations);
        self.changed.notify_one();
        Delegates {
            outbox: self.clone(),
            id,
            turn,
            ends,
        }
    }

    /// Begins a session: all that must not be lost is to be said again.
    pub(super) fn open(&self) {
        let mut state = lock(&self.state);
        state.open = true;
        state.assigned = false;
        state.passing = state.ends.iter().map(|(_, message)| message.clone()).collect();
        state.questions.again();
        drop(state);
        self.changed.notify_one();
    }

    /// Ends a session: what may be lost is lost.
    pub(super) fn close(&self) {
        let mut state = lock(&self.state);
        state.open = false;
        state.passing.clear();
    }

    /// The next message to say.
    pub(super) async fn next(&self) -> ToGateway {
        loop {
            let change = self.changed.notified();
            if let Some(message) = lock(&self.state).next() {
                return message;
            }
            change.await;
        }
    }

    /// Takes what the gateway says about contents, ends and questions; gives back what is for others.
    pub(super) fn take(&self, message: ToRuntime) -> Option<ToRuntime> {
        match message {
            ToRuntime::Ack(id) => {
                lock(&self.state).ends.retain(|(known, _)| *known != id);
                self.acknowledged.notify_waiters();
            }
            ToRuntime::Chunk {
                sha256,
                offset,
                last,
                data,
            } => {
                lock(&self.state).chunk(&sha256, offset, last, &data.0);
            }
            ToRuntime::Missing { sha256, message } => {
                lock(&self.state).finish(&sha256, &Err(FetchError::Missing(message)));
            }
            ToRuntime::ModelAnswer { id, call, answer } => {
                lock(&self.state).questions.answered(&id, call, answer);
            }
            ToRuntime::Delegated { id, at, delegation } => {
                lock(&self.state).questions.delegated(&id, at, delegation);
            }
            assignment @ ToRuntime::Assign(_) => {
                lock(&self.state).ask_again();
                self.changed.notify_one();
                return Some(assignment);
            }
            other => return Some(other),
        }
        None
    }
}

impl State {
    /// Questions come after all else: they are long and can wait.
    fn next(&mut self) -> Option<ToGateway> {
        let passing = self.passing.pop_front();
        passing.or_else(|| self.questions.next())
    }

    fn pass(&mut self, message: ToGateway) {
        if !self.open {
            return;
        }
        let droppable = |message: &ToGateway| matches!(message, ToGateway::Progress { .. });
        if droppable(&message) && self.passing.len() >= PASSING {
            return;
        }
        self.passing.push_back(message);
    }

    fn want(&mut self, file: &FileRef, waiting: oneshot::Sender<Fetched>) {
        if let Some(fetch) = self.fetches.get_mut(&file.sha256) {
            fetch.waiting.push(waiting);
            return;
        }
        let fetch = Fetch {
            expected: file.bytes,
            bytes: Vec::new(),
            waiting: vec![waiting],
        };
        self.fetches.insert(file.sha256.clone(), fetch);
        if self.assigned {
            self.pass(ToGateway::Get {
                sha256: file.sha256.clone(),
            });
        }
    }

    /// Asks for what an earlier session did not bring.
    fn ask_again(&mut self) {
        if std::mem::replace(&mut self.assigned, true) {
            return;
        }
        for (sha256, fetch) in &mut self.fetches {
            fetch.bytes.clear();
            self.passing.push_back(ToGateway::Get {
                sha256: sha256.clone(),
            });
        }
    }

    fn chunk(&mut self, sha256: &str, offset: u64, last: bool, data: &[u8]) {
        let Some(fetch) = self.fetches.get_mut(sha256) else {
            return;
        };
        let had = fetch.bytes.len() as u64;
        if offset == had {
            fetch.bytes.extend_from_slice(data);
        }
        let found = fetch.bytes.len() as u64;
        let expected = fetch.expected;
        if offset != had || found > expected || (last && found != expected) {
            self.finish(sha256, &Err(FetchError::Length { expected, found }));
        } else if last {
            let bytes = std::mem::take(&mut fetch.bytes);
            self.finish(sha256, &Ok(bytes.into()));
        }
    }

    fn finish(&mut self, sha256: &str, fetched: &Fetched) {
        let Some(fetch) = self.fetches.remove(sha256) else {
            return;
        };
        for waiting in fetch.waiting {
            // An error means that the attempt ended meanwhile.
            let _ = waiting.send(fetched.clone());
        }
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
