//! Questions that stay open, through all reconnects, until the gateway has answered them: calls of a model, and
//! delegations.

use agentrun_protocol::Blob;
use agentrun_protocol::agent::{CallPlace, Delegation, DelegationState, Spent};
use agentrun_protocol::channel::ToGateway;
use agentrun_protocol::chat::{ModelAnswer, ModelFailure};
use agentrun_protocol::frame::{MAX_BLOB, MAX_FRAME};
use agentrun_protocol::work::AttemptId;
use std::collections::HashSet;
use tokio::sync::{mpsc, oneshot};

/// Bytes of delegations that are said in one message; a frame has room for some more.
const MAX_DELEGATIONS: usize = MAX_FRAME - 64 * 1024;

/// What a call of a model brought.
pub type Answered = Result<Box<ModelAnswer>, ModelFailure>;

/// A call of a model.
#[derive(Debug)]
pub struct ModelQuestion {
    /// The attempt that asks.
    pub id: AttemptId,
    /// Number of the call, new for every request of the attempt.
    pub call: u64,
    /// The request as JSON, at most [`agentrun_protocol::channel::MAX_MODEL_REQUEST`] bytes.
    pub request: Vec<u8>,
    /// What the agent had used before.
    pub spent: Spent,
}

/// All open questions, in the order in which they were asked.
#[derive(Debug, Default)]
pub(super) struct Questions {
    calls: Vec<OpenCall>,
    turns: Vec<OpenTurn>,
}

#[derive(Debug)]
struct OpenCall {
    question: ModelQuestion,
    /// Where the next piece begins; none when all of it was said.
    next: Option<usize>,
    answer: oneshot::Sender<Answered>,
}

#[derive(Debug)]
struct OpenTurn {
    id: AttemptId,
    turn: u32,
    /// The turn's delegations, as many at once as fit a message.
    messages: Vec<Vec<Delegation>>,
    /// The next message to say.
    next: usize,
    /// Those that have neither been refused nor ended.
    open: HashSet<CallPlace>,
    ends: mpsc::UnboundedSender<(CallPlace, DelegationState)>,
}

impl Questions {
    /// A new session: all of it is to be said again.
    pub(super) fn again(&mut self) {
        for call in &mut self.calls {
            call.next = Some(0);
        }
        for turn in &mut self.turns {
            turn.next = 0;
        }
    }

    pub(super) fn ask(&mut self, question: ModelQuestion, answer: oneshot::Sender<Answered>) {
        self.calls.push(OpenCall {
            question,
            next: Some(0),
            answer,
        });
    }

    /// Forgets a call. Whether it was open.
    pub(super) fn withdraw(&mut self, id: &AttemptId, call: u64) -> bool {
        self.remove(id, call).is_some()
    }

    pub(super) fn answered(&mut self, id: &AttemptId, call: u64, answer: Answered) {
        if let Some(open) = self.remove(id, call) {
            // An error means that nobody waits for it any more.
            let _ = open.answer.send(answer);
        }
    }

    fn remove(&mut self, id: &AttemptId, call: u64) -> Option<OpenCall> {
        let mut calls = self.calls.iter();
        let found = calls.position(|open| open.question.id == *id && open.question.call == call)?;
        Some(self.calls.remove(found))
    }

    /// Opens the delegations of one turn; the receiver gets the last state of each.
    pub(super) fn delegate(
        &mut self,
        id: AttemptId,
        turn: u32,
        delegations: Vec<Delegation>,
    ) -> mpsc::UnboundedReceiver<(CallPlace, DelegationState)> {
        let (ends, receiver) = mpsc::unbounded_channel();
        let open: HashSet<_> = delegations.iter().map(|delegation| delegation.at).collect();
        if !open.is_empty() {
            self.turns.push(OpenTurn {
                id,
                turn,
                messages: messages(delegations),
                next: 0,
                open,
                ends,
            });
        }
        receiver
    }

    pub(super) fn forget(&mut self, id: &AttemptId, turn: u32) {
        self.turns.retain(|open| open.id != *id || open.turn != turn);
    }

    pub(super) fn delegated(&mut self, id: &AttemptId, at: CallPlace, state: DelegationState) {
        if let DelegationState::Created { name } = &state {
            tracing::info!(uid = id.uid, turn = at.turn, call = at.call, name, "delegated");
            return;
        }
        let mut turns = self.turns.iter();
        let Some(found) = turns.position(|open| open.id == *id && open.open.contains(&at)) else {
            return;
        };
        let turn = &mut self.turns[found];
        turn.open.remove(&at);
        // An error means that nobody waits for it any more.
        let _ = turn.ends.send((at, state));
        if turn.open.is_empty() {
            self.turns.remove(found);
        }
    }

    /// What is to be said next.
    pub(super) fn next(&mut self) -> Option<ToGateway> {
        let piece = self.calls.iter_mut().find_map(OpenCall::piece);
        piece.or_else(|| self.turns.iter_mut().find_map(OpenTurn::message))
    }
}

impl OpenCall {
    fn piece(&mut self) -> Option<ToGateway> {
        let begin = self.next?;
        let question = &self.question;
        let end = question.request.len().min(begin + MAX_BLOB);
        let last = end == question.request.len();
        self.next = (!last).then_some(end);
        Some(ToGateway::ModelCall {
            id: question.id.clone(),
            call: question.call,
            last,
            data: Blob(question.request[begin..end].to_vec()),
            spent: question.spent.clone(),
        })
    }
}

impl OpenTurn {
    fn message(&mut self) -> Option<ToGateway> {
        let delegations = self.messages.get(self.next)?.clone();
        self.next += 1;
        Some(ToGateway::Delegate {
            id: self.id.clone(),
            delegations,
        })
    }
}

/// As few messages as hold the delegations.
fn messages(delegations: Vec<Delegation>) -> Vec<Vec<Delegation>> {
    let mut messages: Vec<Vec<Delegation>> = Vec::new();
    let mut room = 0;
    for delegation in delegations {
        // Strings and numbers only: it cannot fail.
        let length = serde_json::to_vec(&delegation).map_or(0, |bytes| bytes.len());
        if let Some(message) = messages.last_mut().filter(|_| length <= room) {
            message.push(delegation);
        } else {
            messages.push(vec![delegation]);
            room = MAX_DELEGATIONS;
        }
        room = room.saturating_sub(length);
    }
    messages
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
