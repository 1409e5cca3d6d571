//! What an agent wants done.

use crate::transcript::Transcript;
use agentrun_protocol::agent::{AgentFacts, CallPlace, Delegation, StopReason};
use agentrun_protocol::chat::{ModelFailure, ModelRequest};
use agentrun_protocol::tool::ToolName;
use agentrun_protocol::work::FileRef;
use serde_json::Value;
use std::fmt;

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Ask a model, and tell the agent what it [answered](crate::Agent::answered).
    Ask(Box<ModelRequest>),
    /// Do all of these, in any order and together where possible, and tell the agent of each that it
    /// [is done](crate::Agent::acted). Never empty.
    Act(Vec<Act>),
    /// It is over.
    Done(Box<Finished>),
}

/// A tool call that needs the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Act {
    /// Its place; one thing for ever.
    pub at: CallPlace,
    /// Id of the call in the conversation.
    pub id: String,
    /// What is to be done.
    pub kind: ActKind,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum ActKind {
    /// Run a tool of the sandbox.
    Tool {
        /// Which.
        tool: ToolName,
        /// One JSON object; what its fields hold was not looked at.
        arguments: String,
    },
    /// Delegate. For [`ContextMode::Snapshot`] the one who does it stores [`crate::Agent::snapshot`] and names the file
    /// in [`Delegation::snapshot`].
    Delegate {
        /// The work.
        delegation: Delegation,
        /// What the delegate sees.
        context: ContextMode,
    },
    /// Read a file of a skill.
    LoadSkill {
        /// Name of the skill, one of the agent's.
        name: String,
        /// Path below the skill's folder: relative, without `..`.
        path: String,
    },
    /// Read a whole stored output, `state/…`.
    ReadStored {
        /// Path, size and digest.
        file: FileRef,
    },
}

/// What a delegate sees besides its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContextMode {
    /// Nothing.
    #[default]
    Isolated,
    /// The conversation of its parent as it was when it delegated.
    Snapshot,
}

/// How it went.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The answer, or why there is none.
    pub end: End,
    /// Turns, tokens, and whether it was stopped before it was done.
    pub facts: AgentFacts,
    /// What the next run of the thread starts from; at most [`crate::MAX_TRANSCRIPT`] bytes.
    pub transcript: Transcript,
}

/// The answer, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// It answered.
    Answered(Answer),
    /// It did not.
    Failed(Failure),
}

/// An agent's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Text, of an agent without output schema.
    Text(String),
    /// JSON that is valid against the output schema.
    Json {
        /// The text of the JSON document alone.
        text: String,
        /// The same.
        value: Value,
    },
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// The model could not be asked, or does not answer.
    Model(ModelFailure),
    /// It answered nothing, twice.
    Empty,
    /// Its answer is not what the output schema asks for.
    Output {
        /// What is wrong with it.
        problem: String,
        /// The answer.
        text: String,
    },
    /// It was stopped, and had said nothing.
    Stopped(StopReason),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Model(failure) => f.write_str(&failure.message),
            Failure::Empty => {
                f.write_str("the model answered nothing, twice: choose another model or simplify the task")
            }
            Failure::Output { problem, .. } => write!(f, "the answer does not fit outputSchema: {problem}"),
            Failure::Stopped(reason) => write!(f, "the agent was stopped ({reason:?}) and had no answer"),
        }
    }
}
