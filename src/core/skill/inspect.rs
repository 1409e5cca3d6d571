//! What follows for a skill whose files are a mount (`image`, `claim`): it is read by one Pod, which reports to the
//! gateway. Pure: the time is an argument.

use agentrun_api::names::conditions::READY;
use agentrun_api::{ReadyReason, SkillInspection, SkillStatus};
use jiff::Timestamp;
use std::time::Duration;

/// How long after the start of an inspection that failed another one starts.
pub const RETRY_AFTER: Duration = Duration::from_mins(1);

/// The Pod that reads a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InspectionPod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// When it was made.
    pub created: Timestamp,
    /// It is being deleted.
    pub deleting: bool,
    /// Why it will give no result, if that is known.
    pub failure: Option<Failure>,
}

/// Why an inspection gives no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// For the condition `Ready`.
    pub reason: ReadyReason,
    /// What was found.
    pub message: String,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The result is there: these Pods are of no use any more.
    Settled {
        /// Names of Pods to delete.
        delete: Vec<String>,
    },
    /// Make the Pod.
    Create,
    /// Write down which Pod may report, so that the gateway believes it and no other.
    Announce(SkillInspection),
    /// Say why there is no result yet, and look again then.
    Failed {
        /// Why.
        failure: Failure,
        /// When another Pod may be made.
        again: Timestamp,
    },
    /// Delete this Pod: it is of an older generation, or its failure is old enough for another try.
    Delete(String),
    /// The Pod reports, or goes.
    Wait,
}

/// Decides. `wanted` is the name of the Pod of this generation.
pub fn step(
    generation: Option<i64>,
    status: &SkillStatus,
    wanted: &str,
    pods: &[InspectionPod],
    now: Timestamp,
) -> Step {
    if is_settled(generation, status) {
        let left = pods.iter().filter(|pod| !pod.deleting);
        return Step::Settled {
            delete: left.map(|pod| pod.name.clone()).collect(),
        };
    }
    if let Some(older) = pods.iter().find(|pod| pod.name != wanted && !pod.deleting) {
        return Step::Delete(older.name.clone());
    }
    let Some(pod) = pods.iter().find(|pod| pod.name == wanted) else {
        return Step::Create;
    };
    if pod.deleting {
        return Step::Wait;
    }
    if let Some(failure) = &pod.failure {
        let again = pod.created + RETRY_AFTER;
        return if again <= now {
            Step::Delete(pod.name.clone())
        } else {
            Step::Failed {
                failure: failure.clone(),
                again,
            }
        };
    }
    let announced = SkillInspection {
        pod_name: pod.name.clone(),
        pod_uid: pod.uid.clone(),
    };
    if status.inspection.as_ref() == Some(&announced) && status.observed_generation == generation {
        Step::Wait
    } else {
        Step::Announce(announced)
    }
}

/// Whether the status says what the files of this generation are.
fn is_settled(generation: Option<i64>, status: &SkillStatus) -> bool {
    let ready = crate::conditions::get(&status.conditions, READY);
    let known = ready.is_some_and(|ready| {
        [ReadyReason::Ready, ReadyReason::Invalid]
            .iter()
            .any(|reason| ready.reason == reason.as_str())
    });
    known && status.inspection.is_none() && status.observed_generation == generation
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
