use super::*;
use agentrun_protocol::Blob;
use agentrun_protocol::frame;
use agentrun_protocol::result::Ending;
use agentrun_protocol::work::Assignment;

fn id(attempt: i32) -> AttemptId {
    AttemptId {
        uid: "u".to_owned(),
        attempt,
    }
}

fn file(bytes: u64) -> FileRef {
    FileRef {
        path: "a".to_owned(),
        bytes,
        sha256: "d".to_owned(),
    }
}

fn chunk(offset: u64, last: bool, data: &[u8]) -> ToRuntime {
    ToRuntime::Chunk {
        sha256: "d".to_owned(),
        offset,
        last,
        data: Blob(data.to_vec()),
    }
}

fn queued(outbox: &Outbox) -> Vec<ToGateway> {
    lock(&outbox.state).passing.iter().cloned().collect()
}

fn assign(outbox: &Outbox) {
    let assignment: Assignment = serde_json::from_value(serde_json::json!({
        "uid": "u", "attempt": 1, "subtask": "n/s", "runUid": "r", "task": "t", "remainingMs": 1,
        "work": {"kind": "Command", "argv": ["true"]},
        "limits": {"fileBytes": 1, "openFiles": 1, "processes": 1},
    }))
    .unwrap();
    let assignment = ToRuntime::Assign(Box::new(assignment));
    assert_eq!(outbox.take(assignment.clone()), Some(assignment));
}

async fn fetch_with(answers: Vec<ToRuntime>) -> Fetched {
    let outbox = Outbox::default();
    outbox.open();
    assign(&outbox);
    let fetching = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.fetch(&file(4)).await }
    });
    assert!(matches!(outbox.next().await, ToGateway::Get { .. }));
    for answer in answers {
        assert_eq!(outbox.take(answer), None);
    }
    fetching.await.unwrap()
}

#[test]
fn ends_are_said_again_in_every_session_until_they_are_acknowledged() {
    let outbox = Outbox::default();
    outbox.post(id(1), ToGateway::Taken(id(1)));
    assert_eq!(queued(&outbox), []);
    for _ in 0..2 {
        outbox.open();
        assert_eq!(queued(&outbox), [ToGateway::Taken(id(1))]);
        outbox.close();
    }
    outbox.take(ToRuntime::Ack(id(2)));
    outbox.open();
    assert_eq!(
        queued(&outbox).len(),
        1,
        "another attempt's acknowledgement does not count"
    );
    outbox.take(ToRuntime::Ack(id(1)));
    outbox.open();
    assert_eq!(queued(&outbox), []);
}

#[test]
fn without_a_connection_passing_words_are_lost() {
    let outbox = Outbox::default();
    outbox.say(ToGateway::Ping);
    outbox.open();
    assert_eq!(queued(&outbox), []);
}

#[test]
fn progress_never_fills_the_memory() {
    let outbox = Outbox::default();
    outbox.open();
    for _ in 0..1000 {
        let text = "line".to_owned();
        outbox.say(ToGateway::Progress { id: id(1), text });
    }
    assert_eq!(queued(&outbox).len(), PASSING);
}

#[tokio::test]
async fn a_content_comes_in_pieces() {
    let fetched = fetch_with(vec![chunk(0, false, b"ab"), chunk(2, true, b"cd")]).await;
    assert_eq!(&*fetched.unwrap(), b"abcd");
}

#[tokio::test]
async fn a_content_of_another_length_is_refused_before_it_fills_the_memory() {
    let fetched = fetch_with(vec![chunk(0, false, b"abcde")]).await;
    assert!(matches!(
        fetched,
        Err(FetchError::Length {
            expected: 4,
            found: 5
        })
    ));
    let fetched = fetch_with(vec![chunk(0, true, b"abc")]).await;
    assert!(matches!(
        fetched,
        Err(FetchError::Length {
            expected: 4,
            found: 3
        })
    ));
    let fetched = fetch_with(vec![chunk(2, true, b"cd")]).await;
    assert!(matches!(
        fetched,
        Err(FetchError::Length {
            expected: 4,
            found: 0
        })
    ));
}

