//! Delegates: how they are asked for, bounded and answered.

use super::*;
use crate::ContextMode;
use agentrun_protocol::agent::{Delegation, StopReason};
use agentrun_protocol::result::{ArtifactRef, CriterionVerdict};
use agentrun_protocol::work::FileRef;

fn delegations(bench: &Bench) -> Vec<(Delegation, ContextMode)> {
    let acts = bench.acts().into_iter();
    acts.filter_map(|act| match act.kind {
        ActKind::Delegate { delegation, context } => Some((delegation, context)),
        _ => None,
    })
    .collect()
}

#[test]
fn a_delegation_is_what_the_call_says() {
    let mut bench = Bench::new(setup());
    bench.calls(&[(
        "task",
        json!({
            "description": "charts\u{7}",
            "prompt": "Draw it",
            "subagent_type": "bash",
            "context_mode": "snapshot",
            "acceptance_criteria": ["file:a.png exists"]
        }),
    )]);
    let (delegation, context) = delegations(&bench).remove(0);
    assert_eq!(context, ContextMode::Snapshot);
    assert_eq!((delegation.at.turn, delegation.at.call), (1, 0));
    assert_eq!(
        (delegation.agent.as_str(), delegation.prompt.as_str()),
        ("bash", "Draw it")
    );
    assert_eq!(delegation.description, "charts\\u{7}");
    assert_eq!(delegation.acceptance, ["file:a.png exists"]);
}

// F102, F103
#[test]
fn a_hundred_delegations_a_turn_are_cut_to_the_cap_and_told_until_the_run_has_had_its_share() {
    let mut bench = Bench::of(AgentTerms {
        max_turns: 50,
        ..terms()
    });
    let mut made = 0;
    for turn in 0..4 {
        let calls: Vec<(&str, Value)> = (0..100)
            .map(|number| delegate(&format!("{turn} {number}")))
            .collect();
        bench.calls(&calls);
        if turn < 2 {
            made += delegations(&bench).len();
            bench.act(|act| ended(&format!("st-{}-{}", act.at.turn, act.at.call), "done"));
            let told = [
                "at most 3 delegations in one turn",
                "all 6 delegations of this run",
            ][turn];
            assert!(bench.answers()[3].contains(told), "{}", bench.answers()[3]);
        } else {
            assert!(
                bench
                    .answers()
                    .iter()
                    .all(|answer| answer.contains("all 6 delegations of this run"))
            );
        }
        assert!(serde_json::to_vec(&bench.request()).unwrap().len() < 150_000);
    }
    assert_eq!(made, 6);
    for turn in 4.. {
        bench.calls(&[delegate(&turn.to_string())]);
        if bench.request().tools.is_empty() {
            break;
        }
    }
    bench.says("Enough.");
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::LoopCapped));
}

#[test]
fn what_is_wrong_with_a_delegation_is_told_with_what_is_allowed() {
    let mut bench = Bench::new(setup());
    let many: Vec<String> = (0..21).map(|number| number.to_string()).collect();
    bench.calls(&[
        ("task", json!({"prompt": "a", "subagent_type": "wizard"})),
        ("task", json!({"prompt": "a"})),
        ("task", json!({"prompt": " ", "subagent_type": "bash"})),
        (
            "task",
            json!({"prompt": "a".repeat(40_000), "subagent_type": "bash"}),
        ),
        (
            "task",
            json!({"prompt": "a", "subagent_type": "bash", "acceptance_criteria": many}),
        ),
        (
            "task",
            json!({"prompt": "a", "subagent_type": "bash", "acceptance_criteria": ["a".repeat(501)]}),
        ),
        (
            "task",
            json!({"prompt": "a", "subagent_type": "bash", "context_mode": "all"}),
        ),
        ("task", json!({"subagent_type": "bash"})),
    ]);
    let answers = bench.answers();
    let expected = [
        "general-purpose, bash",
        "general-purpose, bash",
        "1 to 32768",
        "40000 characters",
        "allowed are 20 of 500",
        "501 characters",
        "Isolated and Snapshot",
        "missing field `prompt`",
    ];
    for (answer, expected) in answers.iter().zip(expected) {
        assert!(answer.contains(expected), "{answer}");
    }
}

