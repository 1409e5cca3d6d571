//! What one attempt of an agent begins with.

use crate::transcript::Transcript;
use agentrun_protocol::agent::AgentTerms;
use serde::{Deserialize, Serialize};

/// What one attempt of an agent begins with. It is part of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    /// The work.
    pub terms: AgentTerms,
    /// Number of the attempt, from 1.
    pub attempt: i32,
    /// What must hold of what it delivers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub acceptance: Vec<String>,
    /// What the attempt before did not meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Today, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The conversation of the parent, for a delegate that sees it ([`AgentTerms::snapshot`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Transcript>,
    /// The conversation of the thread so far ([`AgentTerms::continues`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<Transcript>,
}

impl Setup {
    /// Of the first attempt of `terms`, with nothing besides.
    pub fn new(terms: AgentTerms) -> Setup {
        Setup {
            terms,
            attempt: 1,
            acceptance: Vec::new(),
            notes: Vec::new(),
            date: None,
            snapshot: None,
            history: None,
        }
    }
}
