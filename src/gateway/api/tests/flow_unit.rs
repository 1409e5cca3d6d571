use super::*;
use crate::api::call::unique_name;

#[test]
fn an_input_is_data_and_never_an_expression() {
    let input = json!({"${k}": ["${1 + 1}", "$${x}", 1, null, {"a": "${"}]});
    assert_eq!(
        harmless(input),
        json!({"$${k}": ["$${1 + 1}", "$$${x}", 1, null, {"a": "$${"}]})
    );
}

#[test]
fn the_time_of_a_call_has_a_default_and_bounds() {
    assert_eq!(timeout(None).unwrap(), bounds::CALL.0);
    assert_eq!(timeout(Some("1m30s")).unwrap(), Duration::from_secs(90));
    for bad in ["0", "0s", "11m", "x", "", "5"] {
        assert_eq!(timeout(Some(bad)).unwrap_err().code, Code::BadRequest, "{bad}");
    }
}

#[test]
fn names_of_calls_differ() {
    assert_ne!(unique_name("call"), unique_name("call"));
}