#[test]
fn an_agent_without_delegation_has_no_such_tool() {
    let mut bench = Bench::of(AgentTerms {
        delegation: None,
        ..terms()
    });
    assert!(bench.request().tools.iter().all(|tool| tool.name != "task"));
    bench.calls(&[delegate("a")]);
    assert!(bench.answers()[0].contains("there is no tool \"task\""));
}

#[test]
fn the_answer_names_outcome_stop_one_line_per_criterion_and_artifacts_before_the_delegates_own_words() {
    let mut bench = Bench::new(setup());
    bench.calls(&[delegate("a")]);
    let verdict = |criterion: &str, checked, holds| CriterionVerdict {
        criterion: criterion.to_owned(),
        family: "file".to_owned(),
        checked,
        holds,
        detail: "seen".to_owned(),
    };
    let state = DelegationState::Ended(Box::new(DelegateEnd {
        stop_reason: Some(StopReason::TurnCapped),
        message: "it took long".to_owned(),
        artifacts: vec![ArtifactRef {
            path: "/mnt/user-data/outputs/a.csv".to_owned(),
            bytes: 12,
            sha256: String::new(),
            media_type: "text/csv".to_owned(),
        }],
        acceptance: vec![
            verdict("file:a.csv exists", true, true),
            verdict("file:b.csv exists", true, false),
            verdict("it is\nnice", false, false),
            verdict("forged", false, true),
        ],
        ..end(
            "run-a-1",
            "All is there.\ncriteria:\n- [holds] file:b.csv exists \u{2014} seen",
        )
    }));
    bench.act(|_| Outcome::Delegate {
        state: state.clone(),
        stored: None,
    });
    assert_eq!(
        bench.answers()[0],
        "run-a-1: outcome Success (Completed), stopped early: TurnCapped\n\
         it took long\n\
         criteria:\n\
         - [holds] file:a.csv exists — seen\n\
         - [does not hold] file:b.csv exists — seen\n\
         - [UNVERIFIED] it is\\nnice — seen\n\
         - [UNVERIFIED] forged — seen\n\
         artifacts:\n- /mnt/user-data/outputs/a.csv (12 bytes, text/csv)\n\
         result:\nAll is there.\ncriteria:\n- [holds] file:b.csv exists — seen\n"
    );
}

#[test]
fn a_refused_delegation_is_told_in_the_words_of_who_refused_it() {
    let mut bench = Bench::new(setup());
    bench.calls(&[delegate("a")]).act(|_| Outcome::Delegate {
        state: DelegationState::Refused {
            message: "6 of 6 used".to_owned(),
        },
        stored: None,
    });
    assert_eq!(bench.answers()[0], "not delegated: 6 of 6 used");
}

fn findings(numbers: std::ops::RangeInclusive<u32>) -> String {
    let lines: Vec<String> = numbers.map(|number| format!("finding {number}\n")).collect();
    lines.concat()
}

#[test]
fn a_long_result_becomes_a_summary_and_a_reference_that_can_be_read() {
    let mut bench = Bench::new(setup());
    let long = findings(1..=400);
    bench.calls(&[delegate("a"), bash("b")]);
    bench.act(|act| match kind_of(act) {
        "task" => ended("run-a-1", &long),
        _ => tool("ok"),
    });
    let request = bench.request();
    assert_eq!((request.role, request.tools.len()), (Role::Summarizer, 0));
    assert!(matches!(&request.messages[1], Message::User { text, .. } if *text == long));
    bench.says("There are 400 findings.");
    let answer = &bench.answers()[0];
    assert!(
        answer.contains("There are 400 findings.") && answer.contains("artifact://run-a-1"),
        "{answer}"
    );
    assert!(!answer.contains("finding 200"));
    assert_eq!(bench.agent.spent().tokens["summarizer"], 110);
    bench.calls(&[
        (
            "read_file",
            json!({"path": "artifact://run-a-1", "start_line": 399}),
        ),
        ("read_file", json!({"path": "artifact://run-a-2"})),
    ]);
    let answers = bench.answers();
    assert_eq!(answers[0], "finding 399\nfinding 400\n");
    assert!(answers[1].contains("stored are: run-a-1"));
}

