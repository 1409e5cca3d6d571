use super::*;
use crate::fixtures::{Answer, Api as Scripted, POD, TASK, subtask};
use serde_json::json;
use std::time::Duration;

const LIST: &str = "GET /apis/agentrun.dev/v1alpha1/subtasks";
const WATCH: &str = "GET /apis/agentrun.dev/v1alpha1/subtasks?watch";

async fn until(gateway: &Gateway, holds: impl Fn(&Board) -> bool) {
    let waiting = async {
        while !holds(&gateway.board()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), waiting)
        .await
        .expect("the board did not change in time");
}

fn list(items: serde_json::Value) -> Answer {
    let kind = json!({"apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTaskList"});
    let mut list = kind;
    list["metadata"] = json!({"resourceVersion": "10"});
    list["items"] = items;
    Answer::ok(&list)
}

#[tokio::test]
async fn one_object_that_cannot_be_read_does_not_stop_the_watch() {
    let bad = json!({"metadata": {"name": "bad", "namespace": "team-a", "uid": "bad"}, "spec": {"task": 7}});
    let ended = subtask(|o| o["status"]["outcome"] = json!("Success"));
    let api = Scripted::default()
        .on(LIST, [list(json!([bad, subtask(|_| ())]))])
        .on(WATCH, [Answer::ok(&json!({"type": "MODIFIED", "object": ended}))]);
    let gateway = api.gateway();
    let following = tokio::spawn(follow::<SubTask>(api.client(), Arc::clone(&gateway)));
    until(&gateway, |board| {
        board.name_of(TASK).is_some() && board.work_of(POD).is_empty()
    })
    .await;
    assert!(gateway.board().name_of("bad").is_none());
    following.abort();
}

#[tokio::test(start_paused = true)]
async fn a_failing_watch_recovers_by_itself() {
    let api = Scripted::default().on(LIST, [Answer::refusal(500), list(json!([subtask(|_| ())]))]);
    let gateway = api.gateway();
    let following = tokio::spawn(follow::<SubTask>(api.client(), Arc::clone(&gateway)));
    let waiting = async {
        while gateway.board().name_of(TASK).is_none() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(10), waiting)
        .await
        .expect("the watch did not recover");
    assert!(
        gateway
            .metrics
            .watch_failures
            .with_label_values(&["SubTask"])
            .get()
            > 0
    );
    following.abort();
}
