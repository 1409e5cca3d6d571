use super::*;
use crate::fixtures::{POD, RUN, TASK, run, subtask};
use serde_json::json;

fn pod(uid: &str) -> Touched {
    Touched::Pods(BTreeSet::from([uid.to_owned()]))
}

#[test]
fn an_event_touches_the_pods_before_and_after() {
    let mut board = Board::default();
    assert_eq!(board.put_subtask(subtask(|_| ())), pod(POD));
    let moved = subtask(|o| {
        o["status"]["sandbox"]["podUID"] = json!("other");
        o["status"]["attempts"] = json!([{"number": 2, "podUID": "other"}]);
    });
    let both = Touched::Pods(BTreeSet::from(["other".to_owned(), POD.to_owned()]));
    assert_eq!(board.put_subtask(moved), both);
    assert!(board.work_of(POD).is_empty());
    assert_eq!(board.work_of("other")[0].id.attempt, 2);
}

#[test]
fn of_work_that_is_over_only_the_name_stays() {
    let mut board = Board::default();
    board.put_subtask(subtask(|_| ()));
    assert_eq!(
        board.put_subtask(subtask(|o| o["status"]["outcome"] = json!("Success"))),
        pod(POD)
    );
    assert!(board.live(TASK).is_none());
    assert_eq!(board.name_of(TASK).unwrap().name, "st-1");
    assert!(board.by_pod.is_empty() && board.by_run.is_empty());
    assert_eq!(board.remove_subtask(TASK), Touched::Nobody);
    assert!(board.name_of(TASK).is_none());
}

#[test]
fn a_run_touches_the_pods_that_work_for_it() {
    let mut board = Board::default();
    assert_eq!(board.put_run(run(|_| ())), Touched::Nobody);
    board.put_subtask(subtask(|_| ()));
    assert_eq!(board.put_run(run(|_| ())), pod(POD));
    assert!(board.work_of(POD)[0].run.is_some());
    assert_eq!(
        board.put_run(run(|o| o["status"]["phase"] = json!("Failed"))),
        pod(POD)
    );
    assert!(board.run(RUN).is_none());
}

#[test]
fn a_new_list_forgets_what_is_not_in_it() {
    let mut board = Board::default();
    board.put_subtask(subtask(|_| ()));
    board.put_subtask(subtask(|o| o["metadata"]["uid"] = json!("second")));
    assert_eq!(
        board.retain_subtasks(&BTreeSet::from(["second".to_owned()])),
        pod(POD)
    );
    assert!(board.name_of(TASK).is_none());
    assert_eq!(board.work_of(POD).len(), 1);
}
