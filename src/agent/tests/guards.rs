//! What ends an agent that does not end itself.

use super::*;
use crate::Failure;
use agentrun_protocol::agent::StopReason;

#[test]
fn an_agent_without_turns_left_answers_without_tools() {
    let mut capped = terms();
    capped.max_turns = 2;
    let mut bench = Bench::of(capped);
    bench
        .calls(&[bash("a")])
        .act_with("1")
        .calls(&[bash("b")])
        .act_with("2");
    let request = bench.request();
    assert!(request.tools.is_empty());
    assert!(bench.last_message().contains("all your turns"));
    bench.says("Half is done.");
    assert_eq!(bench.text(), "Half is done.");
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::TurnCapped));
}

#[test]
fn a_capped_agent_that_calls_all_the_same_ends_with_what_it_said_before() {
    let mut capped = terms();
    capped.max_turns = 1;
    let mut bench = Bench::of(capped);
    let mut first = calling(&[("ls", "{}".to_owned())]);
    first.text = "I look around.".to_owned();
    bench.answer(first).act_with("nothing");
    bench.calls(&[bash("a")]).calls(&[bash("a")]);
    assert_eq!(bench.text(), "I look around.");
}

#[test]
fn a_capped_agent_that_said_nothing_has_no_answer() {
    let mut capped = terms();
    capped.max_turns = 1;
    let mut bench = Bench::of(capped);
    bench.calls(&[bash("a")]).act_with("nothing").says("").says(" ");
    assert_eq!(
        bench.finished().end,
        End::Failed(Failure::Stopped(StopReason::TurnCapped))
    );
}

#[test]
fn the_same_call_with_the_same_answer_is_told_after_three_and_stopped_after_five() {
    let mut bench = Bench::new(setup());
    for number in 1..=5 {
        let varied = json!({"command": "ls", "description": format!("try {number}")});
        bench.calls(&[("bash", varied)]).act_with("nothing");
        let told = bench.last_message().contains("three times");
        assert_eq!(told, number == 3, "{number}");
        assert_eq!(bench.request().tools.is_empty(), number == 5);
    }
    bench.says("I am stuck.");
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::LoopCapped));
}

#[test]
fn a_call_whose_answers_differ_is_no_loop() {
    let mut bench = Bench::new(setup());
    for number in 0..15 {
        bench.calls(&[bash("date")]).act_with(&number.to_string());
        assert_eq!(bench.last_message(), number.to_string());
    }
}

#[test]
fn turns_that_bring_nothing_are_told_and_then_stopped() {
    let mut bench = Bench::new(setup());
    for number in 1..=8 {
        bench.calls(&[(["x", "y", "z"][number % 3], json!({ "number": number }))]);
        assert_eq!(
            bench.last_message().contains("nothing new"),
            number == 4,
            "{number}"
        );
        assert_eq!(bench.request().tools.is_empty(), number == 8);
    }
}

#[test]
fn an_empty_answer_is_asked_about_once() {
    let mut bench = Bench::new(setup());
    bench.says("").says("Twelve.");
    assert_eq!(bench.text(), "Twelve.");
    let mut bench = Bench::new(setup());
    bench.says("\n").says("");
    assert_eq!(bench.finished().end, End::Failed(Failure::Empty));
}

#[test]
fn a_used_up_budget_ends_with_what_was_said() {
    let mut bench = Bench::new(setup());
    let mut first = calling(&[("ls", "{}".to_owned())]);
    first.text = "There are 12 rows, I check.".to_owned();
    bench
        .answer(first)
        .act_with("nothing")
        .fail(ModelFailureCode::BudgetExceeded);
    assert_eq!(bench.text(), "There are 12 rows, I check.");
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::TokenCapped));
}

#[test]
fn a_budget_that_was_used_up_before_leaves_no_answer() {
    let mut bench = Bench::new(setup());
    bench.fail(ModelFailureCode::BudgetExceeded);
    assert!(matches!(bench.finished().end, End::Failed(Failure::Model(_))));
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::TokenCapped));
}

#[test]
fn a_model_that_cannot_be_asked_is_a_failure_with_its_words() {
    for code in [
        ModelFailureCode::NoModel,
        ModelFailureCode::Unreachable,
        ModelFailureCode::Refused,
    ] {
        let mut bench = Bench::new(setup());
        bench.fail(code);
        match bench.finished().end {
            End::Failed(failure) => assert_eq!(failure.to_string(), "it is so"),
            other @ End::Answered(_) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_text_that_was_cut_is_gone_on_with_and_put_together() {
    let mut bench = Bench::new(setup());
    let cut = |text: &str| ModelAnswer {
        finish: Finish::Length,
        ..says(text)
    };
    bench.answer(cut("one, ")).answer(cut("two, ")).says("three");
    assert_eq!(bench.text(), "one, two, three");
    let mut endless = Bench::new(setup());
    endless
        .answer(cut("1"))
        .answer(cut("2"))
        .answer(cut("3"))
        .answer(cut("4"));
    assert_eq!(endless.text(), "1234");
}

#[test]
fn a_text_that_was_cut_is_no_part_of_a_later_answer() {
    let mut bench = Bench::new(setup());
    bench.answer(ModelAnswer {
        finish: Finish::Length,
        ..says("I think, ")
    });
    bench.calls(&[bash("wc")]).act_with("12").says("Twelve.");
    assert_eq!(bench.text(), "Twelve.");
}

#[test]
fn a_withheld_answer_is_a_refusal() {
    let mut bench = Bench::new(setup());
    bench.answer(ModelAnswer {
        finish: Finish::ContentFilter,
        ..says("")
    });
    match bench.finished().end {
        End::Failed(Failure::Model(failure)) => assert_eq!(failure.code, ModelFailureCode::Refused),
        other => panic!("{other:?}"),
    }
}
