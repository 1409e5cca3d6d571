use super::*;

#[track_caller]
fn check(end: &ProcessEnd, stderr: &str, reason: SubTaskReason, parts: &[&str]) {
    let diagnosis = diagnose(end, stderr);
    assert_eq!(diagnosis.reason, reason, "{diagnosis:?}");
    for part in parts {
        assert!(
            diagnosis.message.contains(part),
            "{:?} lacks {part:?}",
            diagnosis.message
        );
    }
}

#[track_caller]
fn exit(stderr: &str, reason: SubTaskReason, parts: &[&str]) {
    check(&ProcessEnd::Exited { code: 1 }, stderr, reason, parts);
}

#[test]
fn a_missing_module_is_named() {
    let python = "Traceback (most recent call last):\n  File \"f.py\", line 1\nModuleNotFoundError: No module named 'pandas'\n";
    exit(
        python,
        SubTaskReason::ModuleNotFound,
        &["Python module \"pandas\"", "exit code 1"],
    );
    exit(
        "/usr/bin/python3: No module named pytest",
        SubTaskReason::ModuleNotFound,
        &["\"pytest\""],
    );
    let node = "node:internal/modules\n  throw err;\nError: Cannot find module 'lodash'\nRequire stack:\n- /f.js\n    at x\n\nNode.js v22.1.0\n";
    exit(node, SubTaskReason::ModuleNotFound, &["Node module \"lodash\""]);
    exit(
        "Error [ERR]: Cannot find package 'zod' imported from /a.mjs",
        SubTaskReason::ModuleNotFound,
        &["\"zod\""],
    );
    exit(
        "there is No module named x in my notes",
        SubTaskReason::ExitCode,
        &["exit code 1"],
    );
}

#[test]
fn a_missing_interpreter_is_named() {
    exit(
        "env: 'python3': No such file or directory",
        SubTaskReason::InterpreterNotFound,
        &["\"python3\""],
    );
    exit(
        "/usr/bin/env: ‘node’: No such file or directory",
        SubTaskReason::InterpreterNotFound,
        &["\"node\""],
    );
    exit(
        "sh: 1: jq: not found",
        SubTaskReason::InterpreterNotFound,
        &["\"jq\""],
    );
    exit(
        "bash: line 3: jq: command not found",
        SubTaskReason::InterpreterNotFound,
        &["\"jq\""],
    );
    exit(
        "sh: ./x: /bin/foo: bad interpreter: No such file or directory",
        SubTaskReason::InterpreterNotFound,
        &["/bin/foo"],
    );
    exit(
        "cat: /x: No such file or directory",
        SubTaskReason::ExitCode,
        &["ends with `cat: /x"],
    );
    let end = ProcessEnd::NotStarted {
        error: StartError::NotFound,
        message: "program x does not exist".to_owned(),
    };
    check(
        &end,
        "",
        SubTaskReason::InterpreterNotFound,
        &["program x does not exist"],
    );
}

#[test]
fn limits_that_were_hit_name_their_field() {
    exit(
        "OSError: [Errno 24] Too many open files: 'a'",
        SubTaskReason::TooManyOpenFiles,
        &["max_open_files"],
    );
    exit(
        "OSError: [Errno 27] File too large",
        SubTaskReason::FileTooLarge,
        &["max_file_mb"],
    );
    check(
        &ProcessEnd::Signalled { signal: 25 },
        "",
        SubTaskReason::FileTooLarge,
        &["max_file_mb", "SIGXFSZ"],
    );
    check(
        &ProcessEnd::Signalled { signal: 24 },
        "",
        SubTaskReason::ExitCode,
        &["timeout_sec"],
    );
    exit("MemoryError", SubTaskReason::ExitCode, &["max_memory_mb"]);
    exit(
        "PermissionError: [Errno 13] Permission denied: '/etc/x'",
        SubTaskReason::PermissionDenied,
        &["/etc/x", "workspace"],
    );
    exit(
        "EROFS: read-only file system, open '/mnt/x'",
        SubTaskReason::PermissionDenied,
        &["/mnt/x"],
    );
}

