//! What acceptance criteria say of what was really delivered, and what follows.

use crate::framework::{Finished, World, command, python};
use agentrun_api::names::conditions::ACCEPTANCE_MET;
use agentrun_api::{SubTaskStatus, Verdict};
use serde_json::json;

/// Criterion, `holds`, `fails` or `open`.
fn found(verdicts: &[Verdict]) -> Vec<(&str, &str)> {
    let word = |verdict: &Verdict| match (verdict.checked, verdict.holds) {
        (true, true) => "holds",
        (true, false) => "fails",
        (false, _) => "open",
    };
    let found = verdicts
        .iter()
        .map(|verdict| (verdict.criterion.as_str(), word(verdict)));
    found.collect()
}

/// Status and reason of the condition, as one text.
fn met(status: &SubTaskStatus) -> String {
    let condition = status
        .conditions
        .iter()
        .find(|condition| condition.type_ == ACCEPTANCE_MET)
        .expect("the condition is set");
    format!("{}/{}", condition.status, condition.reason)
}

// F120, F122, F126
pub async fn criteria_about_files_are_decided_from_what_lies_there(world: World) {
    let work = python(
        "o = pathlib.Path('/mnt/user-data/outputs')\n\
         (o / 'empty').touch()\n(o / 'good.json').write_text('{\"a\": 1}')\n(o / 'cut.json').write_text('{\"a\": ')\n\
         (o / 'a.csv').write_bytes(b'\\xef\\xbb\\xbf\"student, first\",score\\r\\n1,2\\r\\n')\n\
         os.symlink('/etc/passwd', o / 'passwd')\nos.mkfifo('pipe')\npathlib.Path('made').write_text('x')\n\
         pathlib.Path('long.json').write_text('[' + '1,' * 40000 + '1]')",
    );
    let expected = [
        ("file:/mnt/user-data/outputs/empty exists", "holds"),
        ("file:/mnt/user-data/outputs/empty non-empty", "fails"),
        ("file:/mnt/user-data/outputs/good.json json-valid", "holds"),
        ("file:/mnt/user-data/outputs/cut.json json-valid", "fails"),
        (
            r#"file:/mnt/user-data/outputs/a.csv csv-columns:score,"student, first""#,
            "holds",
        ),
        ("file:/mnt/user-data/outputs/a.csv csv-columns:grade", "fails"),
        (
            "file:/mnt/user-data/outputs/good.json json-schema:/mnt/user-data/uploads/schema.json",
            "fails",
        ),
        ("file:/mnt/user-data/outputs/passwd exists", "fails"),
        ("file:pipe non-empty", "fails"),
        ("file:long.json json-valid", "open"),
        ("file_written:made", "holds"),
        ("file_written:never", "fails"),
        ("the table is easy to read", "open"),
    ];
    let criteria: Vec<_> = expected.iter().map(|(criterion, _)| *criterion).collect();
    let spec = format!(
        "files: [{{path: schema.json, content: '{{\"required\": [\"b\"]}}'}}]\n\
         tasks:\n- name: make\n  {work}\n  acceptance: {}\n",
        json!(criteria)
    );
    let ended = world.finish("files", &spec).await;
    ended.succeeded();
    let status = ended.task_ended("make", "Success/Completed");
    assert_eq!(found(&status.acceptance), expected, "{:#?}", status.acceptance);
    assert_eq!(met(status), "False/DoesNotHold");
    assert_eq!(ended.status().verdict.as_deref(), Some("DoesNotHold"));
}

