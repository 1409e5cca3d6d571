use super::super::Injection;
use super::super::fixtures::platform;
use super::*;
use serde_json::json;

fn subject(source: SkillSource) -> Subject<'static> {
    Subject {
        namespace: "school",
        name: "math",
        uid: "44444444-4444-4444-4444-444444444444",
        generation: 2,
        source,
    }
}

fn image_skill() -> SkillSource {
    SkillSource::Image {
        reference: "registry.example.com/skills/math@sha256:bb".to_owned(),
    }
}

fn pod(status: serde_json::Value) -> Pod {
    let built = inspection_pod(&subject(image_skill()), &platform(Injection::Image)).unwrap();
    let mut pod = json!(built);
    pod["metadata"]["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    pod["status"] = status;
    serde_json::from_value(pod).unwrap()
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn the_pod_that_reads_a_skill_is_as_locked_down_as_a_sandbox() {
    insta::assert_yaml_snapshot!(inspection_pod(
        &subject(image_skill()),
        &platform(Injection::Image)
    ));
}

#[test]
fn a_claim_is_mounted_read_only_at_its_folder() {
    let source = SkillSource::Claim {
        claim: "skills".to_owned(),
        sub_path: "math/v2".to_owned(),
    };
    let spec = inspection_pod(&subject(source), &platform(Injection::Image))
        .unwrap()
        .spec
        .unwrap();
    let claim = spec.volumes.unwrap()[0].persistent_volume_claim.clone().unwrap();
    assert_eq!(
        (claim.claim_name.as_str(), claim.read_only),
        ("skills", Some(true))
    );
    let mount = spec.containers[0].volume_mounts.as_ref().unwrap()[0].clone();
    assert_eq!(
        (mount.sub_path.as_deref(), mount.read_only),
        (Some("math/v2"), Some(true))
    );
}

#[test]
fn each_generation_has_a_pod_of_its_own() {
    let (second, third) = (
        subject(image_skill()),
        Subject {
            generation: 3,
            ..subject(image_skill())
        },
    );
    assert_ne!(second.pod_name(), third.pod_name());
}

#[test]
fn an_image_that_cannot_be_pulled_is_named_after_a_grace() {
    let status = json!({"phase": "Pending", "containerStatuses": [{
        "name": "runtime", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
    }]});
    assert_eq!(read_inspection(&pod(status.clone()), at(1)).failure, None);
    let failure = read_inspection(&pod(status), at(30)).failure.unwrap();
    assert_eq!(failure.reason, ReadyReason::ImagePullFailed);
    assert_eq!(failure.message, "no such image");
}

#[test]
fn an_end_without_a_report_gives_the_last_words() {
    let status = json!({"phase": "Failed", "containerStatuses": [{
        "name": "runtime", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": {"exitCode": 5, "message": "refused\n"}},
    }]});
    let failure = read_inspection(&pod(status), at(1)).failure.unwrap();
    assert!(
        failure.message.ends_with("without a report: refused"),
        "{}",
        failure.message
    );
    let ended =
        json!({"phase": "Failed", "reason": "DeadlineExceeded", "message": "Pod was active too long"});
    let failure = read_inspection(&pod(ended), at(1)).failure.unwrap();
    assert!(
        failure.message.ends_with("Pod was active too long"),
        "{}",
        failure.message
    );
}

#[test]
fn a_pod_that_works_has_not_failed() {
    for phase in ["Pending", "Running", "Succeeded"] {
        assert_eq!(
            read_inspection(&pod(json!({"phase": phase})), at(30)).failure,
            None
        );
    }
}
