//! The one way in which conditions are set.

use agentrun_api::Conditions;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The most characters of a message (the schema's bound is larger).
const MAX_MESSAGE: usize = 1000;

/// What a condition says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It cannot be said yet.
    Unknown,
}

impl Is {
    fn word(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// Sets a condition. The transition time moves only when `is` changes; the generation is always the one that was
/// looked at.
pub fn set(
    conditions: &mut Conditions,
    kind: &str,
    is: Is,
    reason: &str,
    message: &str,
    generation: Option<i64>,
    now: Timestamp,
) {
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    let known = conditions.iter_mut().find(|condition| condition.type_ == kind);
    let Some(known) = known else {
        conditions.push(Condition {
            type_: kind.to_owned(),
            status: is.word().to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: generation,
            last_transition_time: Time(now),
        });
        return;
    };
    if known.status != is.word() {
        is.word().clone_into(&mut known.status);
        known.last_transition_time = Time(now);
    }
    reason.clone_into(&mut known.reason);
    known.message = message;
    known.observed_generation = generation;
}

/// The condition of a type.
pub fn get<'a>(conditions: &'a Conditions, kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Whether a condition is there and True.
pub fn is_true(conditions: &Conditions, kind: &str) -> bool {
    get(conditions, kind).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_moves_only_when_the_status_changes() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let mut conditions = Conditions::new();
        set(&mut conditions, "Ready", Is::False, "Waiting", "", Some(1), at(1));
        set(
            &mut conditions,
            "Ready",
            Is::False,
            "StillWaiting",
            "for x",
            Some(2),
            at(2),
        );
        let condition = get(&conditions, "Ready").unwrap();
        assert_eq!(
            (condition.last_transition_time.0, condition.reason.as_str()),
            (at(1), "StillWaiting")
        );
        assert_eq!(condition.observed_generation, Some(2));
        set(&mut conditions, "Ready", Is::True, "Done", "", Some(2), at(3));
        assert_eq!(get(&conditions, "Ready").unwrap().last_transition_time.0, at(3));
        assert_eq!(conditions.len(), 1);
        assert!(is_true(&conditions, "Ready"));
    }
}
