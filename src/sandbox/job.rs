//! What PID 1 hands to a supervisor as the first frame.

use crate::options::Settings;
use agentrun_protocol::executor::Exec;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// One call, ready to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// As the runtime asked.
    pub(crate) exec: Exec,
    /// The whole environment of the program.
    pub(crate) environment: BTreeMap<String, String>,
    /// The private temp folder: exists, is empty, and is the supervisor's to remove.
    pub(crate) scratch: PathBuf,
    /// Where things are.
    pub(crate) settings: Settings,
    /// Start nothing when the kernel has no Landlock.
    pub(crate) landlock_required: bool,
    /// PID 1 of a pid namespace started this: a signal to everyone stays inside.
    pub(crate) contained: bool,
}
