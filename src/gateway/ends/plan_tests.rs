use super::*;
use crate::fixtures::{POD, TASK, subtask};
use agentrun_api::Json;
use agentrun_protocol::result::AttemptResult;

fn now() -> Timestamp {
    "2030-01-01T00:00:10Z".parse().unwrap()
}

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

fn result(change: impl FnOnce(&mut Value)) -> Report {
    let mut result = json!({
        "ending": "Success", "reason": "Completed", "output": {"answer": null}, "exitCode": 0,
        "stdoutTail": "done", "timing": {"startMs": 20, "runMs": 3000},
        "usage": {"peakMemoryBytes": 1024, "cpuMs": 7}, "isolation": "Verified", "processTreeEmpty": true,
    });
    change(&mut result);
    serde_json::from_value::<AttemptResult>(result).unwrap().into()
}

fn failure() -> Report {
    result(|r| {
        r["ending"] = json!("Error");
        r["reason"] = json!("ExitCode");
        r["output"] = json!(null);
    })
}

/// The written values by path below the status; removals are null.
fn written(plan: Plan) -> std::collections::BTreeMap<String, Value> {
    let Plan::Write(Value::Array(operations)) = plan else {
        panic!("{plan:?}")
    };
    let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"});
    assert_eq!(operations[0], test, "every write begins with the test");
    let rest = operations[1..].iter();
    rest.map(|operation| {
        let path = operation["path"]
            .as_str()
            .unwrap()
            .strip_prefix("/status/")
            .unwrap();
        (path.to_owned(), operation["value"].clone())
    })
    .collect()
}

#[test]
fn a_success_is_stored_whole_in_one_write_with_its_null_members() {
    let written = written(plan(&subtask(|_| ()), &key(1), &result(|_| ()), false, now()));
    for (path, value) in [
        ("attempts/0/outcome", json!("Success")),
        ("attempts/0/reason", json!("Completed")),
        ("attempts/0/finished", json!("2030-01-01T00:00:10.000000Z")),
        ("outcome", json!("Success")),
        ("reason", json!("Completed")),
        ("phase", json!("Finished")),
        ("output", json!({"answer": null})),
        ("exitCode", json!(0)),
        ("stdoutTail", json!("done")),
        ("timing", json!({"queuedMs": 1000, "startMs": 20, "runMs": 3000})),
        ("usage", json!({"peakMemory": 1024, "cpu": 7})),
        ("sandbox/isolation", json!("Verified")),
        ("sandbox/processTreeEmpty", json!(true)),
    ] {
        assert_eq!(written.get(path), Some(&value), "{path}");
    }
    assert!(!written.contains_key("message"));
}

#[test]
fn an_end_that_is_retried_writes_no_outcome() {
    let twice = subtask(|o| o["spec"]["retry"] = json!({"attempts": 2, "backoff": "1s"}));
    let written = written(plan(&twice, &key(1), &failure(), false, now()));
    assert_eq!(written["attempts/0/outcome"], json!("Error"));
    assert_eq!(written["phase"], json!("Pending"));
    assert!(written.contains_key("nextAttemptTime"));
    assert!(!written.contains_key("outcome"));
}

#[test]
fn under_a_stop_the_end_is_an_attempt_only_and_the_operator_decides() {
    let cancelled = result(|r| {
        r["ending"] = json!("Cancelled");
        r["reason"] = json!("Cancelled");
    });
    let written = written(plan(&subtask(|_| ()), &key(1), &cancelled, true, now()));
    assert_eq!(written["attempts/0/outcome"], json!("Cancelled"));
    for path in ["outcome", "phase", "nextAttemptTime", "reason"] {
        assert!(!written.contains_key(path), "{path}");
    }
}

#[test]
fn a_cancel_that_nobody_asked_for_is_evidence() {
    let drained = result(|r| r["ending"] = json!("Cancelled"));
    let written = written(plan(&subtask(|_| ()), &key(1), &drained, false, now()));
    assert_eq!(written.keys().collect::<Vec<_>>(), ["stdoutTail"]);
}