#[test]
fn the_last_line_that_says_something_decides() {
    let stderr = "warning: Permission denied: /root/.cache\nImportError: No module named foo\nbye\n";
    exit(stderr, SubTaskReason::ModuleNotFound, &["\"foo\""]);
    let stderr = format!("Permission denied\n{}", "line\n".repeat(LINES));
    exit(&stderr, SubTaskReason::ExitCode, &["ends with `line`"]);
}

// F082
#[test]
fn a_full_volume_is_a_reason_of_its_own() {
    exit(
        "OSError: [Errno 28] No space left on device",
        SubTaskReason::NoSpaceLeft,
        &["userData.size"],
    );
}

// F051
#[test]
fn signal_9_alone_is_no_memory_kill() {
    check(
        &ProcessEnd::Signalled { signal: 9 },
        "Killed",
        SubTaskReason::Signal9,
        &["signal 9"],
    );
    check(
        &ProcessEnd::Signalled { signal: 11 },
        "oops",
        SubTaskReason::ExitCode,
        &["SIGSEGV", "`oops`"],
    );
    check(
        &ProcessEnd::SandboxReset,
        "",
        SubTaskReason::SandboxReset,
        &["supervisor"],
    );
}

#[test]
fn a_structured_error_is_forwarded() {
    let stderr = "starting\n{\"code\": \"INPUT_VALIDATION_ERROR\", \"message\": \"grade is missing\", \"field\": \"grade\"}\n\n";
    let diagnosis = diagnose(&ProcessEnd::Exited { code: 2 }, stderr);
    assert_eq!(diagnosis.code.as_deref(), Some("INPUT_VALIDATION_ERROR"));
    assert_eq!(diagnosis.message, "INPUT_VALIDATION_ERROR: grade is missing");
    assert_eq!(diagnosis.reason, SubTaskReason::ExitCode);
    for none in [
        "{\"level\": \"info\"}",
        "{\"code\": \"\"}",
        "{\"code\": 5}",
        "{",
        "",
        "code: X",
    ] {
        assert_eq!(structured_error(none), None, "{none}");
    }
    let long = format!(
        "{{\"code\": \"{}\", \"message\": \"{}\"}}",
        "ä".repeat(100),
        "b".repeat(5000)
    );
    let error = structured_error(&long).unwrap();
    assert_eq!(
        (error.code.chars().count(), error.message.chars().count()),
        (64, 1024)
    );
}

#[test]
fn messages_are_bounded() {
    let line = "x".repeat(100_000);
    for stderr in [
        line.clone(),
        format!("No module named '{line}'"),
        format!("{line}: not found"),
        format!("EACCES {line}"),
    ] {
        assert!(diagnose(&ProcessEnd::Exited { code: 1 }, &stderr).message.len() < 500);
    }
}

#[test]
fn the_cause_above_a_stack_is_quoted_and_not_its_frames() {
    let node = "/s/f.js:1\nError: no such customer\n    at run (/s/f.js:1:2)\n    at [eval]:1:1\n\nNode.js v20.20.2\n";
    exit(node, SubTaskReason::ExitCode, &["`Error: no such customer`"]);
    exit(
        "    at nothing else\n",
        SubTaskReason::ExitCode,
        &["`at nothing else`"],
    );
}

#[test]
fn a_runtime_that_aborts_for_want_of_memory_names_the_cap() {
    let abort = ProcessEnd::Signalled { signal: 6 };
    for stderr in [
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n 1: 0xb78db3 node::Abort\n",
        "memory allocation of 1073741824 bytes failed\n",
        "terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
    ] {
        check(
            &abort,
            stderr,
            SubTaskReason::ExitCode,
            &["max_memory_mb", "SIGABRT"],
        );
    }
}
