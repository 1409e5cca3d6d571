use super::*;
use crate::contract::{Envelope, Status, Usage};

const EXITED: ProcessEnd = ProcessEnd::Exited { code: 0 };

fn function<'a>(process: &'a ProcessEnd, stdout: &'a str) -> Call<'a> {
    let delivery = Delivery::Stdout {
        kept: stdout.as_bytes(),
        total: stdout.len() as u64,
    };
    Call {
        ended_by: EndedBy::Itself,
        process,
        too_many_processes: false,
        killed_for_memory: false,
        blocked_on_stdin: false,
        delivery,
        stderr: "",
    }
}

#[track_caller]
fn check(call: &Call<'_>, ending: Ending, reason: SubTaskReason) {
    let judgement = judge(call);
    assert_eq!(
        (judgement.ending, judgement.reason),
        (ending, reason),
        "{}",
        judgement.message
    );
    assert_eq!(judgement.output.is_some(), ending == Ending::Success);
    assert_eq!(judgement.message.is_empty(), ending == Ending::Success);
}

#[test]
fn one_document_and_exit_0_is_a_success() {
    let judgement = judge(&function(&EXITED, " {\"a\": 1.0}\n"));
    assert_eq!(
        (judgement.ending, judgement.exit_code),
        (Ending::Success, Some(0))
    );
    let Some(Output::Document(document)) = judgement.output else {
        panic!("no document")
    };
    assert_eq!(document.raw, "{\"a\": 1.0}");
}

// F029
#[test]
fn an_exit_code_other_than_0_is_an_error_whatever_stands_on_stdout() {
    let failed = ProcessEnd::Exited { code: 137 };
    check(&function(&failed, "{}"), Ending::Error, SubTaskReason::ExitCode);
    assert_eq!(judge(&function(&failed, "{}")).exit_code, Some(137));
    check(
        &function(&ProcessEnd::Signalled { signal: 9 }, "{}"),
        Ending::Error,
        SubTaskReason::Signal9,
    );
}

#[test]
fn our_own_record_wins_over_exit_code_and_output() {
    for process in [
        EXITED,
        ProcessEnd::Signalled { signal: 9 },
        ProcessEnd::SandboxReset,
    ] {
        let call = function(&process, "{}");
        let timeout = EndedBy::Timeout { limit_ms: 4_000 };
        check(
            &Call {
                ended_by: timeout,
                ..call
            },
            Ending::Timeout,
            SubTaskReason::DeadlineExceeded,
        );
        check(
            &Call {
                ended_by: timeout,
                blocked_on_stdin: true,
                ..call
            },
            Ending::Timeout,
            SubTaskReason::BlockedOnStdin,
        );
        check(
            &Call {
                ended_by: EndedBy::Cancel,
                ..call
            },
            Ending::Cancelled,
            SubTaskReason::Cancelled,
        );
    }
    let call = Call {
        ended_by: EndedBy::Timeout { limit_ms: 4_020 },
        ..function(&EXITED, "{}")
    };
    assert_eq!(judge(&call).message, "it was ended when its 4.020 s were over");
}

// F053
#[test]
fn a_program_that_lingers_after_its_document_has_delivered() {
    let killed = ProcessEnd::Signalled { signal: 9 };
    let call = Call {
        ended_by: EndedBy::Lingering,
        ..function(&killed, "{}")
    };
    check(&call, Ending::Success, SubTaskReason::Completed);
    let failed = ProcessEnd::Exited { code: 1 };
    let call = Call {
        ended_by: EndedBy::Lingering,
        ..function(&failed, "{}")
    };
    check(&call, Ending::Error, SubTaskReason::ExitCode);
}

#[test]
fn a_broken_output_is_a_parse_error() {
    check(
        &function(&EXITED, ""),
        Ending::ParseError,
        SubTaskReason::NoOutput,
    );
    check(
        &function(&EXITED, "{}{}"),
        Ending::ParseError,
        SubTaskReason::TrailingOutput,
    );
    check(
        &function(&EXITED, "hello"),
        Ending::ParseError,
        SubTaskReason::InvalidOutput,
    );
}

