use super::*;
use crate::fixtures::{POD, TASK, run, subtask};
use serde_json::{Value, json};

fn placed(change: impl FnOnce(&mut Value)) -> Option<(String, i32)> {
    placement(&subtask(change)).map(|(pod, id)| (pod.to_owned(), id.attempt))
}

#[test]
fn an_assigned_attempt_without_end_is_placed_on_its_pod() {
    assert_eq!(placed(|_| ()), Some((POD.to_owned(), 1)));
    assert_eq!(placement(&subtask(|_| ())).unwrap().1.uid, TASK);
}

#[test]
fn ended_unassigned_or_moved_work_is_not_placed() {
    type Change = fn(&mut Value);
    let table: [(&str, Change); 5] = [
        ("outcome", |o| o["status"]["outcome"] = json!("Success")),
        ("attempt ended", |o| {
            o["status"]["attempts"][0]["outcome"] = json!("Error");
        }),
        ("no sandbox", |o| o["status"]["sandbox"] = json!(null)),
        ("another Pod", |o| {
            o["status"]["attempts"][0]["podUID"] = json!("old-pod");
        }),
        ("no attempt", |o| o["status"]["attempts"] = json!([])),
    ];
    for (name, change) in table {
        assert_eq!(placed(change), None, "{name}");
    }
}

#[test]
fn only_the_newest_attempt_counts() {
    let both = json!([{"number": 2, "podUID": POD}, {"number": 1, "podUID": "old", "outcome": "Error"}]);
    assert_eq!(
        placed(|o| o["status"]["attempts"] = both),
        Some((POD.to_owned(), 2))
    );
}

#[test]
fn deleted_stopped_and_cancelled_work_is_stopped() {
    let time = "2030-01-01T00:00:00Z";
    let plain = subtask(|_| ());
    assert!(!is_stopped(&plain, None));
    assert!(!is_stopped(&plain, Some(&run(|_| ()))));
    assert!(is_stopped(
        &plain,
        Some(&run(|o| o["status"]["cancelRequestedAt"] = json!(time)))
    ));
    assert!(is_stopped(
        &plain,
        Some(&run(|o| o["metadata"]["deletionTimestamp"] = json!(time)))
    ));
    assert!(is_stopped(
        &subtask(|o| o["metadata"]["deletionTimestamp"] = json!(time)),
        None
    ));
    let annotated = subtask(|o| o["metadata"]["annotations"] = json!({STOP: "RunFailedFast"}));
    assert!(is_stopped(&annotated, None));
}
