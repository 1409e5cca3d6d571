//! Criteria, from the assignment to the result, with the real executor.

use crate::real::Real;
use crate::world::{World, command, function};
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{Assignment, CacheKey};
use std::time::Duration;

fn with_criteria(script: &str, criteria: &[&str]) -> Assignment {
    Assignment {
        acceptance: criteria.iter().map(|text| (*text).to_owned()).collect(),
        ..command(&["sh", "-c", script])
    }
}

/// `holds`, `fails` or `open` of each, in order.
fn words(result: &AttemptResult) -> Vec<&'static str> {
    let words = result
        .acceptance
        .iter()
        .map(|verdict| match (verdict.checked, verdict.holds) {
            (true, true) => "holds",
            (true, false) => "fails",
            (false, _) => "open",
        });
    words.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_comes_with_what_each_criterion_says() {
    let mut real = Real::start().await;
    let script =
        "mkfifo pipe; ln -s /etc/passwd passwd; echo '{}' > a.json; echo 'Ran 2 tests in 0.1s'; echo OK";
    let criteria = [
        "file:a.json json-valid",
        "file:pipe exists",
        "file:passwd exists",
        "file:nothing exists",
        "file_written:a.json",
        "tests_passed:python3 -m unittest",
        "It reads well",
    ];
    let result = real.next(with_criteria(script, &criteria)).await;
    assert_eq!(result.ending, Ending::Success, "{result:?}");
    let expected = ["holds", "fails", "fails", "fails", "holds", "open", "open"];
    assert_eq!(words(&result), expected, "{:#?}", result.acceptance);
    // The next attempt finds what the first one wrote, and did not have to write it again.
    let again = real.next(with_criteria("true", &["file_written:a.json"])).await;
    assert_eq!(words(&again), ["holds"], "{:#?}", again.acceptance);
}

#[tokio::test(flavor = "multi_thread")]
async fn passed_tests_are_read_from_the_whole_log() {
    let mut real = Real::start().await;
    // A program of this name stands for the runner: its noise is longer than every tail.
    let runner = "mkdir -p bin && printf '#!/bin/sh\\nseq 100000\\necho 3 passed in 0.10s\\n' > bin/pytest && chmod +x bin/pytest";
    assert_eq!(
        real.next(command(&["sh", "-c", runner])).await.ending,
        Ending::Success
    );
    let criteria = ["tests_passed:bin/pytest", "tests_passed:bin/pytest -k one"];
    let result = real.next(with_criteria("bin/pytest", &criteria)).await;
    assert_eq!(words(&result), ["holds", "open"], "{:#?}", result.acceptance);
    let hidden = real.next(with_criteria("bin/pytest || true", &criteria)).await;
    assert_eq!(words(&hidden), ["open", "open"], "{:#?}", hidden.acceptance);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_fails_is_not_checked_and_notes_reach_the_work() {
    let mut real = Real::start().await;
    let failed = real.next(with_criteria("exit 1", &["file:a exists"])).await;
    assert!(failed.acceptance.is_empty());
    let mut noted = with_criteria("printf %s \"$AGENTRUN_NOTES\" > \"$AGENTRUN_OUTPUT\"", &[]);
    noted.notes = vec!["a \"b\"".to_owned()];
    let result = real.next(noted).await;
    assert_eq!(result.output, Some(serde_json::json!(["a \"b\""])));
}

// F121
#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_does_not_meet_its_criteria_is_not_taken_again() {
    let mut real = Real::start().await;
    real.skill("same.sh", "#!/bin/sh\necho 1\n");
    let mut assignment = function("same.sh");
    assignment.cache = Some(CacheKey::default());
    assignment.acceptance = vec!["file:made exists".to_owned()];
    for _ in 0..2 {
        let result = real.next(assignment.clone()).await;
        assert_eq!(
            (result.reason.as_str(), words(&result)),
            ("Completed", vec!["fails"])
        );
    }
    std::fs::write(real.world.path("data/workspace/made"), "x").unwrap();
    for reason in ["Completed", "Cached"] {
        let result = real.next(assignment.clone()).await;
        assert_eq!((result.reason.as_str(), words(&result)), (reason, vec!["holds"]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn looks_at_what_the_work_left_end_in_time_and_the_result_says_what_was_not_looked_at() {
    let mut world = World::new().await;
    world.settings.bounds.collect = Duration::ZERO;
    let (_runtime, mut executor, mut peer) = world.up().await;
    std::fs::write(world.path("data/outputs/made"), "x").unwrap();
    let mut assignment = function("f");
    assignment.acceptance = vec!["file:/mnt/user-data/outputs/made exists".to_owned()];
    peer.assign(&assignment).await;
    executor.answer(b"1\n").await;
    let result = peer.result().await;
    assert_eq!(result.ending, Ending::Success);
    assert_eq!(result.artifacts, []);
    assert!(
        result.message.contains("artifacts may be missing"),
        "{}",
        result.message
    );
    assert_eq!(words(&result), ["open"]);
    assert_eq!(result.acceptance[0].detail, "the time for checks was over");
}
