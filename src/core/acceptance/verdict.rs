//! What all criteria together say.

use super::{MAX_CRITERION, parse};
use crate::conditions::{self, Is};
use crate::settle;
use crate::text::one_line;
use agentrun_api::names::conditions as kind;
use agentrun_api::{AcceptanceMetReason, AcceptancePolicy, Conditions, Verdict};
use jiff::Timestamp;

/// The most characters of a note for the next attempt.
const MAX_NOTE: usize = 700;

/// What the condition `AcceptanceMet` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its status.
    pub is: Is,
    /// Its reason.
    pub reason: AcceptanceMetReason,
    /// Its message: how many hold, and the first that does not.
    pub message: String,
}

impl Standing {
    /// Nothing was delivered that could be checked.
    pub fn not_checked() -> Self {
        Self {
            is: Is::Unknown,
            reason: AcceptanceMetReason::NotChecked,
            message: "the work did not end well, so that nothing was checked".to_owned(),
        }
    }

    /// Sets the condition.
    pub fn show(&self, conditions: &mut Conditions, generation: Option<i64>, now: Timestamp) {
        let reason = self.reason.as_str();
        conditions::set(
            conditions,
            kind::ACCEPTANCE_MET,
            self.is,
            reason,
            &self.message,
            generation,
            now,
        );
    }

    /// What the rule of attempts makes of it.
    pub fn verdict(&self, policy: Option<AcceptancePolicy>) -> settle::Verdict {
        match self.is {
            Is::True => settle::Verdict::Accepted,
            _ if policy == Some(AcceptancePolicy::Require) => settle::Verdict::NotAccepted,
            _ => settle::Verdict::Accepted,
        }
    }
}

/// The verdicts in the order of `criteria`, one for each, from what the runtime reported; a criterion that it said
/// nothing about is unverified.
pub fn of_report(criteria: &[String], reported: &[Verdict]) -> Vec<Verdict> {
    criteria
        .iter()
        .map(|criterion| {
            let said = reported.iter().find(|verdict| verdict.criterion == *criterion);
            said.cloned().unwrap_or_else(|| not_checked(criterion))
        })
        .collect()
}

fn not_checked(criterion: &str) -> Verdict {
    let family = parse(criterion).map_or("unknown", |criterion| criterion.family());
    Verdict {
        criterion: criterion.to_owned(),
        family: Some(family.to_owned()),
        detail: Some("it was not checked".to_owned()),
        ..Verdict::default()
    }
}

/// What `verdicts` say together. Without any there is nothing to meet.
pub fn standing(verdicts: &[Verdict]) -> Standing {
    let holding = verdicts
        .iter()
        .filter(|verdict| verdict.checked && verdict.holds)
        .count();
    let failing = verdicts.iter().find(|verdict| verdict.checked && !verdict.holds);
    let open = verdicts.iter().find(|verdict| !verdict.checked);
    let (is, reason, shown) = match (failing, open) {
        (Some(failing), _) => (Is::False, AcceptanceMetReason::DoesNotHold, Some(failing)),
        (None, Some(open)) => (Is::Unknown, AcceptanceMetReason::Unverified, Some(open)),
        (None, None) if verdicts.is_empty() => (Is::Unknown, AcceptanceMetReason::NotChecked, None),
        (None, None) => (Is::True, AcceptanceMetReason::Holds, None),
    };
    let mut message = format!("{holding} of {} criteria hold", verdicts.len());
    if let Some(shown) = shown {
        message = format!("{message}; {}", told(shown));
    }
    Standing { is, reason, message }
}

/// What the next attempt is told: one note for each criterion that was not met.
pub fn notes(verdicts: &[Verdict]) -> Vec<String> {
    let unmet = verdicts
        .iter()
        .filter(|verdict| !(verdict.checked && verdict.holds));
    unmet.map(told).collect()
}

fn told(verdict: &Verdict) -> String {
    let word = if verdict.checked {
        "does not hold"
    } else {
        "unverified"
    };
    let criterion = one_line(&verdict.criterion, MAX_CRITERION);
    let detail = verdict.detail.as_deref().unwrap_or_default();
    let separator = if detail.is_empty() { "" } else { ": " };
    one_line(&format!("[{word}] {criterion}{separator}{detail}"), MAX_NOTE)
}
