//! Why a reconcile did not come to its end. Waiting is no error: it is data in a status.

use agentrun_api::ProgressingReason;
use kube::core::Status;
use kube::core::response::StatusDetails;
use std::time::Duration;

/// A reconcile that has to be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Somebody wrote the object since we read it: read again.
    #[error("the object has changed since it was read")]
    Conflict,
    /// The object, or its namespace, is on its way out.
    #[error("the object is gone or its namespace is terminating")]
    Gone,
    /// An object of ours exists with another owner.
    #[error("{kind} {name} exists and belongs to something else: delete or rename it")]
    NameTaken {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A quota of the namespace is used up.
    #[error("QuotaExceeded: {0}")]
    QuotaExceeded(String),
    /// The installation is not complete yet.
    #[error("the installation is not ready: {0}")]
    NotReady(String),
    /// The API server said no.
    #[error("the API server refused: {0}")]
    Api(#[source] kube::Error),
}

impl ReconcileError {
    /// A word for metrics, one of a fixed few.
    pub fn category(&self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Gone => "gone",
            Self::NameTaken { .. } => "name_taken",
            Self::QuotaExceeded(_) => "quota_exceeded",
            Self::NotReady(_) => "not_ready",
            Self::Api(_) => "api",
        }
    }

    /// What keeps the object from going on until somebody does something about it, for its status. `None` for what
    /// passes by itself.
    pub fn obstacle(&self) -> Option<(ProgressingReason, String)> {
        let reason = match self {
            Self::Conflict | Self::Gone => return None,
            Self::NameTaken { .. } => ProgressingReason::NameTaken,
            Self::QuotaExceeded(_) => ProgressingReason::QuotaExceeded,
            Self::NotReady(_) => ProgressingReason::NotReady,
            Self::Api(error) => {
                return is_refused(error).map(|message| (ProgressingReason::Refused, message));
            }
        };
        Some((reason, self.to_string()))
    }

    /// The pause before the next try after `failures` in a row: conflicts come back at once, the rest doubles from
    /// 200 ms to one minute.
    pub fn pause(&self, failures: u32) -> Duration {
        match self {
            Self::Conflict | Self::Gone => Duration::from_millis(20 << failures.min(8)),
            _ => Duration::from_millis(200 << failures.min(8)).min(Duration::from_mins(1)),
        }
    }

    /// Whether a person should see it in the log as a fault.
    pub fn is_fault(&self) -> bool {
        !matches!(self, Self::Conflict | Self::Gone)
    }
}

impl From<kube::Error> for ReconcileError {
    /// The API server answers a failed `test` of a JSON patch with 422, a stale version with 409, an object that is
    /// gone with 404, and a namespace on its way out with 403 and that cause.
    fn from(error: kube::Error) -> Self {
        let kube::Error::Api(status) = &error else {
            return Self::Api(error);
        };
        if status.code == 409 && status.reason != "AlreadyExists" || test_failed(status) {
            return Self::Conflict;
        }
        if let Some(message) = exceeded_quota(&error) {
            return Self::QuotaExceeded(message);
        }
        if status.code == 404 || is_terminating(&error) {
            return Self::Gone;
        }
        Self::Api(error)
    }
}

/// Whether the `test` of a JSON patch failed. The answer has the code of an invalid object, a text that names nothing,
/// and, unlike that, no kind in its details (seen on v1.37: `NewGenericServerResponse` of apimachinery).
fn test_failed(status: &Status) -> bool {
    let names_kind = |details: &StatusDetails| !details.kind.is_empty();
    status.code == 422 && !status.details.as_ref().is_some_and(names_kind)
}

/// Whether a write was refused since the namespace is being deleted.
pub fn is_terminating(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403
        && (status.message.contains("being terminated") || status.reason == "NamespaceTerminating"))
}

/// The message when a ResourceQuota does not let an object in.
pub fn exceeded_quota(error: &kube::Error) -> Option<String> {
    match error {
        kube::Error::Api(status) if status.code == 403 && status.message.contains("exceeded quota") => {
            Some(status.message.clone())
        }
        _ => None,
    }
}

/// The message when the API server, or an admission plugin, refuses an object as such.
pub fn is_refused(error: &kube::Error) -> Option<String> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 422) && !is_terminating(error) => {
            Some(status.message.clone())
        }
        _ => None,
    }
}

/// Whether an object exists already.
pub fn already_exists(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 && status.reason == "AlreadyExists")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str, message: &str) -> ReconcileError {
        let status = Status {
            code,
            reason: reason.to_owned(),
            message: message.to_owned(),
            ..Status::default()
        };
        kube::Error::Api(Box::new(status)).into()
    }

    #[test]
    fn what_somebody_has_to_do_something_about_is_an_obstacle_and_what_passes_is_none() {
        let obstacle = |error: ReconcileError| error.obstacle().map(|(reason, _)| reason);
        let taken = ReconcileError::NameTaken {
            kind: "SubTask",
            name: "a".into(),
        };
        assert_eq!(obstacle(taken), Some(ProgressingReason::NameTaken));
        let quota = api(403, "Forbidden", "exceeded quota: small");
        assert_eq!(obstacle(quota), Some(ProgressingReason::QuotaExceeded));
        let webhook = api(403, "Forbidden", "admission webhook says no");
        assert_eq!(obstacle(webhook), Some(ProgressingReason::Refused));
        assert_eq!(obstacle(api(409, "Conflict", "")), None);
        assert_eq!(obstacle(api(500, "InternalError", "")), None);
    }

    #[test]
    fn a_failed_test_of_a_patch_is_a_conflict_and_an_invalid_object_is_an_obstacle() {
        let message = "the server rejected our request due to an error in our request";
        let answer = |kind: &str| {
            let details = StatusDetails {
                name: String::new(),
                group: String::new(),
                kind: kind.to_owned(),
                uid: String::new(),
                causes: Vec::new(),
                retry_after_seconds: 0,
            };
            let status = Status {
                code: 422,
                reason: "Invalid".to_owned(),
                message: message.to_owned(),
                details: Some(details),
                ..Status::default()
            };
            ReconcileError::from(kube::Error::Api(Box::new(status)))
        };
        assert!(matches!(answer(""), ReconcileError::Conflict));
        let invalid = answer("AgentRun");
        let refused = (ProgressingReason::Refused, message.to_owned());
        assert_eq!(invalid.obstacle(), Some(refused));
    }
}