#[tokio::test]
async fn a_fetch_that_a_broken_connection_cut_starts_again_from_the_first_byte() {
    let outbox = Outbox::default();
    outbox.open();
    assign(&outbox);
    let fetching = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.fetch(&file(4)).await }
    });
    outbox.next().await;
    outbox.take(chunk(0, false, b"ab"));
    outbox.close();
    outbox.open();
    assert_eq!(
        queued(&outbox),
        [],
        "the new gateway knows no content before it has assigned"
    );
    assign(&outbox);
    assert!(matches!(outbox.next().await, ToGateway::Get { .. }));
    outbox.take(chunk(0, true, b"abcd"));
    assert_eq!(&*fetching.await.unwrap().unwrap(), b"abcd");
}

#[test]
fn an_attempt_runs_from_when_it_is_taken_until_its_end_is_posted() {
    let outbox = Outbox::default();
    assert_eq!(outbox.running(), None);
    outbox.taken(id(1));
    assert_eq!(outbox.running(), Some(id(1)));
    outbox.post(id(2), ToGateway::Ping);
    assert_eq!(outbox.running(), Some(id(1)));
    outbox.post(id(1), ToGateway::Ping);
    assert_eq!(outbox.running(), None);
}

fn question() -> ModelQuestion {
    ModelQuestion {
        id: id(1),
        call: 3,
        request: b"{}".to_vec(),
        spent: agentrun_protocol::agent::Spent::default(),
    }
}

#[tokio::test]
async fn a_question_whose_asker_has_gone_is_withdrawn() {
    let outbox = Outbox::default();
    outbox.open();
    let asking = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.ask(question()).await }
    });
    assert!(matches!(
        outbox.next().await,
        ToGateway::ModelCall { call: 3, .. }
    ));
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    let cancel = ToGateway::ModelCancel { id: id(1), call: 3 };
    assert_eq!(outbox.next().await, cancel);
    outbox.open();
    assert!(lock(&outbox.state).next().is_none());
}

#[tokio::test]
async fn an_end_is_said_before_a_long_question() {
    let outbox = Outbox::default();
    outbox.open();
    let asking = tokio::spawn({
        let outbox = outbox.clone();
        async move { outbox.ask(question()).await }
    });
    tokio::task::yield_now().await;
    outbox.post(id(1), ToGateway::Ping);
    assert_eq!(outbox.next().await, ToGateway::Ping);
    assert!(matches!(outbox.next().await, ToGateway::ModelCall { .. }));
    let failure = ModelFailure {
        code: ModelFailureCode::NoModel,
        message: "none".to_owned(),
    };
    let answer = ToRuntime::ModelAnswer {
        id: id(1),
        call: 3,
        answer: Err(failure.clone()),
    };
    assert_eq!(outbox.take(answer), None);
    assert_eq!(asking.await.unwrap(), Err(failure));
}

fn result(artifact: usize, output: usize) -> ToGateway {
    let result = serde_json::json!({
        "ending": "Success", "reason": "Succeeded", "message": "m", "exitCode": 0, "timing": {"startMs": 1, "runMs": 2},
        "usage": {"peakMemoryBytes": 3, "cpuMs": 4}, "processTreeEmpty": true, "output": "o".repeat(output),
        "artifacts": [{"path": "p".repeat(artifact), "bytes": 1, "sha256": "d", "mediaType": "text/plain"}],
    });
    ToGateway::Result {
        id: id(1),
        result: serde_json::from_value(result).unwrap(),
    }
}

#[test]
fn a_result_that_no_frame_holds_is_said_without_what_makes_it_so_long() {
    let said = |message: &ToGateway| {
        let outbox = Outbox::default();
        outbox.open();
        outbox.post(id(1), message.clone());
        let [said] = <[_; 1]>::try_from(queued(&outbox)).unwrap();
        assert!(frame::encode(&said).is_ok());
        said
    };
    let of = |message| match message {
        ToGateway::Result { result, .. } => *result,
        other => panic!("{other:?}"),
    };
    let short = result(10, 10);
    assert_eq!(said(&short), short);
    let long = of(said(&result(2 << 20, 10)));
    assert!(
        long.message.starts_with("m; the result takes 2097"),
        "{}",
        long.message
    );
    assert_eq!(
        (long.artifacts.len(), &long.output),
        (0, &Some("o".repeat(10).into()))
    );
    assert_eq!(long.ending, Ending::Success);
    let longer = of(said(&result(10, 2 << 20)));
    assert_eq!(
        (longer.ending, longer.reason.as_str(), longer.output),
        (Ending::Error, "OutputTooLarge", None)
    );
}