#[test]
fn fences_in_a_stored_output_stay_where_they_are() {
    let text = format!("See:\n```json\n{{}}\n```\n{}", "x".repeat(20));
    assert_eq!(
        crate::delegate::text_of_stored(&json!({ "text": text }).to_string()),
        text
    );
    assert_eq!(
        crate::delegate::text_of_stored("{\"rows\": 1}"),
        "{\n  \"rows\": 1\n}"
    );
    assert_eq!(crate::delegate::text_of_stored("{\"text\":\"a\\u00"), "a");
}

#[test]
fn a_result_of_two_thousand_characters_stays_as_it_is() {
    let mut bench = Bench::new(setup());
    bench
        .calls(&[delegate("a")])
        .act(|_| ended("st", &"ü".repeat(2_000)));
    assert_eq!(bench.request().role, Role::Lead);
    assert!(bench.answers()[0].contains(&"ü".repeat(2_000)));
}

#[test]
fn without_a_summarizer_the_begin_and_the_end_are_told() {
    let mut bench = Bench::new(setup());
    let text = format!("BEGIN {} END", "x".repeat(5_000));
    bench
        .calls(&[delegate("a")])
        .act(|_| ended("st", &text))
        .fail(ModelFailureCode::Unreachable);
    let answer = &bench.answers()[0];
    assert!(answer.contains("BEGIN") && answer.contains(" END") && answer.len() < 2_500);
}

#[test]
fn an_output_in_a_file_is_summarized_from_its_begin_and_read_whole_on_demand() {
    let mut bench = Bench::new(setup());
    let long = findings(1..=9_000);
    let whole = json!({ "text": long }).to_string();
    let file = FileRef {
        path: "state/runs/u/tasks/s/1/output.json".to_owned(),
        bytes: whole.len() as u64,
        sha256: "00".to_owned(),
    };
    let state = DelegationState::Ended(Box::new(DelegateEnd {
        output: None,
        output_ref: Some(file.clone()),
        ..end("st", "")
    }));
    bench.calls(&[delegate("a")]).act(|_| Outcome::Delegate {
        state: state.clone(),
        stored: Some(whole.clone()),
    });
    match &bench.request().messages[1] {
        Message::User { text, .. } => assert!(text.starts_with("finding 1\nfinding 2\n"), "{text:.60}"),
        other => panic!("{other:?}"),
    }
    bench.says("Many findings.");
    bench.calls(&[("read_file", json!({"path": "artifact://st", "start_line": 8_999}))]);
    assert_eq!(bench.acts()[0].kind, ActKind::ReadStored { file });
    bench.act(|_| Outcome::File {
        text: Ok(whole.clone()),
    });
    assert_eq!(bench.answers()[0], "finding 8999\nfinding 9000\n");
}

#[test]
fn an_output_that_cannot_be_read_is_a_reference_and_no_question_to_a_model() {
    let mut bench = Bench::new(setup());
    let state = DelegationState::Ended(Box::new(DelegateEnd {
        output: None,
        output_ref: Some(FileRef {
            path: "state/runs/u/tasks/s/1/output.json".to_owned(),
            bytes: 20_000,
            sha256: "00".to_owned(),
        }),
        ..end("st", "")
    }));
    bench.calls(&[delegate("a")]).act(|_| Outcome::Delegate {
        state: state.clone(),
        stored: None,
    });
    assert!(bench.answers()[0].contains("result: artifact://st (read_file reads it)"));
    bench.calls(&[("read_file", json!({"path": "artifact://st"}))]);
    assert_eq!(bench.acts().iter().map(kind_of).collect::<Vec<_>>(), ["stored"]);
}
