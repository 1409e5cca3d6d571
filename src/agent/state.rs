//! What an agent is between two steps.

use crate::delegate::Long;
use crate::guard::Guard;
use crate::plan::Planning;
use crate::step::{ActKind, Answer, End};
use crate::stored::Stored;
use crate::todos::Todo;
use crate::transcript::{Speaker, Transcript, user};
use agentrun_protocol::agent::{CallPlace, Review, Spent, StopReason};
use agentrun_protocol::chat::{Image, Message, ToolCall};
use std::collections::BTreeMap;

/// What an agent is between two steps; made from entries alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// What is being done.
    pub(crate) phase: Phase,
    /// Turns that the model took, through all attempts.
    pub(crate) turn: u32,
    /// Turns that it had taken when this attempt was given its turns.
    pub(crate) turns_before: u32,
    /// The parent's conversation, until it is shortened away.
    pub(crate) snapshot: Option<Transcript>,
    /// The thread's conversation, until it is part of the summary.
    pub(crate) history: Option<Transcript>,
    /// What it was asked, with the notes of the attempt before.
    pub(crate) task: String,
    /// What came of the lines that are not there any more.
    pub(crate) summary: Option<String>,
    /// What was said since.
    pub(crate) lines: Vec<Line>,
    /// The list that it keeps.
    pub(crate) todos: Vec<Todo>,
    /// The skill whose `allowed-tools` hold now.
    pub(crate) followed: Option<String>,
    /// Skills that fit the task.
    pub(crate) suggested: Vec<String>,
    /// Delegations that were asked for.
    pub(crate) delegations: u32,
    /// Long outputs of delegates by the name of the sub-task.
    pub(crate) stored: BTreeMap<String, Stored>,
    /// Tokens and money.
    pub(crate) spent: Spent,
    /// How long the conversation is.
    pub(crate) size: Size,
    /// Whether it gets on.
    pub(crate) guard: Guard,
    /// It has to answer without tools, for this reason.
    pub(crate) stop: Option<StopReason>,
    /// Turns in a row that were nothing.
    pub(crate) empty: u32,
    /// Answers that did not fit the output schema.
    pub(crate) repairs: u32,
    /// What the reviewer said last.
    pub(crate) review: Option<Review>,
    /// How often the reviewer sent an answer back.
    pub(crate) sent_back: u32,
    /// The begin of an answer that was cut.
    pub(crate) partial: String,
    /// How often the answer was cut.
    pub(crate) cuts: u32,
    /// Bytes of images that were shown.
    pub(crate) image_bytes: usize,
}

/// How long the conversation is, in tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// By the endpoint, at the last answer.
    pub(crate) counted: Option<u64>,
    /// Tokens of a thousand bytes, as far as the endpoint counted.
    pub(crate) rate: Option<u64>,
    /// Bytes that came since.
    pub(crate) added: u64,
    /// What the endpoint was found to take, where that is less than it should.
    pub(crate) found_limit: Option<u64>,
    /// How often in a row the endpoint found it too long.
    pub(crate) refused: u32,
}

/// What is being done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The work is planned, before the first turn.
    Planning(Planning),
    /// The model has its turn.
    Turn,
    /// Its calls are made.
    Acting {
        pending: Vec<Pending>,
        /// Calls beyond the bound, which are not among them.
        dropped: usize,
    },
    /// The lines before this one are shortened.
    Compacting(usize),
    /// Its answer is reviewed.
    Reviewing(Answer),
    /// It is over.
    Done(End),
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub(crate) message: Message,
    /// Not part of what was said: an advice of ours.
    pub(crate) hidden: bool,
}

/// A call of the present turn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pending {
    pub(crate) at: CallPlace,
    /// As it stands in the conversation.
    pub(crate) call: ToolCall,
    /// Name and arguments as they were called, for the guard.
    pub(crate) print: u64,
    pub(crate) stage: Stage,
}

/// How far a call is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stage {
    /// It is to be done.
    Waits(ActKind),
    /// Its answer is to be shortened by a model.
    Long(Long),
    /// It is answered.
    Over(Reply),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
    /// The call was none, or not allowed.
    pub(crate) refused: bool,
}

impl Reply {
    pub(crate) fn told(text: String) -> Reply {
        Reply {
            text,
            images: Vec::new(),
            refused: false,
        }
    }

    pub(crate) fn refused(text: String) -> Reply {
        Reply {
            refused: true,
            ..Reply::told(text)
        }
    }
}

impl State {
    pub(crate) fn push(&mut self, message: Message) {
        self.add(message, false);
    }

    /// Advice of ours.
    pub(crate) fn advise(&mut self, text: &str) {
        self.add(user(text.to_owned()), true);
    }

    fn add(&mut self, message: Message, hidden: bool) {
        self.size.added += crate::context::bytes(&message);
        self.lines.push(Line { message, hidden });
    }

    /// The last thing that the model said in words.
    pub(crate) fn last_text(&self) -> Option<&str> {
        self.lines.iter().rev().find_map(|line| match &line.message {
            Message::Assistant { text, .. } if !text.trim().is_empty() => Some(text.as_str()),
            _ => None,
        })
    }

    /// The conversation so far, without calls that have no answer yet. `prompt` is what the agent was asked.
    pub(crate) fn transcript(&self, prompt: &str) -> Transcript {
        let mut transcript = self.history.clone().unwrap_or_default();
        if let Some(summary) = &self.summary {
            let before = transcript.summary.take();
            transcript.summary = Some(
                before
                    .into_iter()
                    .chain([summary.clone()])
                    .collect::<Vec<_>>()
                    .join("\n\n"),
            );
        }
        transcript.push(Speaker::User, prompt.to_owned());
        append(&mut transcript, &self.lines);
        transcript.bounded()
    }
}

/// Adds lines as text: an answer follows its call.
pub(crate) fn append(transcript: &mut Transcript, lines: &[Line]) {
    let mut calls: BTreeMap<&str, &ToolCall> = BTreeMap::new();
    for line in lines.iter().filter(|line| !line.hidden) {
        match &line.message {
            Message::System { .. } => {}
            Message::User { text, .. } => transcript.push(Speaker::User, text.clone()),
            Message::Assistant { text, tool_calls } => {
                calls.extend(tool_calls.iter().map(|call| (call.id.as_str(), call)));
                if !text.trim().is_empty() {
                    transcript.push(Speaker::Assistant, text.clone());
                }
            }
            Message::Tool { id, name, text, .. } => {
                let arguments = calls
                    .get(id.as_str())
                    .map_or("{}", |call| call.arguments.as_str());
                transcript.push_call(name, arguments, text);
            }
        }
    }
}
