//! Agents whose answer is reviewed.

use super::*;
use agentrun_protocol::agent::{Review, StopReason};

const REFUSED: &str = r#"{"accepted": false, "notes": ["The header was counted."]}"#;
const ACCEPTED: &str = r#"{"accepted": true, "notes": []}"#;

fn reviewed(reviews: u32) -> Bench {
    Bench::of(AgentTerms {
        reviews: Some(reviews),
        ..terms()
    })
}

fn review(bench: &Bench) -> Option<Review> {
    bench.finished().facts.review
}

#[test]
fn an_answer_that_is_sent_back_is_given_again() {
    let mut bench = reviewed(1);
    bench
        .calls(&[bash("wc -l table.csv")])
        .act_with("4")
        .says("There are 4 rows.");
    let request = bench.request();
    assert_eq!((request.role, request.tools.len()), (Role::Reviewer, 0));
    let material = bench.last_message();
    assert!(
        material.ends_with("[answer to review]\nThere are 4 rows."),
        "{material}"
    );
    assert!(
        material.contains("wc -l table.csv") && material.contains(&terms().prompt),
        "{material}"
    );
    bench.says(REFUSED);
    assert!(bench.last_message().contains("- The header was counted."));
    assert!(!bench.request().tools.is_empty(), "it may work on");
    bench.says("There are 3 rows.").says(ACCEPTED);
    assert_eq!(bench.text(), "There are 3 rows.");
    assert!(review(&bench).unwrap().accepted);
    assert_eq!(bench.finished().facts.spent.tokens["reviewer"], 220);
}

#[test]
fn an_answer_that_cannot_be_sent_back_any_more_stands_with_what_the_reviewer_said() {
    let mut bench = reviewed(1);
    bench.says("4").says(REFUSED).says("4, I am sure").says(REFUSED);
    assert_eq!(bench.text(), "4, I am sure");
    assert_eq!(review(&bench).unwrap().notes, ["The header was counted."]);
}

#[test]
fn an_answer_stands_where_the_reviewer_says_nothing_that_counts() {
    for silence in ["", "Fine.", r#"{"accepted": false, "notes": []}"#] {
        let mut bench = reviewed(1);
        bench.says("4").says(silence);
        assert_eq!(
            (bench.text().as_str(), review(&bench)),
            ("4", None),
            "{silence:?}"
        );
    }
    let mut bench = reviewed(1);
    bench.says("4").fail(ModelFailureCode::Unreachable);
    assert_eq!(bench.text(), "4");
    let mut bench = reviewed(1);
    bench.says("4").fail(ModelFailureCode::BudgetExceeded);
    assert_eq!(bench.text(), "4");
    assert_eq!(bench.finished().facts.stop_reason, Some(StopReason::TokenCapped));
}

#[test]
fn an_answer_in_pieces_is_whole_when_no_budget_is_left_for_its_review() {
    let mut bench = reviewed(1);
    let first = ModelAnswer {
        finish: Finish::Length,
        ..says("There are ")
    };
    bench
        .answer(first)
        .says("4 rows.")
        .fail(ModelFailureCode::BudgetExceeded);
    assert_eq!(bench.text(), "There are 4 rows.");
}

#[test]
fn an_agent_that_was_stopped_is_not_reviewed() {
    let mut bench = Bench::of(AgentTerms {
        reviews: Some(1),
        max_turns: 1,
        ..terms()
    });
    bench.calls(&[bash("a")]).act_with("1").says("That is all.");
    assert_eq!(bench.text(), "That is all.");
}

#[test]
fn a_review_goes_on_after_a_restart() {
    let mut bench = reviewed(1);
    bench.says("4");
    bench.restart(Setup::new(AgentTerms {
        reviews: Some(1),
        ..terms()
    }));
    assert_eq!(bench.request().role, Role::Reviewer);
    bench.says(ACCEPTED);
    assert_eq!(bench.text(), "4");
}
