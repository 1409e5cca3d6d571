//! The generated definitions.

use std::{collections::BTreeSet, fs, path::PathBuf};

use agentrun_api::{crd_file_name, crd_yaml, crds};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

/// Folder of the committed definitions.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../crds")
}

/// Rewrites the files with `UPDATE_CRDS=1 cargo test -p agentrun-api`.
#[test]
fn committed_crds_match_the_types() {
    let update = std::env::var_os("UPDATE_CRDS").is_some();
    for crd in crds() {
        let path = folder().join(crd_file_name(&crd));
        let expected = crd_yaml(&crd).unwrap();
        if update {
            fs::write(&path, &expected).unwrap();
        }
        let committed = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == expected,
            "{} is not what the types give: run UPDATE_CRDS=1 cargo test -p agentrun-api, and review the difference",
            path.display()
        );
    }
}

#[test]
fn no_definition_is_left_over_from_an_older_version() {
    let expected: BTreeSet<String> = crds().iter().map(crd_file_name).collect();
    let found: BTreeSet<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("agentrun.dev_"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn names_are_the_documented_ones() {
    let names: Vec<String> = crds()
        .iter()
        .map(|crd| {
            let names = &crd.spec.names;
            let short = names.short_names.clone().unwrap_or_default();
            let categories = names.categories.clone().unwrap_or_default();
            format!(
                "{} {} {} {} {}",
                crd.spec.scope,
                names.plural,
                names.kind,
                short.join(","),
                categories.join(",")
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            "Namespaced agentruns AgentRun ar agentrun-all",
            "Namespaced subtasks SubTask st agentrun-all",
            "Namespaced threads Thread th agentrun-all",
            "Namespaced sandboxpools SandboxPool sp agentrun-all",
            "Namespaced skills Skill sk agentrun-all",
            "Namespaced models Model mo agentrun-all",
        ]
    );
}

#[test]
fn every_resource_keeps_its_status_apart() {
    for crd in crds() {
        let subresources = crd.spec.versions[0].subresources.clone().unwrap();
        assert!(subresources.status.is_some(), "{}", crd.spec.names.kind);
        assert_eq!(subresources.scale.is_some(), crd.spec.names.kind == "SandboxPool");
    }
}

// F114
#[test]
fn no_definition_has_a_status_a_null_or_an_empty_list() {
    for crd in crds() {
        let tree = serde_json::to_value(&crd).unwrap();
        assert!(tree.get("status").is_none());
        visit(&tree, "", &mut |path, value| {
            assert!(!value.is_null(), "{path} is null");
            assert!(
                value.as_array().is_none_or(|list| !list.is_empty()),
                "{path} is an empty list"
            );
        });
    }
}

// F117
#[test]
fn every_value_has_a_bound_a_list_type_a_text_and_no_foreign_form() {
    for crd in crds() {
        schemas(&crd, &mut |path, schema| {
            let has = |key: &str| schema.get(key).is_some();
            let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
            let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
            match kind {
                "string" => assert!(
                    has("maxLength") || has("enum") || format == "date-time",
                    "{path}: a string without bound"
                ),
                "array" => {
                    assert!(has("maxItems"), "{path}: a list without bound");
                    assert!(has("x-kubernetes-list-type"), "{path}: a list without type");
                }
                "object" if has("additionalProperties") => {
                    assert!(has("maxProperties"), "{path}: a map without bound");
                }
                "integer" => assert!(
                    matches!(format, "int32" | "int64"),
                    "{path}: integer of form `{format}`"
                ),
                "boolean" | "object" => {}
                "" => assert!(
                    has("x-kubernetes-preserve-unknown-fields") || has("x-kubernetes-int-or-string"),
                    "{path}: no type"
                ),
                other => panic!("{path}: type {other}"),
            }
            let any_json = kind.is_empty() && has("x-kubernetes-preserve-unknown-fields");
            assert!(any_json || !has("nullable"), "{path}: nullable");
            let described = has("description") || path.contains("conditions") || path.ends_with("[]");
            assert!(described || path.ends_with("{}"), "{path}: no text for its users");
            for key in ["oneOf", "anyOf", "allOf", "not", "default"] {
                assert!(!has(key), "{path}: has {key}");
            }
        });
    }
}

#[test]
fn no_key_and_no_word_is_a_boolean_of_yaml_1_1() {
    let booleans = ["y", "n", "yes", "no", "on", "off", "true", "false"];
    for crd in crds() {
        schemas(&crd, &mut |path, schema| {
            let keys = schema.get("properties").and_then(Value::as_object);
            let keys = keys
                .into_iter()
                .flat_map(|fields| fields.keys().map(String::as_str));
            let words = schema.get("enum").and_then(Value::as_array);
            let words = words.into_iter().flatten().filter_map(Value::as_str);
            for word in keys.chain(words) {
                let lower = word.to_ascii_lowercase();
                // Kubernetes' own condition status is quoted by everyone who writes it.
                let foreign = path.contains("conditions[].status");
                assert!(foreign || !booleans.contains(&lower.as_str()), "{path}: {word}");
            }
        });
    }
}

#[test]
fn lists_of_objects_are_maps_by_their_key() {
    for crd in crds() {
        schemas(&crd, &mut |path, schema| {
            let objects = schema.pointer("/items/type") == Some(&Value::from("object"));
            let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
            assert!(!objects || list_type == Some("map"), "{path}");
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            for key in keys.into_iter().flatten().filter_map(Value::as_str) {
                let required = schema
                    .pointer("/items/required")
                    .and_then(Value::as_array)
                    .unwrap();
                assert!(
                    required.contains(&Value::from(key)),
                    "{path}: key {key} is not required"
                );
            }
        });
    }
}

#[test]
fn every_rule_has_a_message() {
    let mut rules = 0;
    for crd in crds() {
        schemas(&crd, &mut |path, schema| {
            let validations = schema.get("x-kubernetes-validations").and_then(Value::as_array);
            for rule in validations.into_iter().flatten() {
                rules += 1;
                assert!(rule.get("message").is_some(), "{path}: {rule}");
            }
        });
    }
    assert!(rules > 60, "only {rules} rules were found");
}

/// Calls `each` with every schema of a definition and its path.
fn schemas(crd: &CustomResourceDefinition, each: &mut dyn FnMut(&str, &Value)) {
    let schema = crd.spec.versions[0].schema.as_ref().unwrap();
    let tree = serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap();
    below(&tree, &crd.spec.names.kind, each);
}

fn below(schema: &Value, path: &str, each: &mut dyn FnMut(&str, &Value)) {
    each(path, schema);
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        below(field, &format!("{path}.{name}"), each);
    }
    if let Some(items) = schema.get("items") {
        below(items, &format!("{path}[]"), each);
    }
    if let Some(values) = schema.get("additionalProperties") {
        below(values, &format!("{path}{{}}"), each);
    }
}

fn visit(value: &Value, path: &str, each: &mut dyn FnMut(&str, &Value)) {
    each(path, value);
    match value {
        Value::Object(members) => members
            .iter()
            .for_each(|(key, value)| visit(value, &format!("{path}.{key}"), each)),
        Value::Array(items) => items
            .iter()
            .for_each(|item| visit(item, &format!("{path}[]"), each)),
        _ => {}
    }
}
