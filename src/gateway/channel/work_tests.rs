use super::*;
use crate::fixtures::{RUN, TASK, run, subtask};
use serde_json::json;
use std::sync::Arc;

fn id(attempt: i32) -> AttemptId {
    AttemptId {
        uid: TASK.into(),
        attempt,
    }
}

fn live(stopped: bool) -> Live {
    let run = run(|o| {
        if stopped {
            o["status"]["cancelRequestedAt"] = json!("2030-01-01T00:00:00Z");
        }
    });
    Live {
        id: id(1),
        subtask: Arc::new(subtask(|_| ())),
        run: Some(Arc::new(run)),
    }
}

fn assigned() -> Stage {
    let source = Source::RunFile {
        run_uid: RUN.into(),
        path: "a".into(),
    };
    Stage::Assigned {
        at: Timestamp::UNIX_EPOCH,
        allowed: Allowed::from([("abc".into(), source)]),
        cancelled: false,
    }
}

fn kinds(actions: &[Action]) -> Vec<&'static str> {
    let kind = |action: &Action| match action {
        Action::Prepare(_) => "prepare",
        Action::Cancel(_) => "cancel",
    };
    actions.iter().map(kind).collect()
}

#[tokio::test]
async fn work_is_prepared_once_and_again_when_it_waits() {
    let mut work = Work::default();
    let now = Instant::now();
    assert_eq!(kinds(&work.consider(vec![live(false)], now)), ["prepare"]);
    assert!(work.consider(vec![live(false)], now).is_empty());
    work.set(id(1), Stage::Waiting { since: now });
    assert!(work.is_waiting());
    assert_eq!(
        kinds(&work.consider(vec![live(false)], now + bounds_retry())),
        ["prepare"]
    );
    assert_eq!(work.stage(&id(1)).unwrap().since(), Some(now));
}

fn bounds_retry() -> std::time::Duration {
    crate::bounds::RETRY
}

#[tokio::test]
async fn a_stop_cancels_what_runs_once_and_starts_nothing() {
    let mut work = Work::default();
    assert!(work.consider(vec![live(true)], Instant::now()).is_empty());
    work.set(id(1), assigned());
    assert_eq!(
        kinds(&work.consider(vec![live(true)], Instant::now())),
        ["cancel"]
    );
    assert!(work.consider(vec![live(true)], Instant::now()).is_empty());
}

#[tokio::test]
async fn what_is_no_longer_on_the_board_is_cancelled_unless_its_end_is_reported() {
    let mut work = Work::default();
    work.set(id(1), assigned());
    assert_eq!(kinds(&work.consider(Vec::new(), Instant::now())), ["cancel"]);
    work.set(id(1), Stage::Ending);
    assert!(work.consider(Vec::new(), Instant::now()).is_empty());
    assert!(work.stage(&id(1)).is_none());
}

#[tokio::test]
async fn only_contents_of_what_is_assigned_are_known() {
    let mut work = Work::default();
    assert!(work.source("abc").is_none());
    work.set(id(1), assigned());
    assert!(work.source("abc").is_some());
    assert!(work.source("other").is_none());
    work.set(id(1), Stage::Ending);
    assert!(work.source("abc").is_none());
}
