use super::*;
use crate::conditions::{self, Is};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn status(generation: i64, reason: ReadyReason, inspection: Option<SkillInspection>) -> SkillStatus {
    let mut status = SkillStatus {
        observed_generation: Some(generation),
        inspection,
        ..SkillStatus::default()
    };
    conditions::set(
        &mut status.conditions,
        READY,
        Is::False,
        reason.as_str(),
        "",
        Some(generation),
        NOW,
    );
    status
}

fn pod(name: &str) -> InspectionPod {
    InspectionPod {
        name: name.into(),
        uid: format!("uid-{name}"),
        created: NOW,
        deleting: false,
        failure: None,
    }
}

fn announced(name: &str) -> SkillInspection {
    SkillInspection {
        pod_name: name.into(),
        pod_uid: format!("uid-{name}"),
    }
}

#[test]
fn a_new_skill_is_read_by_one_pod_that_is_written_down_and_then_waited_for() {
    let empty = SkillStatus::default();
    assert_eq!(step(Some(1), &empty, "a", &[], NOW), Step::Create);
    assert_eq!(
        step(Some(1), &empty, "a", &[pod("a")], NOW),
        Step::Announce(announced("a"))
    );
    let told = status(1, ReadyReason::Pending, Some(announced("a")));
    assert_eq!(step(Some(1), &told, "a", &[pod("a")], NOW), Step::Wait);
}

#[test]
fn a_pod_that_was_made_again_is_written_down_again() {
    let told = status(
        1,
        ReadyReason::Pending,
        Some(SkillInspection {
            pod_name: "a".into(),
            pod_uid: "old".into(),
        }),
    );
    assert_eq!(
        step(Some(1), &told, "a", &[pod("a")], NOW),
        Step::Announce(announced("a"))
    );
}

#[test]
fn a_result_ends_the_inspection_and_its_pod() {
    for reason in [ReadyReason::Ready, ReadyReason::Invalid] {
        let found = status(1, reason, None);
        assert_eq!(
            step(Some(1), &found, "a", &[pod("a")], NOW),
            Step::Settled {
                delete: vec!["a".into()]
            }
        );
        assert_eq!(
            step(Some(1), &found, "a", &[], NOW),
            Step::Settled { delete: vec![] }
        );
    }
}

#[test]
fn a_changed_skill_is_read_again_once_the_older_pod_goes() {
    let found = status(1, ReadyReason::Ready, None);
    assert_eq!(step(Some(2), &found, "b", &[], NOW), Step::Create);
    assert_eq!(
        step(Some(2), &found, "b", &[pod("a")], NOW),
        Step::Delete("a".into())
    );
}

#[test]
fn a_failed_inspection_is_named_and_tried_again_after_a_pause() {
    let failure = Failure {
        reason: ReadyReason::ImagePullFailed,
        message: "no such image".into(),
    };
    let told = status(1, ReadyReason::Pending, Some(announced("a")));
    let failed = InspectionPod {
        failure: Some(failure.clone()),
        ..pod("a")
    };
    let again = NOW + RETRY_AFTER;
    let pods = [failed];
    assert_eq!(
        step(Some(1), &told, "a", &pods, NOW),
        Step::Failed { failure, again }
    );
    assert_eq!(step(Some(1), &told, "a", &pods, again), Step::Delete("a".into()));
    let going = [InspectionPod {
        deleting: true,
        ..pods[0].clone()
    }];
    assert_eq!(step(Some(1), &told, "a", &going, again), Step::Wait);
}