#[test]
fn a_lost_executor_is_evidence() {
    let written = written(plan(
        &subtask(|_| ()),
        &key(1),
        &Report::lost("out", "err"),
        false,
        now(),
    ));
    assert_eq!(written.keys().collect::<Vec<_>>(), ["stderrTail", "stdoutTail"]);
    let nothing = plan(&subtask(|_| ()), &key(1), &Report::lost("", ""), false, now());
    assert_eq!(nothing, Plan::Drop("there is nothing to store"));
}

#[test]
fn what_an_earlier_attempt_left_is_removed() {
    let second = subtask(|o| {
        o["status"]["attempts"] = json!([
            {"number": 1, "podUID": "old", "outcome": "Error"},
            {"number": 2, "podUID": POD},
        ]);
        o["status"]["message"] = json!("first attempt failed");
        o["status"]["stderrTail"] = json!("oops");
    });
    let written = written(plan(&second, &key(2), &result(|_| ()), false, now()));
    assert_eq!(written["message"], Value::Null);
    assert_eq!(written["stderrTail"], Value::Null);
    assert_eq!(written["attempts/1/outcome"], json!("Success"));
}

#[test]
fn repeats_late_and_foreign_results_are_dropped() {
    type Change = fn(&mut Value);
    let table: [(&str, Change, i32); 5] = [
        (
            "the sub-task has its outcome",
            |o| o["status"]["outcome"] = json!("Timeout"),
            1,
        ),
        (
            "the attempt has its end",
            |o| o["status"]["attempts"][0]["outcome"] = json!("Error"),
            1,
        ),
        (
            "it is not the newest attempt",
            |o| o["status"]["attempts"][0]["number"] = json!(2),
            1,
        ),
        (
            "the attempt belongs to another Pod",
            |o| o["status"]["attempts"][0]["podUID"] = json!("other"),
            1,
        ),
        (
            "another object has that name now",
            |o| o["metadata"]["uid"] = json!("other"),
            1,
        ),
    ];
    for (cause, change, attempt) in table {
        assert_eq!(
            plan(&subtask(change), &key(attempt), &result(|_| ()), false, now()),
            Plan::Drop(cause)
        );
    }
}

#[test]
fn required_criteria_that_nobody_checked_are_not_accepted() {
    let required = |attempts: i32| {
        subtask(move |o| {
            o["spec"]["acceptance"] = json!(["file:a exists"]);
            o["spec"]["acceptancePolicy"] = json!("Require");
            o["spec"]["retry"] = json!({"attempts": attempts});
        })
    };
    let again = written(plan(&required(2), &key(1), &result(|_| ()), false, now()));
    assert!(!again.contains_key("outcome"));
    let last = written(plan(&required(1), &key(1), &result(|_| ()), false, now()));
    assert_eq!(last["outcome"], json!("Success"));
}

#[test]
fn start_time_counts_from_the_assignment_but_never_more_than_has_passed() {
    let start = |seconds: i64| {
        let key = Key {
            waited: Some(SignedDuration::from_secs(seconds)),
            ..key(1)
        };
        written(plan(&subtask(|_| ()), &key, &result(|_| ()), false, now()))["timing"]["startMs"].clone()
    };
    assert_eq!(start(2), json!(2020));
    // Assigned at second 1, now is second 10, the work took 3: six are left.
    assert_eq!(start(500), json!(6000));
}

#[test]
fn an_output_of_null_is_an_output() {
    let report = Report {
        output: Some(Json(Value::Null)),
        ..result(|_| ())
    };
    let Plan::Write(patch) = plan(&subtask(|_| ()), &key(1), &report, false, now()) else {
        panic!()
    };
    let add = json!({"op": "add", "path": "/status/output", "value": null});
    assert!(patch.as_array().unwrap().contains(&add));
}