// F056
#[test]
fn an_output_that_was_cut_says_how_much_is_gone() {
    let delivery = Delivery::Stdout {
        kept: b"y\ny\n",
        total: 2_000_000_000,
    };
    let judgement = judge(&Call {
        delivery,
        ..function(&EXITED, "")
    });
    assert_eq!(
        (judgement.ending, judgement.reason),
        (Ending::ParseError, SubTaskReason::OutputTooLarge)
    );
    assert!(
        judgement
            .message
            .contains("2000000000 bytes were written and 4 are kept"),
        "{}",
        judgement.message
    );
}

#[test]
fn a_command_delivers_its_file_or_the_end_of_stdout() {
    let with = |file| Call {
        delivery: Delivery::File {
            file,
            stdout_tail: "done",
        },
        ..function(&EXITED, "")
    };
    assert_eq!(
        judge(&with(None)).output.unwrap().value(),
        &json!({"stdout_tail": "done"})
    );
    assert_eq!(
        judge(&with(Some((b"[1]".as_slice(), 3)))).output.unwrap().value(),
        &json!([1])
    );
    check(
        &with(Some((b"".as_slice(), 0))),
        Ending::ParseError,
        SubTaskReason::NoOutput,
    );
    check(
        &with(Some((b"[".as_slice(), 1))),
        Ending::ParseError,
        SubTaskReason::InvalidOutput,
    );
    check(
        &with(Some((b"[1]".as_slice(), 4))),
        Ending::ParseError,
        SubTaskReason::OutputTooLarge,
    );
}

#[test]
fn too_many_processes_are_the_reason_for_their_kill() {
    let killed = ProcessEnd::Signalled { signal: 9 };
    let call = Call {
        too_many_processes: true,
        ..function(&killed, "")
    };
    check(&call, Ending::Error, SubTaskReason::TooManyProcesses);
}

// F028, F029, F051, F052
#[test]
fn a_memory_kill_is_the_reason_whether_it_met_the_program_or_a_child_of_its_shell() {
    let ends = [
        ProcessEnd::Signalled { signal: 9 },
        ProcessEnd::Exited { code: 137 },
    ];
    for end in &ends {
        let call = Call {
            killed_for_memory: true,
            ..function(end, "")
        };
        check(&call, Ending::Error, SubTaskReason::OOMKilled);
    }
    let other = ProcessEnd::Exited { code: 3 };
    let call = Call {
        killed_for_memory: true,
        ..function(&other, "")
    };
    check(&call, Ending::Error, SubTaskReason::ExitCode);
}

// F058
#[test]
fn a_timeout_carries_what_was_written_until_then() {
    let call = Call {
        ended_by: EndedBy::Timeout { limit_ms: 1000 },
        ..function(&EXITED, "")
    };
    let usage = Usage {
        duration_ms: 1001,
        peak_memory_bytes: 5,
    };
    let envelope = Envelope::new(&judge(&call), usage, "progress 7".to_owned(), "e".to_owned());
    assert_eq!(
        serde_json::to_value(&envelope).unwrap(),
        json!({
            "status": "timeout",
            "output": null,
            "error": {"code": "DeadlineExceeded", "message": "it was ended when its 1.000 s were over"},
            "duration_ms": 1001,
            "peak_memory_bytes": 5,
            "stdout_tail": "progress 7",
            "stderr_tail": "e",
        })
    );
    assert_eq!(
        serde_json::from_value::<Envelope>(serde_json::to_value(&envelope).unwrap()).unwrap(),
        envelope
    );
}

#[test]
fn an_envelope_has_the_output_or_the_programs_own_code() {
    let success = Envelope::new(
        &judge(&function(&EXITED, "{\"a\":1}")),
        Usage::default(),
        String::new(),
        String::new(),
    );
    assert_eq!(
        (success.status, success.output, success.error),
        (Status::Success, json!({"a": 1}), None)
    );
    let failed = ProcessEnd::Exited { code: 1 };
    let stderr = "{\"code\": \"INPUT_VALIDATION_ERROR\", \"message\": \"no grade\"}";
    let error = Envelope::new(
        &judge(&Call {
            stderr,
            ..function(&failed, "")
        }),
        Usage::default(),
        String::new(),
        stderr.to_owned(),
    );
    assert_eq!(error.status, Status::Error);
    assert_eq!(error.error.unwrap().code, "INPUT_VALIDATION_ERROR");
}
