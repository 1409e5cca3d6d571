//! Agents whose work is planned before it begins.

use super::*;

fn planned() -> Bench {
    Bench::of(AgentTerms {
        is_planned: true,
        ..terms()
    })
}

fn plan(steps: &Value) -> String {
    json!({ "steps": steps }).to_string()
}

#[test]
fn the_planner_is_asked_first_and_its_steps_lead_the_agent() {
    let mut bench = planned();
    let request = bench.request();
    assert_eq!((request.role, request.tools.len()), (Role::Planner, 0));
    assert!(request.output_schema.is_some());
    bench.says(&plan(&json!([
        {"name": "report", "description": "Write it", "dependsOn": ["count"]},
        {"name": "count", "description": "Count the rows", "agent": "bash"},
    ])));
    let request = bench.request();
    assert_eq!(request.role, Role::Lead);
    let told = bench.last_message();
    assert!(
        told.contains("- count: Count the rows [agent bash]\n- report: Write it (after count)"),
        "{told}"
    );
    bench.says("Done.");
    let spent = bench.finished().facts.spent;
    assert_eq!((spent.tokens["planner"], spent.tokens["lead"]), (110, 110));
}

#[test]
fn what_is_no_plan_is_sent_back_with_its_mistake_and_twice_at_most() {
    let mut bench = planned();
    bench.says("First we count.");
    assert!(bench.last_message().contains("it is no JSON document"));
    let circle = json!([{"name": "a", "description": "d", "dependsOn": ["b"]}, {"name": "b", "description": "d", "dependsOn": ["a"]}]);
    bench.says(&plan(&circle));
    assert!(bench.last_message().contains("a → b → a"));
    assert_eq!(bench.request().role, Role::Planner);
    bench.says(&plan(
        &json!([{"name": "a", "description": "d", "agent": "painter"}]),
    ));
    assert_eq!(bench.request().role, Role::Lead, "it begins without a plan");
    assert_eq!(bench.last_message(), terms().prompt);
}

#[test]
fn a_plan_is_made_once_whatever_restarts() {
    let mut bench = planned();
    let again = || {
        Setup::new(AgentTerms {
            is_planned: true,
            ..terms()
        })
    };
    bench.restart(again());
    assert_eq!(bench.request().role, Role::Planner);
    bench.says(&plan(&json!([{"name": "count", "description": "Count"}])));
    bench.restart(again());
    assert_eq!(bench.request().role, Role::Lead);
    assert!(bench.last_message().contains("- count: Count"));
}

#[test]
fn without_a_planner_that_answers_the_work_begins_and_without_a_budget_it_ends() {
    let mut bench = planned();
    bench.fail(ModelFailureCode::Unreachable);
    assert_eq!(bench.request().role, Role::Lead);
    let mut bench = planned();
    bench.fail(ModelFailureCode::BudgetExceeded);
    assert!(matches!(bench.finished().end, End::Failed(_)));
}
