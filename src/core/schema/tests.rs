#![allow(clippy::needless_pass_by_value)] // json!(…) reads best as an argument

use super::*;
use serde_json::json;

fn messages(schema: Value, value: Value) -> Vec<String> {
    Schema::compile(&schema).unwrap().validate(&value).unwrap()
}

fn refusal(schema: Value) -> SchemaError {
    Schema::compile(&schema).unwrap_err()
}

#[test]
fn a_mistake_is_named_with_its_place() {
    let schema = json!({
        "type": "object",
        "required": ["score"],
        "properties": {"score": {"type": "number"}, "names": {"items": {"type": "string"}}},
    });
    assert!(messages(schema.clone(), json!({"score": 1, "names": ["a"]})).is_empty());
    let found = messages(schema.clone(), json!({"score": "x", "names": ["a", 1]}));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found
            .iter()
            .any(|text| text == r#"at /score: value is not of type "number""#),
        "{found:?}"
    );
    assert!(
        found.iter().any(|text| text.starts_with("at /names/1: ")),
        "{found:?}"
    );
    assert_eq!(
        messages(schema, json!({})),
        [r#"at the top: "score" is a required property"#]
    );
}

#[test]
fn true_and_false_are_schemas() {
    assert!(messages(json!(true), json!(1)).is_empty());
    assert_eq!(messages(json!(false), json!(1)).len(), 1);
}

#[test]
fn every_draft_is_known_by_its_name() {
    for draft in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema =
            json!({"$schema": draft, "definitions": {"n": {"type": "integer"}}, "$ref": "#/definitions/n"});
        assert!(messages(schema.clone(), json!(1)).is_empty(), "{draft}");
        assert_eq!(messages(schema, json!("x")).len(), 1, "{draft}");
    }
}

#[test]
fn what_is_no_schema_says_why() {
    let SchemaError::Invalid { problem } = refusal(json!({"type": "strnig"})) else {
        panic!()
    };
    assert!(problem.starts_with("at /type: "), "{problem}");
    assert!(matches!(
        refusal(json!({"pattern": "(?=a)"})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(
        refusal(json!({"pattern": "("})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(
        refusal(json!({"$ref": "#/nowhere"})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(
        refusal(json!({"$schema": "https://example.com/mine"})),
        SchemaError::Invalid { .. }
    ));
    assert!(matches!(refusal(json!(7)), SchemaError::Invalid { .. }));
}

#[test]
fn nothing_is_fetched_and_no_reference_leaves_the_schema() {
    for reference in [
        "https://example.com/a.json",
        "file:///etc/passwd",
        "other.json",
        "#anchor",
        "",
    ] {
        let SchemaError::Reference { reference: told } = refusal(json!({"items": {"$ref": reference}}))
        else {
            panic!("{reference}")
        };
        assert_eq!(told, reference);
    }
    assert!(matches!(
        refusal(json!({"$dynamicRef": "#a"})),
        SchemaError::Keyword { .. }
    ));
    assert!(matches!(
        refusal(json!({"items": {"$id": "a.json"}})),
        SchemaError::Keyword { .. }
    ));
    // Names of properties are no keywords.
    let named =
        json!({"properties": {"$ref": {"type": "string"}, "id": {"type": "string"}}, "const": {"$ref": "x"}});
    assert!(Schema::compile(&named).is_ok());
}

#[test]
fn schemas_have_bounds() {
    let long = json!({"title": "x".repeat(MAX_BYTES)});
    assert!(matches!(refusal(long), SchemaError::TooLarge { .. }));
    let mut deep = json!({});
    for _ in 0..1_000 {
        deep = json!({"not": deep});
    }
    assert_eq!(refusal(deep), SchemaError::TooDeep);
    let patterns: Vec<_> = (0..=MAX_PATTERNS)
        .map(|n| json!({"pattern": format!("{n}")}))
        .collect();
    assert_eq!(refusal(json!({"anyOf": patterns})), SchemaError::TooManyPatterns);
    assert!(matches!(
        refusal(json!({"pattern": "(a{1000}){1000}"})),
        SchemaError::Invalid { .. }
    ));
}

/// Work that doubles at every level, with and without a reference to itself, and one that never ends.
#[test]
fn no_schema_makes_more_work_than_allowed() {
    let mut doubling = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
        doubling.insert(level.to_string(), json!({"allOf": [next, next]}));
    }
    doubling.insert("40".into(), json!({}));
    let own = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    let mut chain = json!({});
    for _ in 0..60 {
        chain = json!({"a": chain});
    }
    let endless = json!({"$ref": "#"});
    for (schema, value) in [
        (json!({"$defs": doubling, "$ref": "#/$defs/0"}), json!(1)),
        (own, chain),
        (endless, json!(1)),
    ] {
        // The library may refuse such a schema by itself.
        let Ok(schema) = Schema::compile(&schema) else {
            continue;
        };
        assert_eq!(schema.validate(&value), Err(SchemaError::TooCostly));
    }
}

#[test]
fn a_long_value_has_its_first_mistake_named() {
    let schema = json!({"items": {"type": "string"}});
    let value: Vec<_> = (0..50_000).map(|n| json!(n)).collect();
    assert_eq!(
        messages(schema.clone(), json!(value)),
        [r#"at /0: value is not of type "string""#]
    );
    let short: Vec<_> = (0..100).map(|n| json!(n)).collect();
    assert_eq!(messages(schema, json!(short)).len(), MAX_MESSAGES);
}

#[test]
fn messages_are_one_short_line() {
    let schema = json!({"properties": {"a": {}}, "additionalProperties": false});
    let value = json!({format!("a\nb{}", "x".repeat(1000)): 1});
    let found = messages(schema, value);
    assert_eq!(found[0].chars().count(), MAX_MESSAGE);
    assert!(!found[0].contains('\n'));
}

#[test]
fn what_asks_for_the_unevaluated_is_refused_before_it_is_compiled() {
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        // Compiled, sixteen levels take seconds, and each further one more than twice the time.
        let level = |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/{}", n + 1)}], keyword: false});
        let mut levels: serde_json::Map<_, _> = (0..30).map(|n| (n.to_string(), level(n))).collect();
        levels.insert("30".to_owned(), json!(true));
        let refused = refusal(json!({"$defs": levels, "$ref": "#/$defs/0"}));
        assert!(matches!(refused, SchemaError::Unevaluated { .. }), "{refused:?}");
        let named = json!({"properties": {keyword: {"type": "integer"}}});
        assert!(messages(named, json!({keyword: 1})).is_empty());
    }
}
