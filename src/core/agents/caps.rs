//! How much a run's agents may delegate.

use agentrun_api::AgentRunSpec;

/// Delegations of one turn when nothing says otherwise (docs/reference.md).
pub const DEFAULT_PER_TURN: usize = 3;
/// Delegations of a run when nothing says otherwise.
pub const DEFAULT_PER_RUN: usize = 6;
/// Depth of delegation when nothing says otherwise: the lead delegates, its delegates do not.
pub const DEFAULT_DEPTH: u32 = 1;

/// The caps of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Delegations of one turn of one agent.
    pub per_turn: usize,
    /// Delegations of the whole run.
    pub per_run: usize,
    /// The deepest that a delegate may be: children of the lead are at 1.
    pub depth: u32,
}

impl Caps {
    /// The caps of a run.
    pub fn of(run: &AgentRunSpec) -> Self {
        let spec = run.delegation.clone().unwrap_or_default();
        let count = |given: Option<i32>, default| {
            given
                .and_then(|given| usize::try_from(given).ok())
                .unwrap_or(default)
        };
        Self {
            per_turn: count(spec.max_per_turn, DEFAULT_PER_TURN),
            per_run: count(spec.max_per_run, DEFAULT_PER_RUN),
            depth: spec
                .max_depth
                .and_then(|given| u32::try_from(given).ok())
                .unwrap_or(DEFAULT_DEPTH),
        }
    }
}
