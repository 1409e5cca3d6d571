//! The journal of an agent.

use crate::setup::Setup;
use crate::text::shorten;
use agentrun_protocol::agent::{CallPlace, DelegationState};
use agentrun_protocol::chat::{Image, ModelAnswer, ModelFailure};
use agentrun_protocol::tool::{Facts, ToolOutput};
use serde::{Deserialize, Serialize};

/// One line of a journal. The entries in their order make the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase")]
pub enum Entry {
    /// An attempt began.
    Began(Box<Setup>),
    /// A model answered, or could not.
    Answered {
        /// What it was asked.
        asked: Asked,
        /// The answer.
        answer: Result<Box<ModelAnswer>, ModelFailure>,
    },
    /// An act was done.
    Acted(Acted),
}

/// What a model was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asked {
    /// To take the agent's next turn.
    Turn,
    /// To shorten a delegate's result.
    Result,
    /// To shorten the conversation.
    Summary,
    /// To plan the work.
    Plan,
    /// To review the answer.
    Review,
}

/// An act that was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Acted {
    /// Which act.
    #[serde(flatten)]
    pub at: CallPlace,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an act.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "of", rename_all = "camelCase")]
pub enum Outcome {
    /// Of [`crate::ActKind::Tool`].
    Tool {
        /// What the tool says.
        text: String,
        /// What it shows.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// Of [`crate::ActKind::LoadSkill`] and [`crate::ActKind::ReadStored`].
    File {
        /// The text of the file, or why there is none.
        text: Result<String, String>,
    },
    /// Of [`crate::ActKind::Delegate`]: it was refused or has ended.
    Delegate {
        /// Its last state.
        state: DelegationState,
        /// The begin of the file that its `outputRef` names, up to 64 KiB; more is cut off.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stored: Option<String>,
    },
}

/// Bytes of a delegate's stored output that the journal keeps.
const MAX_STORED: usize = 64 * 1024;
/// Bytes of a text that the journal keeps; no tool gives more.
const MAX_TEXT: usize = 256 * 1024;
/// Bytes of a file that the journal keeps: a whole stored output fits.
const MAX_FILE: usize = 1 << 20;

impl Acted {
    /// Within bounds.
    pub(crate) fn bounded(mut self) -> Acted {
        match &mut self.outcome {
            Outcome::Tool { text, .. } => *text = shorten(text, MAX_TEXT),
            Outcome::File {
                text: Ok(text) | Err(text),
            } => text.truncate(text.floor_char_boundary(MAX_FILE)),
            Outcome::Delegate { stored, .. } => {
                if let Some(text) = stored {
                    text.truncate(text.floor_char_boundary(MAX_STORED));
                }
            }
        }
        self
    }
}

impl Outcome {
    /// What a file tool or the shell answered.
    pub fn of_tool(output: ToolOutput) -> Outcome {
        let images = match output.facts {
            Facts::Image { media_type, data, .. } => vec![Image { media_type, data }],
            _ => Vec::new(),
        };
        Outcome::Tool {
            text: output.text,
            images,
        }
    }
}