fn with_criteria(policy: &str, attempts: i32) -> SubTask {
    subtask(|o| {
        o["spec"]["acceptance"] = json!(["file:a exists", "it is polite"]);
        o["spec"]["acceptancePolicy"] = json!(policy);
        o["spec"]["retry"] = json!({"attempts": attempts});
    })
}

fn judged(first: bool, second: bool) -> Report {
    let verdict = |criterion: &str, holds: bool| json!({"criterion": criterion, "family": "file", "checked": true, "holds": holds, "detail": "a\nb"});
    result(|r| r["acceptance"] = json!([verdict("it is polite", second), verdict("file:a exists", first)]))
}

// F121
#[test]
fn a_verdict_is_stored_in_the_order_of_the_criteria_and_never_changes_the_outcome() {
    let written = written(plan(
        &with_criteria("Require", 1),
        &key(1),
        &judged(false, true),
        false,
        now(),
    ));
    assert_eq!(written["outcome"], json!("Success"));
    assert_eq!(
        written["acceptance"],
        json!([
            {"criterion": "file:a exists", "family": "file", "checked": true, "holds": false, "detail": "a\\nb"},
            {"criterion": "it is polite", "family": "file", "checked": true, "holds": true, "detail": "a\\nb"},
        ])
    );
    let condition = &written["conditions"][0];
    assert_eq!(condition["type"], json!("AcceptanceMet"));
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("DoesNotHold"))
    );
}

#[test]
fn only_required_criteria_lead_to_another_attempt() {
    for (policy, holds, outcome) in [
        ("Report", false, Some(json!("Success"))),
        ("Require", true, Some(json!("Success"))),
        ("Require", false, None),
    ] {
        let written = written(plan(
            &with_criteria(policy, 2),
            &key(1),
            &judged(true, holds),
            false,
            now(),
        ));
        assert_eq!(written.get("outcome").cloned(), outcome, "{policy} {holds}");
    }
}

#[test]
fn what_did_not_end_well_is_not_checked() {
    let written = written(plan(
        &with_criteria("Require", 1),
        &key(1),
        &failure(),
        false,
        now(),
    ));
    assert_eq!(written["outcome"], json!("Error"));
    assert!(!written.contains_key("acceptance"));
    assert_eq!(written["conditions"][0]["reason"], json!("NotChecked"));
    assert_eq!(written["conditions"][0]["status"], json!("Unknown"));
}

#[test]
fn a_runtime_that_says_nothing_leaves_criteria_unverified() {
    let written = written(plan(
        &with_criteria("Report", 1),
        &key(1),
        &result(|_| ()),
        false,
        now(),
    ));
    assert_eq!(written["conditions"][0]["reason"], json!("Unverified"));
    assert_eq!(written["acceptance"][0]["checked"], json!(false));
}

fn to_run_again(policy: &str) -> SubTask {
    subtask(|o| {
        o["spec"]["acceptance"] = json!(["rerun:make check", "file:a exists"]);
        o["spec"]["acceptancePolicy"] = json!(policy);
    })
}

/// The runtime says what it can, and more than it may.
fn judged_with_rerun(file_holds: bool) -> Report {
    let verdict = |criterion: &str, holds: bool| json!({"criterion": criterion, "family": "x", "checked": true, "holds": holds, "detail": ""});
    result(|r| {
        r["acceptance"] = json!([
            verdict("rerun:make check", true),
            verdict("file:a exists", file_holds)
        ]);
    })
}

