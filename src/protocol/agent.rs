//! An agent's work, its delegations and how it went.

use crate::chat::Role;
use crate::result::{ArtifactRef, CriterionVerdict};
use crate::work::FileRef;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// What an agent is to do, and with what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentTerms {
    /// What it is to its run.
    pub role: Role,
    /// What it is asked to do.
    pub prompt: String,
    /// Standing instructions besides the ones every agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Name of the Model that its user chose; else the role chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What that model can do.
    pub traits: ModelTraits,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Skills that it may load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillCard>,
    /// Turns until it has to answer.
    pub max_turns: u32,
    /// JSON Schema of its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// To whom it may delegate; absent for one that may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationTerms>,
    /// The conversation of its parent, below `state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<FileRef>,
    /// The conversation of the thread goes on.
    #[serde(default)]
    pub continues: bool,
    /// A model of role `planner` plans the work before it begins.
    #[serde(default)]
    pub is_planned: bool,
    /// How often a model of role `reviewer` may send the answer back; absent where nobody reviews it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviews: Option<u32>,
}

/// What the agent's model can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelTraits {
    /// Tokens that a conversation may have.
    pub context_tokens: u64,
    /// Whether it reads images.
    #[serde(default)]
    pub vision: bool,
}

/// A skill as an agent sees it before it loads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillCard {
    /// Name: the folder below `/mnt/skills`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Words that call for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<String>,
    /// The only tools that may be used while it is followed; all of the agent's when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
}

/// To whom an agent may delegate, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegationTerms {
    /// Delegations of one turn; more are cut.
    pub max_per_turn: u32,
    /// Delegations of the whole run.
    pub max_per_run: u32,
    /// Types of agents.
    pub agents: Vec<AgentKind>,
}

/// A type of agent as the delegating agent sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentKind {
    /// Name of the type.
    pub name: String,
    /// What it is good for.
    pub description: String,
}

/// Work that an agent delegates. Turn and call number make it one thing however often it is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delegation {
    /// Where it was asked for.
    #[serde(flatten)]
    pub at: CallPlace,
    /// Name of the agent type.
    pub agent: String,
    /// What it is for, for people; at most 200 characters.
    pub description: String,
    /// What the delegate is asked to do; at most 32,768 characters.
    pub prompt: String,
    /// What must hold of what it delivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// The conversation that it gets to see, below `state`; its prompt alone when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<FileRef>,
}

/// A tool call's place in its conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallPlace {
    /// Turn of the agent, from 1; counted through all its attempts.
    pub turn: u32,
    /// Place of the call in its turn, from 0.
    pub call: u32,
}

/// Where a delegation stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state")]
pub enum DelegationState {
    /// It has its SubTask.
    Created {
        /// Name of the SubTask.
        name: String,
    },
    /// There will be none.
    Refused {
        /// What was found, what is allowed and what to do.
        message: String,
    },
    /// It ended.
    Ended(Box<DelegateEnd>),
}

/// How a delegate ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DelegateEnd {
    /// Name of the SubTask.
    pub name: String,
    /// Its outcome, as in the SubTask.
    pub outcome: String,
    /// Its reason, as in the SubTask.
    pub reason: String,
    /// Why, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why it was stopped before it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// Its output where it is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// The file that holds its output instead, below `state`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_ref: Option<FileRef>,
    /// What it delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactRef>,
    /// What its criteria say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<CriterionVerdict>,
}

/// Why an agent had to answer before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StopReason {
    /// Its tokens or money were used up.
    TokenCapped,
    /// Its turns were used up.
    TurnCapped,
    /// It repeated itself without progress.
    LoopCapped,
}

/// What an agent has used so far, through all its attempts. Told with every call, so that a gateway that has just
/// started knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spent {
    /// Tokens by the name of the role, request and answer together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, u64>,
    /// Millionths of the Model's currency.
    #[serde(default)]
    pub cost_micros: u64,
}

/// What a reviewer says of an answer: a model's word, which proves nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Whether the answer does what was asked for.
    pub accepted: bool,
    /// What is missing or wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Review {
    /// Notes at most, the first ones.
    pub const MAX_NOTES: usize = 10;
    /// Characters of a note at most.
    pub const MAX_NOTE: usize = 500;
}

/// How an agent went, besides its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentFacts {
    /// Turns that it took.
    pub turns: u32,
    /// Why it was stopped before it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// What a reviewer said of its last answer; absent when nobody reviewed it, or could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// What it used.
    pub spent: Spent,
}
