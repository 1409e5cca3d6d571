//! When certificates are made, renewed and replaced; time is an argument.

use jiff::{SignedDuration, Timestamp};

/// Life of an authority.
pub(super) const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// Life of a serving certificate.
pub(super) const SERVING_LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Certificates begin before they are made: clocks of nodes differ.
pub(super) const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// How long Pods are given both authorities before the new one signs: longer than any sandbox lives.
pub(super) const OVERLAP: SignedDuration = SignedDuration::from_hours(30 * 24);

/// From when to when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Not valid before.
    pub(super) from: Timestamp,
    /// Not valid after.
    pub(super) to: Timestamp,
}

impl Span {
    /// The span of a certificate that is made now.
    pub(super) fn starting(now: Timestamp, life: SignedDuration) -> Self {
        Self {
            from: now - BACKDATED,
            to: now + life,
        }
    }

    /// Two thirds of its life are over.
    fn is_due(&self, now: Timestamp) -> bool {
        let life = self.to.duration_since(self.from);
        now >= self.from + life / 3 * 2
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now >= self.to
    }
}

/// What happens to the authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuthorityStep {
    /// Nothing.
    Keep,
    /// The first one, or none is valid.
    Create,
    /// A second one is made; Pods get both, the first one signs.
    Prepare,
    /// The second one signs from now on.
    Promote,
}

/// Decides about the authority that signs and the one that will.
pub(super) fn authority_step(active: Option<Span>, next: Option<Span>, now: Timestamp) -> AuthorityStep {
    let active = active.filter(|span| !span.is_over(now));
    let next = next.filter(|span| !span.is_over(now));
    match (active, next) {
        (None, None) => AuthorityStep::Create,
        (None, Some(_)) => AuthorityStep::Promote,
        (Some(_), Some(next)) if now >= next.from + BACKDATED + OVERLAP => AuthorityStep::Promote,
        (Some(active), None) if active.is_due(now) => AuthorityStep::Prepare,
        _ => AuthorityStep::Keep,
    }
}

/// The serving certificate as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Serving {
    /// When it is valid.
    pub(super) span: Span,
    /// Digest of the authority that signed it.
    pub(super) issuer: String,
    /// The authorities beside it.
    pub(super) bundle: String,
}

/// Whether a new serving certificate is made.
pub(super) fn serving_is_due(found: Option<&Serving>, issuer: &str, bundle: &str, now: Timestamp) -> bool {
    found.is_none_or(|found| found.issuer != issuer || found.bundle != bundle || found.span.is_due(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(days: i64) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24 * days)
    }

    fn authority(made: i64) -> Span {
        Span::starting(day(made), AUTHORITY_LIFE)
    }

    #[test]
    fn the_first_authority_is_made_at_once_and_kept_for_two_thirds_of_its_life() {
        assert_eq!(authority_step(None, None, day(0)), AuthorityStep::Create);
        assert_eq!(
            authority_step(Some(authority(0)), None, day(0)),
            AuthorityStep::Keep
        );
        assert_eq!(
            authority_step(Some(authority(0)), None, day(2432)),
            AuthorityStep::Keep
        );
        assert_eq!(
            authority_step(Some(authority(0)), None, day(2434)),
            AuthorityStep::Prepare
        );
    }

    #[test]
    fn a_prepared_authority_signs_only_when_every_sandbox_knows_it() {
        assert_eq!(
            authority_step(Some(authority(0)), Some(authority(2434)), day(2463)),
            AuthorityStep::Keep
        );
        assert_eq!(
            authority_step(Some(authority(0)), Some(authority(2434)), day(2464)),
            AuthorityStep::Promote
        );
    }

    #[test]
    fn an_authority_that_is_over_is_replaced_at_once() {
        assert_eq!(
            authority_step(Some(authority(0)), Some(authority(3640)), day(3651)),
            AuthorityStep::Promote
        );
        assert_eq!(
            authority_step(Some(authority(0)), None, day(3651)),
            AuthorityStep::Create
        );
    }

    #[test]
    fn a_serving_certificate_is_renewed_at_two_thirds_and_when_its_authority_changes() {
        let found = Serving {
            span: Span::starting(day(0), SERVING_LIFE),
            issuer: "one".to_owned(),
            bundle: "pem".to_owned(),
        };
        assert!(serving_is_due(None, "one", "pem", day(0)));
        assert!(!serving_is_due(Some(&found), "one", "pem", day(59)));
        assert!(serving_is_due(Some(&found), "one", "pem", day(61)));
        assert!(serving_is_due(Some(&found), "two", "pem", day(0)));
        assert!(serving_is_due(Some(&found), "one", "pem and pem", day(0)));
    }
}
