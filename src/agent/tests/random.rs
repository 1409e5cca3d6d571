//! Models that do anything, in any order, with restarts between: the conversation stays one, and it ends.

use super::*;
use agentrun_protocol::channel::MAX_MODEL_REQUEST;
use proptest::prelude::*;

/// What a model does in a turn.
#[derive(Clone, Debug)]
enum Move {
    Says(String, Finish),
    Calls(Vec<(String, String)>, Finish, u64),
    Fails(ModelFailureCode),
    Restarts,
    Retries,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(a_move(), 1..40)
}

fn finish() -> impl Strategy<Value = Finish> {
    prop_oneof![6 => Just(Finish::ToolCalls), 1 => Just(Finish::Length), 1 => Just(Finish::Unknown)]
}

fn a_move() -> impl Strategy<Value = Move> {
    let name = prop_oneof![
        6 => prop::sample::select(vec![
            "bash", "ls", "read_file", "write_file", "str_replace", "task", "task", "task", "skill", "write_todos",
            "view_image", "Read", "nothing", ""
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let arguments = prop_oneof![
        8 => prop::sample::select(vec![
            r#"{"command":"a"}"#, r#"{"command":"b"}"#, r#"{"path":"artifact://st-1-0"}"#, "{}", "",
            r#"{"description":"d","prompt":"p","subagent_type":"bash"}"#,
            r#"{"description":"d","prompt":"q","subagent_type":"bash","context_mode":"Snapshot"}"#,
            r#"{"name":"sums"}"#, r#"{"done":true}"#, r#"{"todos":[{"content":"c","status":"pending"}]}"#,
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[a-z]{0,3000}".prop_map(|text| json!({"path": "a", "content": text.repeat(20)}).to_string()),
    ];
    let calls = prop::collection::vec((name, arguments), 1..9);
    prop_oneof![
        1 => (any::<String>(), finish()).prop_map(|(text, finish)| Move::Says(text, finish)),
        12 => (calls, finish(), 0u64..12_000).prop_map(|(calls, finish, input)| Move::Calls(calls, finish, input)),
        1 => prop::sample::select(vec![
            ModelFailureCode::ContextTooLong, ModelFailureCode::Unreachable, ModelFailureCode::BudgetExceeded
        ]).prop_map(Move::Fails),
        2 => Just(Move::Restarts),
        1 => Just(Move::Retries),
    ]
}

fn small_setup() -> Setup {
    let mut small = terms();
    small.traits.context_tokens = 9_000;
    small.max_turns = 12;
    small.is_planned = true;
    small.reviews = Some(2);
    small.skills = vec![agentrun_protocol::agent::SkillCard {
        name: "sums".to_owned(),
        description: "Sums".to_owned(),
        triggers: Vec::new(),
        allowed_tools: Some(vec!["bash".to_owned()]),
    }];
    Setup::new(small)
}

/// Each call has its answer, in order, before anything else is said; ids are unique; arguments are objects.
fn check_conversation(request: &ModelRequest) {
    let mut open: Vec<String> = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for message in &request.messages {
        match message {
            Message::Tool { id, .. } => assert_eq!(open.remove(0), *id),
            _ => assert!(open.is_empty(), "calls without an answer: {open:?}"),
        }
        if let Message::Assistant { tool_calls, .. } = message {
            for call in tool_calls {
                assert!(
                    serde_json::from_str::<Value>(&call.arguments)
                        .unwrap()
                        .is_object()
                );
                assert!(!ids.contains(&call.id));
                ids.push(call.id.clone());
                open.push(call.id.clone());
            }
        }
    }
    assert!(open.is_empty(), "calls without an answer: {open:?}");
    assert!(serde_json::to_vec(request).unwrap().len() <= MAX_MODEL_REQUEST);
}

/// The journal as it is stored makes the agent that wrote it.
fn check_journal(bench: &Bench) {
    assert_eq!(Agent::replay(bench.journal.iter().cloned()).unwrap(), bench.agent);
}

fn outcome(act: &Act) -> Outcome {
    match &act.kind {
        ActKind::Delegate { .. } => {
            let long = "result ".repeat(if act.at.call.is_multiple_of(2) { 400 } else { 4 });
            ended(&format!("st-{}-{}", act.at.turn, act.at.call), &long)
        }
        ActKind::Tool { .. } => tool(&format!(
            "{} {}",
            act.at.turn % 3,
            "word ".repeat(act.at.turn as usize * 60)
        )),
        ActKind::LoadSkill { .. } | ActKind::ReadStored { .. } => Outcome::File {
            text: Ok("text".to_owned()),
        },
    }
}

/// Does acts until something else is wanted; leaves the last `left` of them undone.
fn act(bench: &mut Bench, delegated: &mut u32, left: usize) {
    if let Step::Act(acts) = bench.agent.next() {
        let fresh = acts.iter().filter(|act| kind_of(act) == "task").count();
        assert!(fresh <= 3);
        let done = acts.len().saturating_sub(left);
        for act in &acts[..done] {
            *delegated += u32::from(kind_of(act) == "task");
            let outcome = outcome(act);
            bench.done(act, outcome);
        }
        check_journal(bench);
    }
}

proptest! {
    #![proptest_config(cases(32))]
    #[test]
    fn whatever_a_model_does_the_journal_makes_the_agent_and_the_caps_hold(moves in moves(), left in 0usize..3) {
        let mut bench = Bench::new(small_setup());
        let mut delegated = 0;
        let mut attempt = 1;
        for step in moves {
            let is_over = matches!(bench.agent.next(), Step::Done(_));
            match step {
                Move::Restarts => {
                    act(&mut bench, &mut delegated, left);
                    bench.restart(Setup { attempt, ..small_setup() });
                }
                Move::Retries => {
                    attempt += 1;
                    let notes = vec![format!("note {attempt}")];
                    bench.restart(Setup { attempt, notes, ..small_setup() });
                }
                _ if is_over => continue,
                Move::Says(text, finish) => {
                    act(&mut bench, &mut delegated, 0);
                    check_conversation(&bench.request());
                    bench.answer(ModelAnswer { finish, ..says(&text) });
                }
                Move::Calls(calls, finish, input) => {
                    act(&mut bench, &mut delegated, 0);
                    check_conversation(&bench.request());
                    let named: Vec<(&str, String)> = calls.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
                    let usage = TokenUsage { input, output: 50, ..TokenUsage::default() };
                    bench.answer(ModelAnswer { finish, usage, ..calling(&named) });
                }
                Move::Fails(code) => {
                    act(&mut bench, &mut delegated, 0);
                    bench.fail(code);
                }
            }
            check_journal(&bench);
            prop_assert!(delegated <= 6, "{delegated}");
        }
        // Left alone with a model that only calls, it ends.
        let mut asked = 0;
        while !matches!(bench.agent.next(), Step::Done(_)) {
            act(&mut bench, &mut delegated, 0);
            if let Step::Ask(request) = bench.agent.next() {
                check_conversation(&request);
                bench.calls(&[bash(&asked.to_string())]);
                asked += 1;
            }
            prop_assert!(asked < 60);
        }
        let finished = bench.finished();
        prop_assert!(finished.transcript.to_bytes().len() <= crate::MAX_TRANSCRIPT);
        if let End::Failed(failure) = finished.end {
            prop_assert!(!failure.to_string().is_empty());
        }
    }
}
