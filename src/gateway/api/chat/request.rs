//! What is asked of a run in the words of the Chat Completions API; pure.

use crate::api::problem::{Code, Problem};
use crate::api::target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The model that is the namespace's own choice for a lead agent.
pub(crate) const DEFAULT_MODEL: &str = "agentrun";

/// A conversation that a run goes on with. Members that are null are as if absent; any other member is refused.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// `agentrun`, or the name of a Model of the namespace, which the lead agent then uses.
    pub(crate) model: String,
    /// The conversation. The last message is the user's; earlier turns are shown to the lead agent before it.
    #[schemars(length(min = 1))]
    pub(crate) messages: Vec<ChatMessage>,
    /// The user whose threads and memory these are. Default: the token's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
    /// How many answers: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1))]
    pub(crate) n: Option<u64>,
    /// Whether the answer comes in pieces, which is not supported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stream: Option<bool>,
}

/// One message of a conversation.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub(crate) struct ChatMessage {
    /// Who says it.
    pub(crate) role: ChatRole,
    /// What is said.
    pub(crate) content: ChatContent,
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChatRole {
    /// Standing instructions.
    System,
    /// The same.
    Developer,
    /// The person.
    User,
    /// An earlier answer.
    Assistant,
}

/// What a message says.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(untagged, expecting = "content is a text, or a list of parts of type text")]
pub(crate) enum ChatContent {
    /// As one text.
    Text(String),
    /// As several texts.
    Parts(Vec<ChatPart>),
}

/// One piece of a message.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ChatPart {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
}

impl ChatContent {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => {
                let texts = parts.into_iter().map(|ChatPart::Text { text }| text);
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }
}

/// What a run is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) goal: String,
    pub(super) instructions: Option<String>,
    pub(super) user: Option<String>,
}

impl Asked {
    pub(super) fn of(mut body: Map<String, Value>) -> Result<Self, Problem> {
        body.retain(|_, value| !value.is_null());
        let known = ["model", "messages", "user", "n", "stream"];
        if let Some(parameter) = body.keys().find(|it| !known.contains(&it.as_str())) {
            let known = known.join(", ");
            let message = format!("{parameter:?} has no meaning for a run: leave it out; {known} are taken");
            return Err(Problem::new(Code::NotYetSupported, message));
        }
        let request: ChatRequest =
            serde_json::from_value(Value::Object(body)).map_err(|error| target::unexpected(&error))?;
        if let Some(n) = request.n.filter(|n| *n != 1) {
            let message = format!("n is {n}: a run gives one answer, leave n out");
            return Err(Problem::new(Code::NotYetSupported, message));
        }
        if request.stream == Some(true) {
            let message =
                "stream: true is not supported by this version yet: leave it out, or follow a task's events";
            return Err(Problem::new(Code::NotYetSupported, message));
        }
        let (instructions, mut turns) = split(request.messages);
        let last = turns.pop().filter(|(role, _)| *role == ChatRole::User);
        let Some((_, last)) = last.filter(|(_, text)| !text.trim().is_empty()) else {
            let message = "the last message is no text of role user: end messages with what is asked";
            return Err(Problem::new(Code::Invalid, message));
        };
        Ok(Self {
            model: request.model,
            goal: goal(&turns, last),
            instructions,
            user: request.user,
        })
    }
}

/// The standing instructions, and the turns in their order.
fn split(messages: Vec<ChatMessage>) -> (Option<String>, Vec<(ChatRole, String)>) {
    let texts = messages.into_iter().map(|it| (it.role, it.content.into_text()));
    let (standing, turns): (Vec<_>, Vec<_>) =
        texts.partition(|(role, _)| matches!(role, ChatRole::System | ChatRole::Developer));
    let standing: Vec<_> = standing.into_iter().map(|(_, text)| text).collect();
    (Some(standing.join("\n\n")).filter(|text| !text.is_empty()), turns)
}

/// A conversation of one message is the goal word for word.
fn goal(turns: &[(ChatRole, String)], last: String) -> String {
    if turns.is_empty() {
        return last;
    }
    let told = turns.iter().map(|(role, text)| {
        let who = if *role == ChatRole::User { "User" } else { "You" };
        format!("{who}: {text}\n\n")
    });
    let told: String = told.collect();
    format!("The conversation so far:\n\n{told}Answer what the user says now:\n\n{last}")
}

#[cfg(test)]
#[path = "../tests/chat_unit.rs"]
mod tests;
