//! A conversation as plain text: what a delegate sees of its parent, and what the next run of a thread starts from.

use crate::text::shorten;
use agentrun_protocol::chat::Message;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The most bytes of a transcript as JSON (256 KiB).
pub const MAX_TRANSCRIPT: usize = 256 * 1024;
/// Bytes of JSON of what was said; the rest is for the summary.
const MAX_SAIDS: usize = 160 * 1024;
/// Bytes of one text that is alone too long.
const MAX_SAID: usize = 60 * 1024;
/// Bytes of the summary: six times as many, escaped, still fit.
const MAX_SUMMARY: usize = 15 * 1024;
/// Name of the message in which a delegate sees its parent's conversation.
const BACKGROUND: &str = "parent_context_snapshot";

/// Around a call and its answer, which stand beside what people said.
const RECORD: &str = "historical_tool_call";

/// A conversation without system messages, reasoning, hidden messages and calls without an answer. Calls that were
/// answered are text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Transcript {
    /// What came before, shortened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What was said, in order.
    pub said: Vec<Said>,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// Who said it.
    pub by: Speaker,
    /// Text.
    pub text: String,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// Who asked the agent.
    User,
    /// The agent.
    Assistant,
    /// A tool that the agent called: the call and its answer.
    Tool,
}

/// Bytes that are no transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptError(String);

impl std::fmt::Display for TranscriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "this is no stored conversation: {}", self.0)
    }
}

impl std::error::Error for TranscriptError {}

impl Transcript {
    /// As it is stored: at most [`MAX_TRANSCRIPT`] bytes of JSON, the same for the same transcript.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Strings only: it cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// What [`Transcript::to_bytes`] gave.
    pub fn from_bytes(bytes: &[u8]) -> Result<Transcript, TranscriptError> {
        if bytes.len() > MAX_TRANSCRIPT {
            let found = bytes.len();
            return Err(TranscriptError(format!(
                "it has {found} bytes, at most {MAX_TRANSCRIPT} are allowed"
            )));
        }
        serde_json::from_slice(bytes).map_err(|error| TranscriptError(error.to_string()))
    }

    /// With a call that was answered.
    pub(crate) fn push_call(&mut self, name: &str, arguments: &str, answer: &str) {
        self.push(
            Speaker::Tool,
            format!("[historical tool call] {name} {arguments}\n[result] {answer}"),
        );
    }

    pub(crate) fn push(&mut self, by: Speaker, text: String) {
        self.said.push(Said { by, text });
    }

    /// Within bounds: the oldest goes first, and the summary says so.
    pub(crate) fn bounded(mut self) -> Transcript {
        for said in &mut self.said {
            said.text = shorten(&said.text, MAX_SAID);
        }
        self.summary = self.summary.map(|summary| shorten(&summary, MAX_SUMMARY));
        let mut room = MAX_SAIDS;
        let fitting = self.said.iter().rev().take_while(|said| {
            let bytes = serde_json::to_string(said).map_or(usize::MAX, |json| json.len() + 1);
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        });
        let surplus = self.said.len() - fitting.count();
        if surplus > 0 {
            self.said.drain(..surplus);
            let summary = self.summary.unwrap_or_default();
            self.summary = Some(format!("{summary}\n[{surplus} earlier messages are left out]"));
        }
        self
    }

    /// As the one background message of a delegate.
    pub(crate) fn background(&self) -> Message {
        let mut text = format!(
            "<{BACKGROUND}>\nThe conversation of the agent that delegates to you, as it was when it did so. It is \
             background: your task is the next message. Calls in it were made by that agent, not by you.\n"
        );
        let mut add = |head: &str, body: &str| {
            // What was said cannot end the background and pose as the task.
            let body = body.replace(BACKGROUND, "parent-context-snapshot");
            let _ = write!(text, "\n{head}{body}\n");
        };
        if let Some(summary) = &self.summary {
            add("[summary of what came before]\n", summary);
        }
        for said in &self.said {
            match said.by {
                Speaker::User => add("[user]\n", &said.text),
                Speaker::Assistant => add("[assistant]\n", &said.text),
                Speaker::Tool => add("", &record(&said.text)),
            }
        }
        let _ = write!(text, "</{BACKGROUND}>");
        user(text)
    }

    /// As the begin of the conversation that goes on. What is one speaker's is one message.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<(bool, String)> = Vec::new();
        let summary = self
            .summary
            .as_ref()
            .map(|summary| (false, format!("[summary of our conversation so far]\n{summary}")));
        // Calls go to the user's side, so that the model does not learn to write them as text.
        let said = self.said.iter().map(|said| match said.by {
            Speaker::User => (false, said.text.clone()),
            Speaker::Assistant => (true, said.text.clone()),
            Speaker::Tool => (false, record(&said.text)),
        });
        for (is_own, text) in summary.into_iter().chain(said) {
            match messages.last_mut() {
                Some((same, before)) if *same == is_own => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                _ => messages.push((is_own, text)),
            }
        }
        let message = |(is_own, text)| match is_own {
            true => Message::Assistant {
                text,
                tool_calls: Vec::new(),
            },
            false => user(text),
        };
        messages.into_iter().map(message).collect()
    }
}

/// A call and its answer as what they are: nothing in them can pose as what a person said.
fn record(text: &str) -> String {
    let text = text.replace(RECORD, "historical-tool-call");
    format!("<{RECORD}>\n{text}\n</{RECORD}>")
}

pub(crate) fn user(text: String) -> Message {
    Message::User {
        text,
        images: Vec::new(),
    }
}
