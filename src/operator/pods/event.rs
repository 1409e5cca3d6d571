//! What a Pod waits for and only an Event says: volumes that are not there, not attached or not mounted.

use super::Waiting;
use agentrun_api::VolumeReadyReason;
use k8s_openapi::api::core::v1::Event;

/// What an Event about a pending Pod says it waits for; nothing if it says nothing of that kind.
pub fn read_event(event: &Event) -> Option<Waiting> {
    let reason = match event.reason.as_deref()? {
        "FailedMount" | "FailedMapVolume" | "FailedAttachVolume" | "FailedBinding" | "ProvisioningFailed" => {
            VolumeReadyReason::VolumeSetupFailed.as_str()
        }
        "VolumeResizeFailed" | "FailedCreatePodSandBox" => event.reason.as_deref()?,
        _ => return None,
    };
    Some(Waiting {
        reason: reason.to_owned(),
        message: event.message.clone().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(reason: &str, message: &str) -> Event {
        Event {
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            ..Event::default()
        }
    }

    // F031, F032
    #[test]
    fn a_missing_volume_is_named_by_its_event() {
        let words = "MountVolume.SetUp failed for volume \"secret-0\" : secret \"warehouse\" not found";
        let waiting = read_event(&event("FailedMount", words)).unwrap();
        assert_eq!(
            (waiting.reason.as_str(), waiting.message.as_str()),
            ("VolumeSetupFailed", words)
        );
    }

    #[test]
    fn events_about_progress_say_nothing() {
        assert_eq!(read_event(&event("Pulled", "image is there")), None);
    }
}