/// What stands in the tests' log decides together with the exit code, and nothing is run twice.
pub async fn passed_tests_are_counted_in_the_record_of_the_run(world: World) {
    let write = python(
        "pathlib.Path('test_a.py').write_text('import unittest\\nclass A(unittest.TestCase):\\n    def test_a(self): pass\\n')",
    );
    let test = command(&["python3", "-m", "unittest", "-v", "test_a"]);
    let empty = command(&["sh", "-c", "python3 -m unittest discover none_here || true"]);
    let forged = command(&["sh", "-c", "echo Ran 1 test in 0.001s; echo OK"]);
    let spec = format!(
        "tasks:\n- name: write\n  {write}\n\
         - name: test\n  dependsOn: [{{task: write}}]\n  {test}\n  acceptance: [\"tests_passed:python3 -m unittest test_a\"]\n  acceptancePolicy: Require\n\
         - name: empty\n  {empty}\n  acceptance: [\"tests_passed:python3 -m unittest discover none_here\"]\n\
         - name: forged\n  {forged}\n  acceptance: [\"tests_passed:python3 -m unittest test_a\"]\n"
    );
    let ended = world.finish("tests", &spec).await;
    let words = |task: &str| found(&ended.tasks.get(task).acceptance)[0].1;
    assert_eq!(words("test"), "holds", "{:#?}", ended.tasks.get("test"));
    assert_eq!(met(ended.tasks.get("test")), "True/Holds");
    assert_eq!(words("empty"), "open");
    assert_eq!(words("forged"), "open");
    ended.succeeded();
}

/// A second attempt learns from the first one's rerun; what the reruns tried to write is not there.
pub async fn a_command_is_run_again_in_a_fresh_sandbox_that_only_reads(world: World) {
    let learns = python(
        "notes = json.loads(os.environ.get('AGENTRUN_NOTES', '[]'))\nput(notes)\n\
         pathlib.Path('/tmp/mine').write_text('x')\npathlib.Path('answer').write_text('42' if notes else '41')",
    );
    let told = python("pathlib.Path('a').write_text('x')");
    let fresh = "rerun:test ! -e /tmp/mine && echo x > /tmp/mine";
    let required = json!([
        "rerun:grep -q 42 answer || { echo wrong answer >&2; exit 3; }",
        fresh
    ]);
    let reported = json!([
        "rerun:test -s a",
        "rerun:echo x > b",
        "rerun:echo x > /mnt/user-data/outputs/b",
        "rerun:kill -9 $$",
    ]);
    let spec = format!(
        "tasks:\n- name: learns\n  {learns}\n  acceptance: {required}\n  acceptancePolicy: Require\n  retry: {{attempts: 2, backoff: 1s}}\n\
         - name: told\n  {told}\n  acceptance: {reported}\n\
         - name: look\n  dependsOn: [{{task: told}}]\n  {}\n",
        command(&["sh", "-c", "test ! -e b && test ! -e /mnt/user-data/outputs/b"])
    );
    let ended = world.finish("rerun", &spec).await;
    ended.succeeded();
    let learned = ended.task_ended("learns", "Success/Completed");
    assert_eq!((learned.attempts.len(), met(learned)), (2, "True/Holds".into()));
    let notes = [
        "[does not hold] rerun:grep -q 42 answer || { echo wrong answer >&2; exit 3; }: exit code 3: wrong answer",
        "[unverified] rerun:test ! -e /tmp/mine && echo x > /tmp/mine: not run again: another criterion does not hold",
    ];
    assert_eq!(ended.tasks.output("learns"), json!(notes));
    let told = ended.task_ended("told", "Success/Completed");
    let words: Vec<_> = found(&told.acceptance)
        .into_iter()
        .map(|(_, word)| word)
        .collect();
    assert_eq!(
        words,
        ["holds", "fails", "fails", "open"],
        "{:#?}",
        told.acceptance
    );
    assert_eq!(
        ended.status().done.as_deref(),
        Some("3/3"),
        "reruns are no tasks of the plan"
    );
    ended.task_ended("look", "Success/Completed");
}

