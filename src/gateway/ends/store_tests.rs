use super::*;
use crate::fixtures::{Answer, Api, GET_TASK, LIST_TASKS, PATCH_TASK, POD, TASK, subtask};
use agentrun_protocol::work::AttemptId;
use serde_json::json;

fn key(attempt: i32) -> Key {
    Key {
        id: AttemptId {
            uid: TASK.into(),
            attempt,
        },
        pod_uid: POD.into(),
        waited: None,
    }
}

fn report() -> Report {
    Report {
        outcome: Some(agentrun_api::Outcome::Success),
        reason: Some("Completed".into()),
        ..Report::default()
    }
}

/// Stores attempt 1 on a gateway whose watch has seen the plain sub-task.
async fn stored(api: &Api) -> Stored {
    stored_as(api, &key(1)).await
}

async fn stored_as(api: &Api, key: &Key) -> Stored {
    let gateway = api.gateway();
    gateway.change(|board| board.put_subtask(subtask(|_| ())));
    store(&gateway, "team-a", key, report()).await
}

fn list(items: &[SubTask]) -> Answer {
    let kinds = json!({"apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTaskList", "metadata": {}});
    let mut list = kinds;
    list["items"] = json!(items);
    Answer::ok(&list)
}

#[tokio::test]
async fn a_result_costs_one_write_and_no_read() {
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    assert_eq!(stored(&api).await, Stored::Written);
    assert_eq!(api.seen().len(), 1);
}

#[tokio::test]
async fn a_conflict_is_read_again_and_written_on_the_new_version() {
    let newer = subtask(|o| o["metadata"]["resourceVersion"] = json!("8"));
    for code in [409, 422] {
        let api = Api::default()
            .on(PATCH_TASK, [Answer::refusal(code), Answer::ok(&newer)])
            .on(GET_TASK, [Answer::ok(&newer)]);
        assert_eq!(stored(&api).await, Stored::Written);
        let versions: Vec<_> = api
            .patches()
            .iter()
            .map(|patch| patch[0]["value"].clone())
            .collect();
        assert_eq!(versions, [json!("7"), json!("8")], "{code}");
    }
}

#[tokio::test]
async fn an_outcome_that_is_already_there_wins() {
    let ended = subtask(|o| {
        o["metadata"]["resourceVersion"] = json!("8");
        o["status"]["outcome"] = json!("Cancelled");
    });
    let api = Api::default()
        .on(PATCH_TASK, [Answer::refusal(409)])
        .on(GET_TASK, [Answer::ok(&ended)]);
    assert_eq!(stored(&api).await, Stored::Dropped);
    assert_eq!(api.patches().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_failing_api_server_is_tried_again() {
    let answers = [
        Answer::refusal(500),
        Answer::refusal(429),
        Answer::refusal(503),
        Answer::ok(&subtask(|_| ())),
    ];
    let api = Api::default()
        .on(PATCH_TASK, answers)
        .on(GET_TASK, [Answer::refusal(500), Answer::ok(&subtask(|_| ()))]);
    assert_eq!(stored(&api).await, Stored::Written);
    assert_eq!(api.patches().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_never_takes_it_leaves_the_result_to_the_runtime() {
    let api = Api::default()
        .on(PATCH_TASK, [Answer::refusal(500)])
        .on(GET_TASK, [Answer::refusal(500)]);
    assert_eq!(stored(&api).await, Stored::GivenUp);
}

// F007
#[tokio::test]
async fn a_result_for_an_object_that_is_gone_is_dropped() {
    let api = Api::default().on(PATCH_TASK, [Answer::refusal(404)]);
    assert_eq!(stored(&api).await, Stored::Dropped);
}

#[tokio::test]
async fn a_result_for_an_object_that_no_watch_has_shown_is_searched_for() {
    let api = Api::default().on(LIST_TASKS, [list(&[])]);
    assert_eq!(
        store(&api.gateway(), "team-a", &key(1), report()).await,
        Stored::Dropped
    );
    let there = subtask(|_| ());
    let api = Api::default()
        .on(LIST_TASKS, [list(std::slice::from_ref(&there))])
        .on(GET_TASK, [Answer::ok(&there)])
        .on(PATCH_TASK, [Answer::ok(&there)]);
    assert_eq!(
        store(&api.gateway(), "team-a", &key(1), report()).await,
        Stored::Written
    );
}

#[tokio::test]
async fn an_older_attempt_is_dropped_and_a_stale_cache_is_not_believed() {
    let second = subtask(|o| {
        o["status"]["attempts"] = json!([
            {"number": 1, "podUID": "old", "outcome": "Error"}, {"number": 2, "podUID": POD},
        ]);
    });
    let api = Api::default()
        .on(GET_TASK, [Answer::ok(&second)])
        .on(PATCH_TASK, [Answer::ok(&second)]);
    assert_eq!(stored_as(&api, &key(0)).await, Stored::Dropped);
    assert!(api.patches().is_empty());
    // The watch has only shown the first attempt yet.
    assert_eq!(stored_as(&api, &key(2)).await, Stored::Written);
}

#[tokio::test]
async fn a_result_of_another_pod_is_dropped() {
    let api = Api::default().on(GET_TASK, [Answer::ok(&subtask(|_| ()))]);
    let foreign = Key {
        pod_uid: "other".into(),
        ..key(1)
    };
    assert_eq!(stored_as(&api, &foreign).await, Stored::Dropped);
    assert!(api.patches().is_empty());
}

#[tokio::test]
async fn a_result_that_the_schema_refuses_is_stored_without_its_content() {
    let api = Api::default()
        .on(PATCH_TASK, [Answer::refusal(422), Answer::ok(&subtask(|_| ()))])
        .on(GET_TASK, [Answer::ok(&subtask(|_| ()))]);
    assert_eq!(stored(&api).await, Stored::Written);
    let second = api.patches()[1].to_string();
    assert!(
        second.contains("OutputNotInline") && second.contains("scripted 422"),
        "{second}"
    );
}
