use super::*;
use crate::board::Board;
use crate::fixtures::{Answer as Reply, Api, POD, RUN, TASK, run, subtask};
use agentrun_api::SubTask;
use agentrun_protocol::agent::{CallPlace, Delegation, DelegationState};
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::work::AttemptId;
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const POST: &str = "POST /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks";

fn id() -> AttemptId {
    AttemptId {
        uid: TASK.into(),
        attempt: 1,
    }
}

fn lead() -> SubTask {
    subtask(|object| {
        object["metadata"]["name"] = json!(agentrun_core::names::subtask_name(
            "run-1", "lead", RUN, None, None
        ));
        object["spec"]["command"] = json!(null);
        object["spec"]["agent"] = json!({"prompt": "Count."});
        object["spec"]["role"] = json!("Lead");
        object["spec"]["task"] = json!("lead");
    })
}

fn asked(call: u32) -> Delegation {
    Delegation {
        at: CallPlace { turn: 1, call },
        agent: "bash".into(),
        description: String::new(),
        prompt: format!("Do {call}."),
        acceptance: Vec::new(),
        snapshot: None,
    }
}

fn name(call: u32) -> String {
    agentrun_core::agents::delegate::name(&lead(), &asked(call))
}

/// The delegate as an API server has it, changed by `change`.
fn delegate(call: u32, change: impl FnOnce(&mut Value)) -> SubTask {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
        "metadata": {
            "name": name(call), "namespace": "team-a", "uid": format!("child-{call}"), "resourceVersion": "9",
            "annotations": {"agentrun.dev/call": format!("1-{call}")},
        },
        "spec": {
            "runRef": {"name": "run-1", "uid": RUN}, "task": "bash", "role": "Delegate",
            "parentRef": {"name": lead().metadata.name, "uid": TASK},
            "agent": {"prompt": format!("Do {call}.")},
        },
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn ended(call: u32) -> SubTask {
    delegate(call, |object| {
        object["status"] = json!({
            "outcome": "Success", "reason": "Completed", "stopReason": "TurnCapped", "output": {"text": "done"},
            "artifacts": [{"path": "/mnt/user-data/outputs/a", "bytes": 1, "sha256": "aa"}],
            "acceptance": [{"criterion": "c", "checked": false, "holds": false}],
        });
    })
}

async fn ask_at(api: &Api, known: &BTreeSet<CallPlace>, asked: &[Delegation]) -> Vec<Answer> {
    let gateway = api.gateway();
    gateway.change(|board| board.put_run(run(|_| ())));
    gateway.change(|board| board.put_subtask(lead()));
    let answers = ask(&gateway, POD, &id(), known, asked).await;
    answers.into_iter().map(|(_, answer)| answer).collect()
}

#[tokio::test]
async fn a_delegation_becomes_one_sub_task_with_its_parent_its_run_and_its_place() {
    let api = Api::default().on(POST, [Reply::ok(&delegate(0, |_| ()))]);
    let answers = ask_at(&api, &BTreeSet::new(), &[asked(0)]).await;
    assert_eq!(answers, [Answer::Made(name(0))]);
    let seen = api.seen();
    let made = &seen.iter().find(|seen| seen.method == Method::POST).unwrap().body;
    assert_eq!(made["spec"]["parentRef"]["uid"], TASK);
    assert_eq!(made["spec"]["role"], "Delegate");
    assert_eq!(made["metadata"]["annotations"]["agentrun.dev/call"], "1-0");
    assert_eq!(made["metadata"]["ownerReferences"][0]["uid"], RUN);
    assert_eq!(made["metadata"]["finalizers"][0], "agentrun.dev/lease");
    assert_eq!(made["metadata"]["labels"]["agentrun.dev/run-uid"], RUN);
}

#[tokio::test]
async fn what_is_there_already_is_ours_only_with_the_same_parent_and_prompt() {
    let exists = || {
        let mut refusal = Reply::refusal(409);
        refusal.body["reason"] = json!("AlreadyExists");
        refusal
    };
    let get = format!(
        "GET /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks/{}",
        name(0)
    );
    let with = |there: SubTask| Api::default().on(POST, [exists()]).on(&get, [Reply::ok(&there)]);
    let none = BTreeSet::new();
    assert_eq!(
        ask_at(&with(delegate(0, |_| ())), &none, &[asked(0)]).await,
        [Answer::Made(name(0))]
    );
    let foreign = delegate(0, |object| object["spec"]["parentRef"]["uid"] = json!("other"));
    let answers = ask_at(&with(foreign), &none, &[asked(0)]).await;
    assert!(matches!(&answers[0], Answer::Refused(message) if message.contains("belongs to something else")));
    let other = delegate(0, |object| object["spec"]["agent"]["prompt"] = json!("Another."));
    let answers = ask_at(&with(other), &none, &[asked(0)]).await;
    assert!(matches!(&answers[0], Answer::Refused(message) if message.contains("with another prompt")));
}

// F102, F103
#[tokio::test]
async fn a_storm_makes_as_many_as_a_turn_may_and_is_told_of_the_rest() {
    let api = Api::default().on(POST, [Reply::ok(&delegate(0, |_| ()))]);
    let storm: Vec<_> = (0..100).map(asked).collect();
    let answers = ask_at(&api, &BTreeSet::new(), &storm).await;
    let made = answers.iter().filter(|answer| matches!(answer, Answer::Made(_)));
    assert_eq!(made.count(), 3);
    assert!(matches!(&answers[3], Answer::Refused(message) if message.contains("one turn may delegate 3")));
    assert_eq!(api.seen().len(), 3, "what is cut costs no request");
    let known = (0..3).map(|call| CallPlace { turn: 1, call }).collect();
    let answers = ask_at(&api, &known, &[asked(50)]).await;
    assert!(
        matches!(&answers[0], Answer::Refused(_)),
        "in a second message too: {answers:?}"
    );
}

#[tokio::test]
async fn a_failing_api_server_is_asked_again_and_a_refusing_one_is_not() {
    let failing = Api::default().on(POST, [Reply::refusal(500)]);
    assert_eq!(
        ask_at(&failing, &BTreeSet::new(), &[asked(0)]).await,
        [Answer::Later]
    );
    let refusing = Api::default().on(POST, [Reply::refusal(422)]);
    let answers = ask_at(&refusing, &BTreeSet::new(), &[asked(0)]).await;
    assert!(matches!(&answers[0], Answer::Refused(message) if message.contains("scripted 422")));
}

#[tokio::test]
async fn nothing_is_made_for_another_pod_an_older_attempt_or_work_that_is_being_stopped() {
    let api = Api::default();
    let gateway = api.gateway();
    gateway.change(|board| board.put_run(run(|_| ())));
    gateway.change(|board| board.put_subtask(lead()));
    let none = BTreeSet::new();
    let later = [(asked(0).at, Answer::Later)];
    assert_eq!(
        ask(&gateway, "another-pod", &id(), &none, &[asked(0)]).await,
        later
    );
    let older = AttemptId { attempt: 0, ..id() };
    assert_eq!(ask(&gateway, POD, &older, &none, &[asked(0)]).await, later);
    gateway.change(|board| {
        board.put_run(run(|o| {
            o["status"]["cancelRequestedAt"] = json!("2030-01-01T00:00:00Z");
        }))
    });
    assert_eq!(ask(&gateway, POD, &id(), &none, &[asked(0)]).await, later);
    assert!(api.seen().is_empty());
}

fn board() -> Board {
    let mut board = Board::default();
    board.put_run(run(|_| ()));
    board.put_subtask(lead());
    board
}

fn words(messages: &[ToRuntime]) -> Vec<String> {
    let word = |message: &ToRuntime| match message {
        ToRuntime::Delegated { at, delegation, .. } => match delegation {
            DelegationState::Created { .. } => format!("{} created", at.call),
            DelegationState::Refused { .. } => format!("{} refused", at.call),
            DelegationState::Ended(end) => format!("{} ended {}", at.call, end.outcome),
        },
        other => panic!("{other:?}"),
    };
    messages.iter().map(word).collect()
}

#[test]
fn a_delegate_is_told_when_it_is_made_and_when_it_has_ended_once_each() {
    let (mut told, mut board) = (Told::default(), board());
    assert!(told.hear(&id(), vec![asked(0), asked(1)], &board).is_empty());
    let next = told.next();
    assert_eq!(next[0].2.len(), 2);
    assert!(told.next().is_empty(), "it is under way");
    let answers = vec![
        (asked(0).at, Answer::Made(name(0))),
        (asked(1).at, Answer::Refused("no".into())),
    ];
    let said = told.answered(&id(), answers, &board);
    assert_eq!(words(&said), ["0 created", "1 refused"]);
    board.put_subtask(delegate(0, |_| ()));
    assert!(told.look(&board).is_empty());
    board.put_subtask(ended(0));
    assert_eq!(words(&told.look(&board)), ["0 ended Success"]);
    assert!(told.look(&board).is_empty());
    let again = told.hear(&id(), vec![asked(0), asked(1)], &board);
    assert_eq!(
        words(&again),
        ["0 ended Success", "1 refused"],
        "said again when asked again"
    );
}

#[test]
fn an_end_that_came_before_the_question_is_told_from_the_object() {
    let (mut told, mut board) = (Told::default(), board());
    board.put_subtask(ended(0));
    told.hear(&id(), vec![asked(0)], &board);
    told.next();
    let said = told.answered(&id(), vec![(asked(0).at, Answer::Made(name(0)))], &board);
    let ToRuntime::Delegated {
        delegation: DelegationState::Ended(end),
        ..
    } = &said[0]
    else {
        panic!("{said:?}")
    };
    assert_eq!(end.output, Some(json!({"text": "done"})));
    assert_eq!(end.artifacts.len(), 1);
    assert!(!end.acceptance[0].checked);
    assert!(end.stop_reason.is_some());
}

#[test]
fn what_waits_is_tried_again_and_what_was_deleted_has_ended() {
    let (mut told, mut board) = (Told::default(), board());
    told.hear(&id(), vec![asked(0)], &board);
    told.next();
    told.answered(&id(), vec![(asked(0).at, Answer::Later)], &board);
    assert!(told.is_waiting());
    assert_eq!(told.next().len(), 1);
    told.answered(&id(), vec![(asked(0).at, Answer::Made(name(0)))], &board);
    assert!(told.look(&board).is_empty(), "no watch has shown it yet");
    board.put_subtask(delegate(0, |_| ()));
    told.look(&board);
    board.remove_subtask("child-0");
    assert_eq!(words(&told.look(&board)), ["0 ended Cancelled"]);
}

#[test]
fn nothing_is_said_of_an_attempt_that_is_over() {
    let (mut told, mut board) = (Told::default(), board());
    told.hear(&id(), vec![asked(0)], &board);
    told.next();
    told.answered(&id(), vec![(asked(0).at, Answer::Made(name(0)))], &board);
    let mut over = lead();
    over.status.as_mut().unwrap().outcome = Some(agentrun_api::Outcome::Success);
    board.put_subtask(over);
    board.put_subtask(ended(0));
    assert!(told.look(&board).is_empty());
    assert!(board.delegates_of(TASK).is_empty(), "nobody waits for them");
}

#[test]
fn a_delegates_change_touches_the_pod_of_its_agent() {
    let mut board = board();
    let touched = |board: &mut Board, child| match board.put_subtask(child) {
        crate::board::Touched::Pods(pods) => pods.contains(POD),
        _ => false,
    };
    assert!(touched(&mut board, delegate(0, |_| ())));
    assert!(touched(&mut board, ended(0)));
    assert_eq!(board.depth("child-0"), Some(1));
    assert_eq!(board.depth(TASK), Some(0));
    assert_eq!(board.count_delegates(RUN), 1);
}
