//! Kubernetes Events: at most one a transition, with stable reasons.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};

/// The longest note that the API server takes.
const MAX_NOTE: usize = 1024;

/// What happened; the reasons are part of the API that users filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventReason {
    /// A run is valid and everything it names is there.
    Admitted,
    /// A run has a mistake, or waits for something that it names.
    NotAdmitted,
    /// The first sub-task of a run started.
    Started,
    /// A run or sub-task ended well.
    Succeeded,
    /// A run or sub-task ended badly.
    Failed,
    /// A run or sub-task was cancelled.
    Cancelled,
    /// A sub-task is tried again.
    Retrying,
    /// A delegate does not start: the run's quota is used up, or it would be too deep.
    DelegationRefused,
    /// A sandbox Pod was made.
    SandboxCreated,
    /// A sandbox was lost while it worked.
    SandboxLost,
    /// A claim may still be written by a Pod on a lost node.
    VolumeQuarantined,
    /// User data was deleted.
    Released,
}

impl EventReason {
    /// As it stands in the Event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "Admitted",
            Self::NotAdmitted => "NotAdmitted",
            Self::Started => "Started",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Cancelled => "Cancelled",
            Self::Retrying => "Retrying",
            Self::DelegationRefused => "DelegationRefused",
            Self::SandboxCreated => "SandboxCreated",
            Self::SandboxLost => "SandboxLost",
            Self::VolumeQuarantined => "VolumeQuarantined",
            Self::Released => "Released",
        }
    }

    const fn type_(self) -> EventType {
        match self {
            Self::NotAdmitted
            | Self::DelegationRefused
            | Self::Failed
            | Self::SandboxLost
            | Self::VolumeQuarantined => EventType::Warning,
            Self::Admitted
            | Self::Started
            | Self::Succeeded
            | Self::Cancelled
            | Self::Retrying
            | Self::SandboxCreated
            | Self::Released => EventType::Normal,
        }
    }
}

/// Publishes Events; clones share its memory of what was published.
#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl Events {
    /// `instance` names this replica.
    pub fn new(client: Client, instance: &str) -> Self {
        let reporter = Reporter {
            controller: "agentrun-operator".to_owned(),
            instance: Some(instance.to_owned()),
        };
        Self {
            recorder: Recorder::new(client, reporter),
        }
    }

    /// Publishes one; a failure is logged and never stops a reconcile. `action` is one word for what the operator did.
    pub async fn publish(&self, about: &ObjectReference, reason: EventReason, action: &str, note: &str) {
        let event = Event {
            type_: reason.type_(),
            reason: reason.as_str().to_owned(),
            note: Some(bounded(note)),
            action: action.to_owned(),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, about).await {
            tracing::debug!(%error, reason = reason.as_str(), "an Event was not published");
        }
    }
}

fn bounded(note: &str) -> String {
    let end = (0..=MAX_NOTE.min(note.len()))
        .rev()
        .find(|end| note.is_char_boundary(*end));
    note[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_notes_are_cut_at_a_character() {
        assert_eq!(bounded("short"), "short");
        assert_eq!(bounded(&"ü".repeat(600)).len(), MAX_NOTE);
        assert_eq!(bounded(&format!("x{}", "ü".repeat(600))).len(), MAX_NOTE - 1);
    }
}