#[test]
fn a_success_whose_criteria_are_to_be_run_again_is_left_to_the_operator() {
    for (policy, holds) in [("Report", true), ("Report", false), ("Require", true)] {
        let subtask = to_run_again(policy);
        let written = written(plan(&subtask, &key(1), &judged_with_rerun(holds), false, now()));
        assert_eq!(written["attempts/0/outcome"], json!("Success"));
        for settled in ["outcome", "reason", "phase", "nextAttemptTime"] {
            assert!(!written.contains_key(settled), "{policy} {holds} {settled}");
        }
        assert!(written["waitingFor"].is_string());
        assert_eq!(
            written["acceptance"][0]["checked"],
            json!(false),
            "whatever was said"
        );
        assert_eq!(written["acceptance"][1]["holds"], json!(holds));
    }
}

#[test]
fn nothing_is_run_again_when_it_could_change_nothing() {
    let subtask = to_run_again("Require");
    let written = written(plan(&subtask, &key(1), &judged_with_rerun(false), false, now()));
    assert_eq!(written["outcome"], json!("Success"));
    assert_eq!(
        written["acceptance"][0]["detail"],
        json!("not run again: another criterion does not hold")
    );
    let failed = plan(&to_run_again("Require"), &key(1), &failure(), false, now());
    assert_eq!(self::written(failed)["outcome"], json!("Error"));
}

#[test]
fn a_stopped_success_is_not_said_to_be_run_again() {
    let subtask = to_run_again("Report");
    let written = written(plan(&subtask, &key(1), &judged_with_rerun(true), true, now()));
    assert!(!written.contains_key("waitingFor") && !written.contains_key("outcome"));
}

fn of_agent(tokens: &Value, cost: u64) -> Report {
    result(|r| {
        r["agent"] =
            json!({"turns": 3, "stopReason": "TurnCapped", "spent": {"tokens": tokens, "costMicros": cost}});
    })
}

#[test]
fn an_agents_end_says_why_it_stopped_and_what_it_used_by_role() {
    let report = of_agent(&json!({"lead": 100, "summarizer": 20, "nobody": 7}), 1_500_000);
    let written = written(plan(&subtask(|_| ()), &key(1), &report, false, now()));
    assert_eq!(written["stopReason"], "TurnCapped");
    let usage = &written["usage"];
    assert_eq!(usage["tokensByRole"], json!({"lead": 100, "summarizer": 20}));
    assert_eq!((&usage["tokens"], &usage["cost"]), (&json!(120), &json!("1.5")));
    assert_eq!(usage["cpu"], 7);
}

#[test]
fn a_review_is_written_within_its_bounds_and_not_kept_from_an_attempt_before() {
    let of = |review: &Value| {
        let report = result(|r| r["agent"] = json!({"turns": 1, "spent": {}, "review": review}));
        let before = subtask(|o| o["status"]["review"] = json!({"accepted": true}));
        written(plan(&before, &key(1), &report, false, now()))
    };
    let notes = vec!["ä".repeat(600); 12];
    let refused = of(&json!({"accepted": false, "notes": notes}))["review"].clone();
    assert_eq!(refused["accepted"], false);
    let kept = refused["notes"].as_array().unwrap();
    assert_eq!((kept.len(), kept[0].as_str().unwrap().chars().count()), (10, 500));
    assert_eq!(of(&Value::Null)["review"], Value::Null);
}

#[test]
fn what_an_attempt_before_used_is_not_forgotten_by_one_that_tells_less() {
    let before = subtask(|o| {
        o["status"]["usage"] = json!({"tokens": 50, "tokensByRole": {"lead": 50}, "cost": "0.2"});
        o["status"]["stopReason"] = json!("LoopCapped");
    });
    let fewer = written(plan(
        &before,
        &key(1),
        &of_agent(&json!({"lead": 10}), 1),
        false,
        now(),
    ));
    assert_eq!(
        (&fewer["usage"]["tokens"], &fewer["usage"]["cost"]),
        (&json!(50), &json!("0.2"))
    );
    let silent = written(plan(&before, &key(1), &result(|_| ()), false, now()));
    assert_eq!(silent["usage"]["tokens"], 50);
    assert_eq!(silent["stopReason"], Value::Null, "that was another attempt's");
}