// F121
pub async fn what_is_required_and_not_met_is_tried_again_with_notes(world: World) {
    // Only the second attempt knows what was missing.
    let learns = python(
        "notes = json.loads(os.environ.get('AGENTRUN_NOTES', '[]'))\nput(notes)\n\
         if notes: pathlib.Path('report.txt').write_text('done')",
    );
    let never = python("put(1)");
    let spec = format!(
        "tasks:\n- name: learns\n  {learns}\n  acceptance: [\"file:report.txt non-empty\"]\n  acceptancePolicy: Require\n  retry: {{attempts: 2, backoff: 1s}}\n\
         - name: after\n  dependsOn: [{{task: learns}}]\n  {never}\n\
         - name: never\n  {never}\n  acceptance: [\"file:nothing exists\"]\n  acceptancePolicy: Require\n\
         - name: waits\n  dependsOn: [{{task: never}}]\n  {never}\n\
         - name: fails\n  command: {{argv: [\"false\"]}}\n  acceptance: [\"file:nothing exists\"]\n"
    );
    let ended = world.finish("required", &spec).await;
    let wise = ended.task_ended("learns", "Success/Completed");
    assert_eq!(wise.attempts.len(), 2);
    assert_eq!(met(wise), "True/Holds");
    let note = "[does not hold] file:report.txt non-empty: it does not exist";
    assert_eq!(ended.tasks.output("learns"), json!([note]));
    ended.task_ended("after", "Success/Completed");
    let never = ended.task_ended("never", "Success/Completed");
    assert_eq!(met(never), "False/DoesNotHold");
    ended.task_ended("waits", "Skipped/DependencyFailed");
    assert_eq!(
        met(ended.task_ended("fails", "Error/ExitCode")),
        "Unknown/NotChecked"
    );
    assert_eq!(ended.end(), "Failed/TaskFailed");
    assert!(said(&ended).contains("never (not accepted)"), "{}", said(&ended));
}

fn said(ended: &Finished) -> String {
    let messages = ended
        .status()
        .conditions
        .iter()
        .map(|condition| condition.message.clone());
    messages.collect::<Vec<_>>().join("; ")
}

/// Phase and reason of a run, and status and reason of its condition.
fn run_met(ended: &Finished) -> (String, String) {
    let conditions = &ended.status().conditions;
    let condition = conditions
        .iter()
        .find(|condition| condition.type_ == ACCEPTANCE_MET);
    let condition = condition.expect("the condition is set");
    (ended.end(), format!("{}/{}", condition.status, condition.reason))
}

pub async fn a_runs_own_criteria_are_checked_after_its_last_task(world: World) {
    let spec = |code: &str, more: &str| {
        let work = python(code);
        format!(
            "acceptance: [\"file:/mnt/user-data/outputs/a.json json-valid\"]\ntasks:\n- name: make\n  {work}\n{more}"
        )
    };
    let write = "pathlib.Path('/mnt/user-data/outputs/a.json').write_text('{}')\nput(7)";
    let good = world
        .finish("good", &spec(write, "acceptancePolicy: Require\n"))
        .await;
    assert_eq!(
        run_met(&good),
        ("Succeeded/Succeeded".into(), "True/Holds".into())
    );
    assert_eq!(
        good.status().output.as_ref().map(|output| output.0.clone()),
        Some(json!(7))
    );
    assert_eq!(
        good.status().done.as_deref(),
        Some("1/1"),
        "the check is no task of the plan"
    );
    let bad = world
        .finish("bad", &spec("put(7)", "acceptancePolicy: Require\n"))
        .await;
    assert_eq!(
        run_met(&bad),
        ("Failed/AcceptanceNotMet".into(), "False/DoesNotHold".into())
    );
    assert_eq!(found(&bad.status().acceptance)[0].1, "fails");
    let told = world.finish("told", &spec("put(7)", "")).await;
    assert_eq!(
        run_met(&told),
        ("Succeeded/Succeeded".into(), "False/DoesNotHold".into())
    );
    let failed = world
        .finish("failed", &spec("sys.exit(1)", "acceptancePolicy: Require\n"))
        .await;
    assert_eq!(
        run_met(&failed),
        ("Failed/TaskFailed".into(), "Unknown/NotChecked".into())
    );
}
