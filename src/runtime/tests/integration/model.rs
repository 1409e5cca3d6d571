//! A model that says what a test tells it to, behind the gateway's side of the channel.

// What a script may say is one type, whether it is an answer or none.
#![allow(clippy::unnecessary_wraps)]

use crate::gateway::Peer;
use agentrun_protocol::agent::{Delegation, DelegationState, Spent};
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::chat::{
    Finish, Message, ModelAnswer, ModelFailure, ModelFailureCode, ModelRequest, TokenUsage, ToolCall,
};
use agentrun_protocol::result::AttemptResult;
use agentrun_protocol::work::AttemptId;
use serde_json::Value;

/// What a model says to one request.
pub(crate) type Said = Result<ModelAnswer, ModelFailure>;

/// A call of a model, all of its pieces.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) id: AttemptId,
    pub(crate) call: u64,
    pub(crate) request: ModelRequest,
    pub(crate) spent: Spent,
}

/// What a runtime with an agent says.
#[derive(Debug)]
pub(crate) enum Turn {
    Asked(Box<Asked>),
    Delegated(Vec<Delegation>),
    Ended(AttemptId, Box<AttemptResult>),
    Other(ToGateway),
}

impl Peer {
    /// What comes next.
    pub(crate) async fn turn(&mut self) -> Turn {
        let mut bytes = Vec::new();
        loop {
            match self.next().await {
                ToGateway::ModelCall {
                    id,
                    call,
                    last,
                    data,
                    spent,
                } => {
                    bytes.extend(data.0);
                    if last {
                        let request = serde_json::from_slice(&bytes).unwrap();
                        let asked = Asked {
                            id,
                            call,
                            request,
                            spent,
                        };
                        return Turn::Asked(Box::new(asked));
                    }
                }
                ToGateway::Delegate { delegations, .. } => return Turn::Delegated(delegations),
                ToGateway::Result { id, result } => return Turn::Ended(id, result),
                other => return Turn::Other(other),
            }
        }
    }

    /// The next call of a model.
    pub(crate) async fn asked(&mut self) -> Asked {
        match self.turn().await {
            Turn::Asked(asked) => *asked,
            other => panic!("expected a model call, found {other:?}"),
        }
    }

    /// The next delegations.
    pub(crate) async fn delegated(&mut self) -> Vec<Delegation> {
        match self.turn().await {
            Turn::Delegated(delegations) => delegations,
            other => panic!("expected delegations, found {other:?}"),
        }
    }

    pub(crate) async fn answer(&self, asked: &Asked, said: Said) {
        self.say(ToRuntime::ModelAnswer {
            id: asked.id.clone(),
            call: asked.call,
            answer: said.map(Box::new),
        })
        .await;
    }

    pub(crate) async fn delegate_is(&self, id: &AttemptId, of: &Delegation, delegation: DelegationState) {
        let (id, at) = (id.clone(), of.at);
        self.say(ToRuntime::Delegated { id, at, delegation }).await;
    }

    /// Answers each call by `script` until the attempt ends, and acknowledges its end.
    pub(crate) async fn play(&mut self, mut script: impl FnMut(&Asked) -> Said) -> AttemptResult {
        loop {
            match self.turn().await {
                Turn::Asked(asked) => self.answer(&asked, script(&asked)).await,
                Turn::Ended(id, result) => {
                    self.say(ToRuntime::Ack(id)).await;
                    return *result;
                }
                Turn::Other(ToGateway::ModelCancel { .. }) => {}
                other => panic!("expected a model call or the end, found {other:?}"),
            }
        }
    }
}

impl Asked {
    /// What the model is told last.
    pub(crate) fn last_text(&self) -> &str {
        match self.request.messages.last().unwrap() {
            Message::System { text }
            | Message::User { text, .. }
            | Message::Assistant { text, .. }
            | Message::Tool { text, .. } => text,
        }
    }

    /// How often the model has spoken before.
    pub(crate) fn turns(&self) -> usize {
        let messages = self.request.messages.iter();
        messages
            .filter(|message| matches!(message, Message::Assistant { .. }))
            .count()
    }

    /// All that the request says, as JSON.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(&self.request).unwrap()
    }
}

fn spoken(text: &str, tool_calls: Vec<ToolCall>, finish: Finish) -> ModelAnswer {
    ModelAnswer {
        text: text.to_owned(),
        tool_calls,
        finish,
        usage: TokenUsage {
            input: 100,
            output: 10,
            cached_input: 0,
            estimated: false,
        },
        cost_micros: 7,
        model: "scripted".to_owned(),
    }
}

/// The model is done.
pub(crate) fn says(text: &str) -> Said {
    Ok(spoken(text, Vec::new(), Finish::Stop))
}

/// The model calls tools.
pub(crate) fn calls(tools: &[(&str, Value)]) -> Said {
    let calls = tools
        .iter()
        .enumerate()
        .map(|(number, (name, arguments))| ToolCall {
            id: format!("call_{number}"),
            name: (*name).to_owned(),
            arguments: arguments.to_string(),
        });
    Ok(spoken("", calls.collect(), Finish::ToolCalls))
}

/// There is no answer.
pub(crate) fn fails(code: ModelFailureCode, message: &str) -> Said {
    Err(ModelFailure {
        code,
        message: message.to_owned(),
    })
}
