use super::*;
use crate::conditions::Is;
use crate::settle;
use agentrun_api::{AcceptanceMetReason, AcceptancePolicy, Verdict};
use proptest::prelude::*;

fn file(path: &str, check: FileCheck) -> Criterion {
    Criterion::File {
        path: path.into(),
        check,
    }
}

fn columns(names: &[&str]) -> FileCheck {
    FileCheck::CsvColumns(names.iter().map(|name| (*name).to_owned()).collect())
}

fn regular(content: &[u8]) -> FileFacts {
    FileFacts::Regular(Regular {
        bytes: content.len() as u64,
        content: content.to_vec(),
        changed: false,
    })
}

#[derive(Debug, PartialEq)]
enum Word {
    Holds,
    Fails,
    Open,
}

fn word(finding: &Finding) -> Word {
    match (finding.checked, finding.holds) {
        (true, true) => Word::Holds,
        (true, false) => Word::Fails,
        (false, holds) => {
            assert!(!holds);
            Word::Open
        }
    }
}

fn decide(check: &FileCheck, facts: &FileFacts) -> Word {
    word(&decide_file(check, facts, None))
}

#[test]
fn every_family_is_read_in_any_case_and_with_spaces() {
    let table = [
        ("file:a.txt exists", file("a.txt", FileCheck::Exists)),
        (
            "FILE: my report.pdf  NON-EMPTY ",
            file("my report.pdf", FileCheck::NonEmpty),
        ),
        (
            "file:/mnt/user-data/outputs/a.json json-valid",
            file("/mnt/user-data/outputs/a.json", FileCheck::JsonValid),
        ),
        (
            "file:a.csv csv-columns:first name, last",
            file("a.csv", columns(&["first name", "last"])),
        ),
        (
            r#"file:a.csv csv-columns:"a,b",c"#,
            file("a.csv", columns(&["a,b", "c"])),
        ),
        ("file:exists exists", file("exists", FileCheck::Exists)),
        (
            "file:a.json json-schema:/mnt/skills/s/a.json",
            file("a.json", FileCheck::JsonSchema("/mnt/skills/s/a.json".into())),
        ),
        (
            "file_written:out/a b",
            Criterion::FileWritten {
                path: "out/a b".into(),
            },
        ),
        (
            "tests_passed: pytest -q",
            Criterion::TestsPassed {
                command: "pytest -q".into(),
            },
        ),
        (
            "rerun:python check.py",
            Criterion::Rerun {
                command: "python check.py".into(),
            },
        ),
        ("The report names its sources: all of them", Criterion::Unknown),
        ("profile: exists", Criterion::Unknown),
    ];
    for (text, expected) in table {
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_slip_is_told_with_what_to_write() {
    let table = [
        ("file:report.pdf", "names no check"),
        ("file:report.pdf nonempty", "names no check"),
        ("file: exists", "is empty after file:"),
        ("file_written:", "is empty after file_written:"),
        ("tests_passed: ", "is empty after tests_passed:"),
        ("rerun:", "is empty after rerun:"),
        (
            "tests-passed:pytest",
            r#"begins with "tests-passed:": write "tests_passed:""#,
        ),
        ("test_passed:pytest", r#"write "tests_passed:""#),
        ("File-Written:a", r#"write "file_written:""#),
        ("file:a.csv csv-columns:", "names an empty column"),
        ("file:a.csv csv-columns:a,,b", "names an empty column"),
        ("file:a.json json-schema:", "is empty after json-schema:"),
        ("file:/etc/passwd exists", "names \"/etc/passwd\": allowed are"),
        ("file:/mnt/user-data/uploads/a exists", "allowed are"),
        ("file:/mnt/user-data/workspace-x/a exists", "allowed are"),
        ("file:/mnt/user-data/outputs exists", "allowed are"),
        ("file:../outputs/a exists", "without .. parts"),
        ("file:a\0b exists", "allowed are"),
        ("file:a.json json-schema:/etc/schema.json", "allowed are"),
    ];
    for (text, expected) in table {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,500}") {
        let _any = parse(&text);
    }

    #[test]
    fn a_path_comes_back_as_it_was_written(path in "[a-zA-Z0-9._ \n-]{0,40}[a-zA-Z0-9_]") {
        let path = path.trim_start();
        let read = parse(&format!("file:{path} non-empty"));
        if path.split('/').any(|name| name == "..") {
            prop_assert!(read.is_err());
        } else {
            prop_assert_eq!(read, Ok(file(path, FileCheck::NonEmpty)));
        }
    }

    #[test]
    fn no_output_makes_a_judge_panic(lines in prop::collection::vec(".{0,80}", 0..20)) {
        for command in COMMANDS {
            let (_, mut judge) = judge_of(command, &[ran(&command.split(' ').collect::<Vec<_>>(), 0)]).unwrap();
            for line in &lines {
                judge.line(line);
            }
            prop_assert!(word(&judge.decide(true)) != Word::Holds);
        }
    }
}

// F120
#[test]
fn a_file_of_no_bytes_exists_and_is_empty() {
    let empty = regular(b"");
    assert_eq!(decide(&FileCheck::Exists, &empty), Word::Holds);
    for check in [FileCheck::NonEmpty, FileCheck::JsonValid, columns(&["a"])] {
        assert_eq!(decide(&check, &empty), Word::Fails, "{check:?}");
    }
}

// F124
#[test]
fn what_is_no_file_does_not_hold_and_what_cannot_be_read_is_open() {
    let checks = [
        FileCheck::Exists,
        FileCheck::NonEmpty,
        FileCheck::JsonValid,
        columns(&["a"]),
    ];
    for check in checks {
        for facts in [FileFacts::Missing, FileFacts::Outside, FileFacts::Other("pipe")] {
            assert_eq!(decide(&check, &facts), Word::Fails, "{check:?} {facts:?}");
        }
        assert_eq!(
            decide(&check, &FileFacts::Unreadable("denied".into())),
            Word::Open
        );
    }
}

#[test]
fn size_alone_decides_about_large_files() {
    let huge = FileFacts::Regular(Regular {
        bytes: 1 << 40,
        ..Regular::default()
    });
    assert_eq!(decide(&FileCheck::Exists, &huge), Word::Holds);
    assert_eq!(decide(&FileCheck::NonEmpty, &huge), Word::Holds);
    assert_eq!(decide(&FileCheck::JsonValid, &huge), Word::Open);
    assert_eq!(decide(&FileCheck::JsonSchema("s".into()), &huge), Word::Open);
    assert_eq!(decide(&columns(&["a"]), &huge), Word::Open);
}

// F122
#[test]
fn json_is_one_whole_document() {
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    let bad: [&[u8]; 9] = [
        b"{\"a\": ",
        b"{} {}",
        b"NaN",
        b"{\"a\":1,\"a\":2}",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"```json\n{}\n```",
        b"  \n",
        deep.as_bytes(),
    ];
    for content in bad {
        let finding = decide_file(&FileCheck::JsonValid, &regular(content), None);
        assert_eq!(word(&finding), Word::Fails, "{finding:?}");
        assert!(finding.detail.chars().count() <= MAX_DETAIL);
    }
    assert_eq!(
        decide(&FileCheck::JsonValid, &regular(b" [1, null]\n")),
        Word::Holds
    );
}

#[test]
fn what_changed_while_it_was_read_is_open() {
    let changed = FileFacts::Regular(Regular {
        bytes: 2,
        content: b"{}".to_vec(),
        changed: true,
    });
    assert_eq!(decide(&FileCheck::JsonValid, &changed), Word::Open);
    assert_eq!(decide(&columns(&["a"]), &changed), Word::Open);
}

// F126
#[test]
fn csv_columns_are_those_of_the_first_record() {
    let found = |content: &[u8]| decide_file(&columns(&["student", "score"]), &regular(content), None);
    assert_eq!(word(&found(b"student,score\nann,1\n")), Word::Holds);
    assert_eq!(word(&found(b"\xef\xbb\xbfscore,\"student\",x\r\n")), Word::Holds);
    assert_eq!(word(&found(b"\"student,score\"\n")), Word::Fails);
    assert_eq!(word(&found(b"student,score,score\n")), Word::Fails);
    assert_eq!(
        found(b"student;score\n").detail,
        "missing: student, score; it has: student;score"
    );
    assert_eq!(word(&found(b"\"student,score")), Word::Fails);
    assert_eq!(word(&found(b"\xff\xfes\0t\0")), Word::Fails);
}

#[test]
fn a_schema_decides_and_a_bad_schema_leaves_it_open() {
    let check = FileCheck::JsonSchema("s.json".into());
    let schema = regular(br#"{"type": "object", "required": ["a"]}"#);
    let by = |content: &[u8], schema: &FileFacts| word(&decide_file(&check, &regular(content), Some(schema)));
    assert_eq!(by(br#"{"a": 1}"#, &schema), Word::Holds);
    assert_eq!(by(b"{}", &schema), Word::Fails);
    assert_eq!(by(b"{", &schema), Word::Fails);
    for bad in [
        regular(b"{"),
        regular(br#"{"type": 1}"#),
        regular(br#"{"$ref": "https://example.com/s.json"}"#),
        FileFacts::Missing,
        FileFacts::Outside,
    ] {
        assert_eq!(by(br#"{"a": 1}"#, &bad), Word::Open, "{bad:?}");
    }
}

#[test]
fn a_file_counts_as_written_only_with_evidence() {
    let there = regular(b"x");
    assert_eq!(word(&decide_written(&there, Some(true))), Word::Holds);
    assert_eq!(word(&decide_written(&there, Some(false))), Word::Open);
    assert_eq!(word(&decide_written(&there, None)), Word::Open);
    assert_eq!(
        word(&decide_written(&FileFacts::Missing, Some(true))),
        Word::Fails
    );
}

const COMMANDS: [&str; 15] = [
    "pytest",
    "python3 -m unittest",
    "cargo test",
    "cargo nextest run",
    "go test ./...",
    "node --test",
    "npx jest",
    "npx vitest run",
    "mocha",
    "mvn test",
    "java -jar junit.jar",
    "ctest",
    "bundle exec rspec",
    "bats t",
    "npm test",
];

fn ran(argv: &[&str], code: i32) -> CommandRun {
    CommandRun {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        end: CallEnd::Exited(code),
    }
}

fn judged(command: &str, code: i32, output: &str) -> Finding {
    let argv: Vec<_> = command.split(' ').collect();
    let (_, mut judge) = judge_of(command, &[ran(&argv, code)]).unwrap();
    output.lines().for_each(|line| judge.line(line));
    judge.decide(true)
}

// F123
#[test]
fn without_a_summary_nothing_passes() {
    for command in COMMANDS {
        assert_eq!(word(&judged(command, 0, "")), Word::Open, "{command}");
        assert_eq!(
            word(&judged(command, 0, "all tests passed, 1 passed, OK")),
            Word::Open,
            "{command}"
        );
        let missing = judged(command, 127, "");
        assert_eq!(
            (word(&missing), missing.detail.as_str()),
            (Word::Fails, "exit code 127: the program was not found")
        );
        assert_eq!(word(&judged(command, 139, "1 passed")), Word::Fails, "{command}");
    }
    let killed = CommandRun {
        argv: vec!["pytest".into()],
        end: CallEnd::Killed,
    };
    let (_, judge) = judge_of("pytest", &[killed]).unwrap();
    assert_eq!(word(&judge.decide(true)), Word::Fails);
}

// F125
#[test]
fn no_collected_test_is_no_pass() {
    let finding = judged("pytest", 5, "no tests ran in 0.01s");
    assert_eq!(finding.detail, "exit code 5: no test was collected");
    for (command, output) in [
        ("pytest", "=== no tests ran in 0.01s ==="),
        ("pytest", "2 skipped in 0.01s"),
        ("python3 -m unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN"),
        ("python3 -m unittest", "Ran 0 tests in 0.000s\n\nOK"),
        (
            "cargo test",
            "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out",
        ),
        ("go test ./...", "?   \texample.com/a\t[no test files]"),
        ("go test ./...", "ok  \texample.com/a\t0.002s [no tests to run]"),
        (
            "node --test",
            "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0",
        ),
        ("bats t", "1..0"),
        ("ctest", "No tests were found!!!"),
        ("mocha", "  0 passing (1ms)"),
        ("bundle exec rspec", "0 examples, 0 failures"),
        ("mvn test", "[INFO] No tests to run.\n[INFO] BUILD SUCCESS"),
    ] {
        assert_eq!(
            word(&judged(command, 0, output)),
            Word::Fails,
            "{command}: {output}"
        );
    }
}

#[test]
fn the_summaries_of_all_runners_are_read() {
    let table = [
        (
            "pytest",
            "collected 4 items\n\na.py ....\n\n======= 3 passed, 1 skipped in 0.12s =======",
            "3 passed, 0 failed, 1 skipped",
        ),
        (
            "uv run pytest",
            "\u{1b}[32m12 passed\u{1b}[0m, 1 warning in 61.20s (0:01:01)",
            "",
        ),
        (
            "pytest",
            "12 passed, 1 warning in 61.20s (0:01:01)",
            "12 passed, 0 failed",
        ),
        (
            "python3 -m unittest",
            "..s\n----\nRan 3 tests in 0.001s\n\nOK (skipped=1)",
            "2 passed, 0 failed, 1 skipped",
        ),
        (
            "cargo test",
            "running 2 tests\ntest a ... ok\ntest b ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 \
             filtered out; finished in 0.00s\n\n   Doc-tests x\n\nrunning 1 test\n\ntest result: ok. 1 passed; 0 failed; 1 \
             ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "3 passed, 0 failed, 1 skipped",
        ),
        (
            "cargo nextest run",
            "     Summary [   0.010s] 7 tests run: 7 passed (1 slow), 2 skipped",
            "7 passed, 0 failed, 2 skipped",
        ),
        (
            "go test ./...",
            "ok  \texample.com/a\t0.002s\nok  \texample.com/b\t(cached)\n?   \texample.com/c\t[no test files]",
            "2 passed, 0 failed",
        ),
        (
            "go test ./...",
            "=== RUN   TestA\n--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\n--- SKIP: TestC (0.00s)\nPASS\nok  \texample.com/a\t0.002s",
            "2 passed, 0 failed, 1 skipped",
        ),
        (
            "node --test",
            "✔ a (0.4ms)\nℹ tests 2\nℹ suites 0\nℹ pass 1\nℹ fail 0\nℹ cancelled 0\nℹ skipped 1\nℹ todo 0\nℹ duration_ms 40",
            "1 passed, 0 failed, 1 skipped",
        ),
        (
            "node --test",
            "TAP version 13\nok 1 - a\n1..1\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0",
            "1 passed, 0 failed",
        ),
        (
            "npx jest",
            "Test Suites: 1 passed, 1 total\nTests:       1 skipped, 3 passed, 4 total\nSnapshots:   0 total",
            "3 passed, 0 failed, 1 skipped",
        ),
        (
            "npx vitest run",
            " Test Files  1 passed (1)\n      Tests  5 passed | 1 skipped (6)\n   Start at  10:00:00",
            "5 passed, 0 failed, 1 skipped",
        ),
        (
            "mocha",
            "  4 passing (12ms)\n  1 pending",
            "4 passed, 0 failed, 1 skipped",
        ),
        (
            "mvn test",
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.1 s - in ATest\n[INFO] Results:\n[WARNING] \
             Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n[INFO] BUILD SUCCESS",
            "4 passed, 0 failed, 1 skipped",
        ),
        (
            "java -jar junit.jar",
            "[         2 containers failed     ]\n[         5 tests found           ]\n[         0 tests skipped         ]\n[         \
             5 tests successful      ]\n[         0 tests failed          ]",
            "5 passed, 2 failed",
        ),
        (
            "java org.junit.runner.JUnitCore A",
            "OK (3 tests)",
            "3 passed, 0 failed",
        ),
        (
            "ctest",
            "100% tests passed, 0 tests failed out of 3",
            "3 passed, 0 failed",
        ),
        (
            "bundle exec rspec",
            "7 examples, 0 failures, 2 pending",
            "5 passed, 0 failed, 2 skipped",
        ),
        (
            "bats t",
            "1..2\nok 1 a\nok 2 b # skip no tool",
            "1 passed, 0 failed, 1 skipped",
        ),
        (
            "bats t",
            " ✓ a\n\n5 tests, 0 failures, 1 skipped",
            "4 passed, 0 failed, 1 skipped",
        ),
        (
            "npm test",
            "> x@1.0.0 test\n> jest\n\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total",
            "3 passed, 0 failed",
        ),
    ];
    for (command, output, expected) in table {
        let finding = judged(command, 0, output);
        if !expected.is_empty() {
            assert_eq!(finding.detail, expected, "{command}: {output}");
        }
        let bad = finding.detail.contains(" 2 failed");
        assert_eq!(
            word(&finding),
            if bad { Word::Fails } else { Word::Holds },
            "{command}: {output}"
        );
    }
}

// F123
#[test]
fn a_failure_or_half_a_summary_is_no_pass_whatever_the_exit_code() {
    let table = [
        ("pytest", "1 failed, 3 passed in 0.12s"),
        ("pytest", "1 passed, 1 error in 0.12s"),
        (
            "python3 -m unittest",
            "Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)",
        ),
        ("python3 -m unittest", "Ran 3 tests in 0.001s\n"),
        ("cargo test", "running 2 tests\ntest a ... ok"),
        (
            "cargo test",
            "running 1 test\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\nrunning 2 tests",
        ),
        (
            "cargo test",
            "running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
        ),
        (
            "cargo nextest run",
            "     Summary [   0.010s] 3/7 tests run: 3 passed, 0 skipped",
        ),
        (
            "cargo nextest run",
            "     Summary [   0.010s] 7 tests run: 6 passed, 1 failed, 0 skipped",
        ),
        (
            "go test ./...",
            "--- FAIL: TestA (0.00s)\nFAIL\nFAIL\texample.com/a\t0.002s\nok  \texample.com/b\t0.1s",
        ),
        ("go test ./...", "--- PASS: TestA (0.00s)"),
        ("node --test", "ℹ tests 2\nℹ pass 2"),
        ("node --test", "ℹ tests 2\nℹ pass 1\nℹ fail 0\nℹ cancelled 1"),
        ("npx jest", "Tests:       3 passed, 3 total"),
        (
            "npx jest",
            "Test Suites: 1 failed, 1 passed, 2 total\nTests:       3 passed, 3 total",
        ),
        (
            "npx vitest run",
            " Test Files  1 failed | 1 passed (2)\n      Tests  5 passed (5)",
        ),
        (
            "npx vitest run",
            " Test Files  1 passed (1)\n      Tests  5 passed (5)\n     Errors  1 error",
        ),
        ("mocha", "  4 passing (12ms)\n  1 failing"),
        (
            "mvn test",
            "[INFO] Tests run: 5, Failures: 0, Errors: 0, Skipped: 0",
        ),
        ("ctest", "67% tests passed, 1 tests failed out of 3"),
        (
            "bundle exec rspec",
            "7 examples, 0 failures, 1 error occurred outside of examples",
        ),
        ("bats t", "1..3\nok 1 a\nok 2 b"),
        ("bats t", "1..2\nok 1 a\nnot ok 2 b"),
        (
            "npm test",
            "3 passed in 0.1s\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total",
        ),
    ];
    for (command, output) in table {
        let finding = judged(command, 0, output);
        assert_eq!(word(&finding), Word::Fails, "{command}: {output}: {finding:?}");
    }
}

#[test]
fn another_runners_words_count_for_nothing() {
    assert_eq!(
        word(&judged(
            "pytest",
            0,
            "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total"
        )),
        Word::Open
    );
    assert_eq!(word(&judged("npx jest", 0, "3 passed in 0.12s")), Word::Open);
}

#[test]
fn a_long_log_leaves_counts_open_but_not_an_exit_code() {
    let (_, mut judge) = judge_of("pytest", &[ran(&["pytest"], 0)]).unwrap();
    judge.line("3 passed in 0.12s");
    assert_eq!(word(&judge.decide(false)), Word::Open);
    let (_, judge) = judge_of("pytest", &[ran(&["pytest"], 1)]).unwrap();
    assert_eq!(word(&judge.decide(false)), Word::Fails);
}

#[test]
fn only_what_was_run_as_it_is_written_counts() {
    let matches = |command: &str, argv: &[&str]| judge_of(command, &[ran(argv, 0)]).is_ok();
    for (command, argv) in [
        ("pytest -q", &["pytest", "-q"][..]),
        ("pytest", &["pytest", "-q"]),
        ("pytest tests", &["sh", "-c", "pytest tests"]),
        (
            "pytest tests",
            &[
                "/bin/bash",
                "-euo",
                "pipefail",
                "-c",
                "cd app && pytest tests 2>&1",
            ],
        ),
        ("pytest tests", &["bash", "--norc", "-e", "-c", "pytest tests"]),
        ("pytest tests", &["bash", "-lc", "set -e\ncd app\npytest tests\n"]),
        ("pytest", &["sh", "-c", "set -euo pipefail\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -u -o errexit\ncd app\npytest"]),
        ("pytest 'a b.py'", &["pytest", "a b.py"]),
        ("CI=1 npx jest", &["sh", "-c", "CI=1 npx jest"]),
    ] {
        assert!(matches(command, argv), "{command}: {argv:?}");
    }
    for (command, argv) in [
        ("pytest", &["pytest", "-k", "one"][..]),
        ("pytest tests", &["pytest"]),
        ("pytest", &["echo", "pytest"]),
        ("pytest", &["sh", "-c", "echo '1 passed in 0.1s' && pytest"]),
        ("pytest", &["sh", "-c", "pytest; true"]),
        ("pytest", &["sh", "-c", "pytest || true"]),
        ("pytest", &["sh", "-c", "pytest | tail -1"]),
        ("pytest", &["sh", "-c", "pytest > log"]),
        ("pytest", &["sh", "-c", "pytest && echo '1 passed in 0.1s'"]),
        ("pytest", &["sh", "-c", "cd app\npytest"]),
        ("pytest", &["sh", "-c", "set -e +e\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -e +o errexit\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -eo\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -e pipefail\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -e -\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -ex\ncd app\npytest"]),
        ("pytest", &["sh", "-c", "set -u\ncd app\npytest"]),
        // What is no blank to a shell is part of a word: these run other programs.
        ("python3 -m pytest", &["sh", "-c", "python3 -m pytest2>&1"]),
        (
            "python3 -m pytest",
            &["sh", "-c", "cd app && python3 -m pytest\r"],
        ),
        ("python3 -m pytest", &["sh", "-c", "python3 -m pytest\u{c}"]),
        (
            "python3 -m pytest",
            &["sh", "-c", "\u{a0}python3 -m pytest\u{a0}\n"],
        ),
        ("pytest", &["sh", "-c", "PATH=. && pytest"]),
        ("pytest", &["sh", "-c", "pytest $ARGS"]),
        ("pytest", &["sh", "pytest"]),
        ("pytest", &["sh", "-c", "echo '1 passed in 0.1s'", "-c", "pytest"]),
        (
            "pytest",
            &["sh", "-ec", "echo '1 passed in 0.1s'", "-c", "pytest"],
        ),
        ("pytest", &["bash", "passed.sh", "-c", "pytest"]),
        ("pytest", &["bash", "-e", "passed.sh", "-c", "pytest"]),
        ("pytest", &["bash", "-o", "./passed.sh", "-c", "pytest"]),
        ("pytest", &["bash", "--rcfile", "passed.sh", "-ic", "pytest"]),
    ] {
        let finding = judge_of(command, &[ran(argv, 0)]).unwrap_err();
        assert_eq!(word(&finding), Word::Open, "{command}: {argv:?}");
    }
}

#[test]
fn the_newest_call_that_matches_decides() {
    let calls = [ran(&["pytest"], 0), ran(&["pytest"], 1), ran(&["ls"], 0)];
    assert_eq!(judge_of("pytest", &calls).unwrap().0, 1);
}

#[test]
fn commands_that_are_no_known_runner_stay_open() {
    for command in [
        "./test.sh",
        "python3 test.py",
        "cargo build",
        "go vet",
        "node a.js",
        "echo ok",
        "pytest $(ls)",
        "a 'b",
    ] {
        let argv: Vec<_> = command.split(' ').collect();
        let finding = judge_of(command, &[ran(&argv, 0)]).unwrap_err();
        assert_eq!(word(&finding), Word::Open, "{command}");
    }
}

fn verdict(criterion: &str, checked: bool, holds: bool) -> Verdict {
    Verdict {
        criterion: criterion.into(),
        checked,
        holds,
        detail: Some("why".into()),
        ..Verdict::default()
    }
}

#[test]
fn together_they_hold_only_if_every_one_does() {
    let table = [
        (vec![], Is::Unknown, AcceptanceMetReason::NotChecked),
        (
            vec![verdict("a", true, true)],
            Is::True,
            AcceptanceMetReason::Holds,
        ),
        (
            vec![verdict("a", true, true), verdict("b", false, true)],
            Is::Unknown,
            AcceptanceMetReason::Unverified,
        ),
        (
            vec![verdict("a", false, false), verdict("b", true, false)],
            Is::False,
            AcceptanceMetReason::DoesNotHold,
        ),
    ];
    for (verdicts, is, reason) in table {
        let standing = standing(&verdicts);
        assert_eq!((standing.is, standing.reason), (is, reason), "{verdicts:?}");
        let accepted = standing.verdict(Some(AcceptancePolicy::Require)) == settle::Verdict::Accepted;
        assert_eq!(accepted, is == Is::True);
        assert_eq!(
            standing.verdict(Some(AcceptancePolicy::Report)),
            settle::Verdict::Accepted
        );
        assert_eq!(standing.verdict(None), settle::Verdict::Accepted);
    }
}

#[test]
fn a_criterion_that_nobody_spoke_of_is_open_and_a_stranger_is_dropped() {
    let criteria = ["a".to_owned(), "file:b exists".to_owned()];
    let verdicts = of_report(&criteria, &[verdict("c", true, true), verdict("a", true, true)]);
    assert_eq!(verdicts[0], verdict("a", true, true));
    assert_eq!(
        (verdicts[1].checked, verdicts[1].family.as_deref()),
        (false, Some("file"))
    );
    assert_eq!(verdicts.len(), 2);
    assert_eq!(
        notes(&verdicts),
        ["[unverified] file:b exists: it was not checked"]
    );
    assert_eq!(
        standing(&verdicts).message,
        "1 of 2 criteria hold; [unverified] file:b exists: it was not checked"
    );
}
