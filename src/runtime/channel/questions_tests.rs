use super::*;
use agentrun_protocol::chat::{Finish, ModelFailureCode, TokenUsage};

fn id() -> AttemptId {
    AttemptId {
        uid: "u".to_owned(),
        attempt: 1,
    }
}

fn question(call: u64, bytes: usize) -> ModelQuestion {
    ModelQuestion {
        id: id(),
        call,
        request: vec![7; bytes],
        spent: Spent::default(),
    }
}

fn delegation(call: u32, prompt: usize) -> Delegation {
    Delegation {
        at: CallPlace { turn: 1, call },
        agent: "general-purpose".to_owned(),
        description: "find out".to_owned(),
        prompt: "x".repeat(prompt),
        acceptance: Vec::new(),
        snapshot: None,
    }
}

fn refused() -> DelegationState {
    DelegationState::Refused {
        message: "no".to_owned(),
    }
}

/// Number, size and whether it is the last, of each piece that is said.
fn pieces(questions: &mut Questions) -> Vec<(u64, usize, bool)> {
    let said = std::iter::from_fn(|| questions.next());
    let pieces = said.map(|message| match message {
        ToGateway::ModelCall { call, last, data, .. } => (call, data.0.len(), last),
        other => panic!("{other:?}"),
    });
    pieces.collect()
}

/// The places of each message that is said.
fn places(questions: &mut Questions) -> Vec<Vec<u32>> {
    let said = std::iter::from_fn(|| questions.next());
    let places = said.map(|message| match message {
        ToGateway::Delegate { delegations, .. } => delegations.iter().map(|one| one.at.call).collect(),
        other => panic!("{other:?}"),
    });
    places.collect()
}

#[test]
fn a_request_goes_in_pieces_and_again_from_the_first_in_every_session_until_it_is_answered() {
    let mut questions = Questions::default();
    let (sender, mut receiver) = oneshot::channel();
    questions.ask(question(1, MAX_BLOB + 1), sender);
    let all = [(1, MAX_BLOB, false), (1, 1, true)];
    assert_eq!(pieces(&mut questions), all);
    assert_eq!(pieces(&mut questions), []);
    questions.again();
    questions.next();
    // The connection breaks between the pieces.
    questions.again();
    assert_eq!(pieces(&mut questions), all);
    questions.answered(&id(), 2, Err(failure()));
    assert!(
        receiver.try_recv().is_err(),
        "another call's answer does not count"
    );
    questions.answered(&id(), 1, Ok(Box::new(answer())));
    assert_eq!(receiver.try_recv().unwrap(), Ok(Box::new(answer())));
    questions.again();
    assert_eq!(pieces(&mut questions), []);
}

#[test]
fn every_piece_fits_a_frame() {
    let mut questions = Questions::default();
    let (sender, _receiver) = oneshot::channel();
    questions.ask(question(1, agentrun_protocol::channel::MAX_MODEL_REQUEST), sender);
    questions.delegate(id(), 1, (0..40).map(|call| delegation(call, 32_768)).collect());
    let mut said = 0;
    while let Some(message) = questions.next() {
        agentrun_protocol::frame::encode(&message).unwrap();
        said += 1;
    }
    assert_eq!(said, 16 + 2);
}

#[test]
fn a_turn_is_said_again_whole_until_all_of_it_has_ended() {
    let mut questions = Questions::default();
    let mut ends = questions.delegate(id(), 1, vec![delegation(0, 10), delegation(1, 10)]);
    assert_eq!(places(&mut questions), [[0, 1]]);
    let at = |call| CallPlace { turn: 1, call };
    let name = "child".to_owned();
    questions.delegated(&id(), at(0), DelegationState::Created { name });
    assert!(ends.try_recv().is_err(), "it has only begun");
    questions.delegated(&id(), at(1), refused());
    questions.delegated(&id(), at(1), refused());
    assert_eq!(ends.try_recv().unwrap(), (at(1), refused()));
    assert!(ends.try_recv().is_err(), "a repeat is none");
    questions.again();
    // How many of a turn are too many is for the gateway to say: it has to see all of them.
    assert_eq!(places(&mut questions), [[0, 1]]);
    questions.delegated(&id(), at(0), refused());
    assert_eq!(ends.try_recv().unwrap().0, at(0));
    assert_eq!(ends.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
    questions.again();
    assert_eq!(places(&mut questions), Vec::<Vec<u32>>::new());
}

fn failure() -> ModelFailure {
    ModelFailure {
        code: ModelFailureCode::Refused,
        message: "no".to_owned(),
    }
}

fn answer() -> ModelAnswer {
    ModelAnswer {
        text: "yes".to_owned(),
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage: TokenUsage::default(),
        cost_micros: 0,
        model: "m".to_owned(),
    }
}
