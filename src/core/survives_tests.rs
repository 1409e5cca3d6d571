use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[track_caller]
fn check(text: &str, expected: bool) {
    assert_eq!(survives(text.as_bytes()), expected, "{text}");
}

#[test]
fn integers_survive_within_int64() {
    for text in [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "[1, 2,3]",
        " {\"a\" : 1}\n",
    ] {
        check(text, true);
    }
    for text in [
        "9223372036854775808",
        "-9223372036854775809",
        "-0",
        "18446744073709551615",
    ] {
        check(text, false);
    }
}

#[test]
fn floats_survive_only_with_a_fraction_that_a_float64_holds() {
    for text in [
        "0.1",
        "-1.5",
        "1.25e-3",
        "1.50",
        "123456789.125",
        "5e-324",
        "1.5E+0",
    ] {
        check(text, true);
    }
    for text in [
        "1.0",
        "1e2",
        "-0.0",
        "1.5e1",
        "1e400",
        "1e-400",
        "0.1000000000000000055",
        "12345678901234567.5",
        "3.14159265358979323846",
    ] {
        check(text, false);
    }
}

#[test]
fn duplicate_keys_are_found_behind_escapes_and_only_within_one_object() {
    check(r#"{"a":1,"a":1}"#, false);
    check(r#"{"a":1,"\u0061":2}"#, false);
    check(r#"{"a":{"a":1},"b":[{"a":1},{"a":2}]}"#, true);
}

#[test]
fn lone_surrogates_and_invalid_utf8_do_not_survive() {
    check(r#""\ud83d\ude00""#, true);
    for text in [
        r#""\ud83d""#,
        r#""\ude00""#,
        r#""\ud83dx""#,
        r#""\ud83d\n""#,
        r#""\ud83d\u0041""#,
        r#""\ud83d\ud83d""#,
        r#""\ude00\ud83d""#,
    ] {
        check(text, false);
    }
    assert!(!survives(b"\"\xf0\""));
}

#[test]
fn nesting_survives_up_to_its_bound() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    check(&nested(MAX_INLINE_DEPTH), true);
    check(&nested(MAX_INLINE_DEPTH + 1), false);
    check(&nested(1_000_000), false);
}

#[test]
fn what_is_no_single_document_does_not_survive() {
    for text in [
        "",
        " ",
        "1 2",
        "{",
        "nul",
        "NaN",
        "[1,]",
        "{\"a\":}",
        "01",
        "1.",
        "\"\u{1}\"",
        "\u{feff}1",
        "+1",
        "'a'",
    ] {
        check(text, false);
    }
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,5}", inner, 0..8).prop_map(|map| json!(map)),
        ]
    })
}

/// What an API server makes of a value: every float without a fraction becomes an integer if it can.
fn through_the_server(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.as_i64().is_none() => {
            let float = number.as_f64().unwrap();
            #[allow(clippy::cast_possible_truncation)] // beyond int64 it stays a float
            let whole = float as i64;
            let fits = float.fract() == 0.0 && float.abs() < 9.2e18;
            if fits { json!(whole) } else { json!(float) }
        }
        Value::Array(items) => items.iter().map(through_the_server).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(k, v)| (k.clone(), through_the_server(v)))
            .collect(),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn what_survives_comes_back_equal(value in json_values()) {
        let text = value.to_string();
        let parsed: Value = serde_json::from_str(&text).unwrap();
        if survives(text.as_bytes()) {
            prop_assert_eq!(through_the_server(&parsed), parsed);
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _answer = survives(&bytes);
    }

    #[test]
    fn text_near_json_is_judged_as_a_parser_would(text in "[\\[\\]{}\",:0-9a-z\\\\.eE+\\- ]{0,24}") {
        if survives(text.as_bytes()) {
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
        }
    }
}
