//! What a Pod that reads a skill is told and reports.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// First argument of a runtime that reads a skill instead of serving work.
pub const COMMAND: &str = "inspect-skill";
/// Where the skill is mounted.
pub const FOLDER: &str = "/mnt/skill";
/// JSON of an [`crate::work::AttemptId`]: UID and generation of the Skill.
pub const VARIABLE: &str = "AGENTRUN_INSPECT";

/// What a folder is as a skill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is")]
pub enum SkillFound {
    /// It keeps the rules.
    Valid {
        /// Name by its SKILL.md.
        name: String,
        /// Description by its SKILL.md.
        description: String,
        /// Words that suggest it.
        #[serde(default)]
        triggers: Vec<String>,
        /// The only tools that may be used while it is followed.
        #[serde(default)]
        allowed_tools: Option<Vec<String>>,
        /// Its functions, each as in the Skill's status.
        functions: Vec<Value>,
        /// Digest of the whole.
        digest: String,
    },
    /// It breaks one.
    Invalid {
        /// Which, and what to do.
        message: String,
    },
}
