use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn fails(output: impl AsRef<[u8]>) -> ContractError {
    let output = output.as_ref();
    match parse_stdout(output) {
        Ok(document) => panic!("{} was taken", document.raw),
        Err(error) => error,
    }
}

#[track_caller]
fn check(output: impl AsRef<[u8]>, problem: &Problem, at: usize) {
    let error = fails(&output);
    let shown = String::from_utf8_lossy(output.as_ref())
        .chars()
        .take(100)
        .collect::<String>();
    assert_eq!((&error.problem, error.at), (problem, at), "{shown}: {error}");
}

#[test]
fn one_document_is_taken_with_its_exact_bytes() {
    let document = parse_stdout(b"\n {\"b\":1.0, \"a\":[123456789012345678901234567890]} \r\n").unwrap();
    assert_eq!(
        document.raw,
        "{\"b\":1.0, \"a\":[123456789012345678901234567890]}"
    );
    for (text, value) in [
        ("null", json!(null)),
        ("3", json!(3)),
        ("\"a\"", json!("a")),
        ("[]", json!([])),
    ] {
        assert_eq!(parse_stdout(text.as_bytes()).unwrap().value, value);
    }
    let big = parse_stdout(b"18446744073709551615").unwrap();
    assert_eq!(big.value, json!(u64::MAX));
}

// F060
#[test]
fn a_log_line_before_the_document_is_named_and_shown() {
    check("warning: old\n{\"a\":1}", &Problem::StrayText, 0);
    check("[INFO] start\n{\"a\":1}", &Problem::StrayText, 0);
    check("2026-01-01 start\n[1]\n", &Problem::StrayText, 0);
    check("\nTrue", &Problem::StrayText, 1);
    let error = fails("warning: old\n{\"a\":1}");
    assert_eq!(error.reason(), SubTaskReason::InvalidOutput);
    assert_eq!(
        error.to_string(),
        "stdout must be exactly one JSON document: it begins with text that is no JSON; print logs to stderr \
         (byte 0); it begins with `warning: old\\n{\"a\":1}`"
    );
}

// F061
#[test]
fn two_documents_are_refused() {
    check("{\"a\":1}\n{\"a\":2}", &Problem::SecondDocument, 8);
    check("1 2", &Problem::SecondDocument, 2);
    check("{} done", &Problem::TrailingText, 3);
    check("{}{", &Problem::TrailingText, 2);
    assert_eq!(fails("{}{}").reason(), SubTaskReason::TrailingOutput);
}

// F062
#[test]
fn a_markdown_fence_is_refused() {
    check("```json\n{\"a\":1}\n```\n", &Problem::Fence, 0);
    check("\n```\n{}\n```", &Problem::Fence, 1);
}

// F063
#[test]
fn a_byte_that_is_no_utf8_is_refused_with_its_position() {
    check(b"\xf0{\"a\":1}", &Problem::InvalidUtf8, 0);
    check(b"{\"a\":\"\xff\"}", &Problem::InvalidUtf8, 6);
    check(b"\xef\xbb\xbf{}", &Problem::ByteOrderMark, 0);
    assert!(
        fails(b"\xf0{\"a\":1}")
            .to_string()
            .ends_with("it begins with `\\xf0{\"a\":1}`")
    );
}

// F065
#[test]
fn nan_and_infinities_are_refused() {
    check("{\"x\": NaN}", &Problem::NotANumber, 6);
    check("[Infinity]", &Problem::NotANumber, 1);
    check("[1, -Infinity]", &Problem::NotANumber, 4);
    check("NaN", &Problem::NotANumber, 0);
    check("[1e999]", &Problem::HugeNumber, 1);
}

// F066
#[test]
fn a_cut_document_is_refused_with_its_position() {
    let whole = r#"{"a": [1, 2.5, true, null, "x\u00e9\ud83d\ude00\n"], "b": -1e-3}"#;
    assert!(parse_stdout(whole.as_bytes()).is_ok());
    for end in 1..whole.len() {
        check(&whole[..end], &Problem::Cut, fails(&whole[..end]).at);
    }
    check("{\"a\": [1, 2", &Problem::Cut, 11);
}

#[test]
fn nothing_is_no_output() {
    for output in ["", " ", "\n\n"] {
        let error = fails(output);
        assert_eq!(
            (error.problem.clone(), error.reason()),
            (Problem::NoOutput, SubTaskReason::NoOutput)
        );
        assert!(
            error
                .to_string()
                .ends_with("nothing was written; print the result as JSON"),
            "{error}"
        );
    }
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    check(r#"{"a":1,"\u0061":2}"#, &Problem::DuplicateKey("a".to_owned()), 7);
    check(r#"["\ud800"]"#, &Problem::LoneSurrogate, 2);
    check("[\"a\nb\"]", &Problem::ControlCharacter, 3);
    check(r#"["\x"]"#, &Problem::BadEscape, 2);
    check("[01]", &Problem::BadNumber, 2);
    check("{'a': 1}", &Problem::Unexpected, 1);
    check("[1,]", &Problem::Unexpected, 3);
    check("{\"a\": None}", &Problem::Unexpected, 6);
}

#[test]
fn nesting_is_bounded_however_deep_it_goes() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_stdout(nested(MAX_DEPTH).as_bytes()).is_ok());
    check(nested(MAX_DEPTH + 1), &Problem::TooDeep, MAX_DEPTH);
    check(nested(10_000), &Problem::TooDeep, MAX_DEPTH);
    check("{\"a\":".repeat(1_000_000), &Problem::TooDeep, 5 * MAX_DEPTH);
}

#[test]
fn a_far_fault_is_shown_with_what_stands_there() {
    let output = format!("{{\"a\": \"{}\", \"b\": nil}}", "ä".repeat(200));
    let error = fails(&output);
    assert_eq!(error.at, 415);
    assert_eq!(error.near, "nil}");
    assert!(
        error.begins.chars().count() < 90 && error.begins.ends_with("ää…"),
        "{}",
        error.begins
    );
}

#[test]
fn the_source_of_an_output_file_is_named() {
    let error = parse_output_file(b"x").unwrap_err();
    assert!(
        error.to_string().starts_with("$AGENTRUN_OUTPUT must be"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = parse_stdout(&bytes) {
            prop_assert!(error.at <= bytes.len());
            prop_assert!(error.to_string().len() < 1000);
        }
    }

    #[test]
    fn it_takes_what_a_parser_takes_save_for_duplicate_keys(text in "[\\[\\]{}\",:0-9nult\\\\.eE+\\- ]{0,16}") {
        let parsed = serde_json::from_str::<Value>(&text).ok();
        match parse_stdout(text.as_bytes()) {
            Ok(document) => prop_assert_eq!(Some(document.value), parsed),
            Err(ContractError { problem: Problem::DuplicateKey(_), .. }) => {}
            Err(_) => prop_assert_eq!(None, parsed),
        }
    }
}
