//! What is found about one criterion.

use super::MAX_DETAIL;
use crate::text::one_line;
use agentrun_api::Verdict;

/// Whether a criterion holds, and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it could be decided. False means unverified.
    pub checked: bool,
    /// Whether it holds; false when it could not be decided.
    pub holds: bool,
    /// What was found, one line of at most [`MAX_DETAIL`] characters.
    pub detail: String,
}

impl Finding {
    /// It holds.
    pub fn holds(detail: &str) -> Self {
        Self::new(true, true, detail)
    }

    /// It does not hold.
    pub fn fails(detail: &str) -> Self {
        Self::new(true, false, detail)
    }

    /// It could not be decided.
    pub fn unverified(detail: &str) -> Self {
        Self::new(false, false, detail)
    }

    /// Replaces what a verdict says about its criterion.
    pub fn put(self, verdict: &mut Verdict) {
        verdict.checked = self.checked;
        verdict.holds = self.holds;
        verdict.detail = Some(self.detail);
    }

    fn new(checked: bool, holds: bool, detail: &str) -> Self {
        Self {
            checked,
            holds,
            detail: one_line(detail, MAX_DETAIL),
        }
    }
}
