//! Every rule with a case that passes and one that does not, by the message that the user reads.

use std::{collections::BTreeMap, sync::LazyLock};

use agentrun_api::crds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel::Validator;
use serde_json::{Value, json};

/// The schema of every kind as it is installed.
static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let schema = |crd: CustomResourceDefinition| {
        let version = crd.spec.versions.into_iter().next().unwrap();
        let schema = version.schema.unwrap().open_api_v3_schema.unwrap();
        (crd.spec.names.kind, serde_json::to_value(schema).unwrap())
    };
    crds().into_iter().map(schema).collect()
});

/// The messages of the rules that refuse `new`, created or, with `old`, updated.
pub(crate) fn violations(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    match Validator::new().validate(&SCHEMAS[kind], new, old) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.iter().map(|error| error.message.clone()).collect(),
    }
}

fn object(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "agentrun.dev/v1alpha1", "kind": kind, "metadata": {"name": "a"}, "spec": spec})
}

/// `spec` with `patch` merged into it; a null takes away.
fn with(spec: &Value, patch: &Value) -> Value {
    let mut spec = spec.clone();
    for (key, value) in patch.as_object().unwrap() {
        let members = spec.as_object_mut().unwrap();
        if value.is_null() {
            members.remove(key);
        } else {
            members.insert(key.clone(), value.clone());
        }
    }
    spec
}

fn accepted(kind: &str, spec: &Value) {
    assert_eq!(
        violations(kind, &object(kind, spec), None),
        Vec::<String>::new(),
        "{spec}"
    );
}

fn refused(kind: &str, spec: &Value, message: &str) {
    assert_eq!(violations(kind, &object(kind, spec), None), [message], "{spec}");
}

fn change(kind: &str, old: &Value, new: &Value) -> Vec<String> {
    violations(kind, &object(kind, new), Some(&object(kind, old)))
}

/// A run with a given part of its spec.
fn run(patch: &Value) -> Value {
    with(&json!({"goal": "g"}), patch)
}

/// A run with one task of the given parts.
fn task(patch: &Value) -> Value {
    json!({"tasks": [with(&json!({"name": "t", "function": {"skill": "s", "name": "f"}}), patch)]})
}

fn sub_task() -> Value {
    json!({
        "runRef": {"name": "r", "uid": "u"}, "task": "t", "role": "Task",
        "function": {"skill": "s", "name": "f", "digest": "d"}, "input": {"a": 1},
    })
}

#[test]
fn a_run_has_a_goal_or_tasks() {
    let message = "give spec.goal, spec.tasks or both: there is nothing to do";
    accepted("AgentRun", &run(&json!({})));
    accepted("AgentRun", &task(&json!({})));
    refused("AgentRun", &json!({}), message);
    refused("AgentRun", &json!({"tasks": []}), message);
}

#[test]
fn a_lead_needs_a_goal() {
    accepted("AgentRun", &run(&json!({"lead": {"maxTurns": 3}})));
    refused(
        "AgentRun",
        &with(&task(&json!({})), &json!({"lead": {"maxTurns": 3}})),
        "spec.lead works on spec.goal: give a goal, or leave lead out",
    );
}

#[test]
fn a_task_has_exactly_one_work() {
    let message = "give exactly one of function, command and agent";
    accepted(
        "AgentRun",
        &task(&json!({"function": null, "command": {"argv": ["a"]}})),
    );
    accepted(
        "AgentRun",
        &task(&json!({"function": null, "agent": {"prompt": "a"}})),
    );
    refused("AgentRun", &task(&json!({"function": null})), message);
    refused("AgentRun", &task(&json!({"command": {"argv": ["a"]}})), message);
    refused(
        "SubTask",
        &with(&sub_task(), &json!({"agent": {"prompt": "a"}})),
        message,
    );
}

#[test]
fn a_function_is_pinned_by_the_operator_alone() {
    accepted("SubTask", &sub_task());
    refused(
        "AgentRun",
        &task(&json!({"function": {"skill": "s", "name": "f", "digest": "d"}})),
        "function.digest is written by the operator when the run pins its skills: leave it out",
    );
}

#[test]
fn only_functions_are_cached() {
    accepted("AgentRun", &task(&json!({"cache": {}})));
    refused(
        "AgentRun",
        &task(&json!({"cache": {}, "function": null, "command": {"argv": ["a"]}})),
        "only the results of functions are cached: leave cache out, or make the task a function",
    );
}

#[test]
fn an_input_comes_from_a_path_or_a_task() {
    let message = "give exactly one of path and task";
    accepted("AgentRun", &task(&json!({"inputFrom": {"task": "a"}})));
    refused("AgentRun", &task(&json!({"inputFrom": {}})), message);
    refused(
        "AgentRun",
        &task(&json!({"inputFrom": {"task": "a", "path": "/a"}})),
        message,
    );
}

#[test]
fn items_come_from_an_expression_or_a_file() {
    let message = "give exactly one of items and itemsFrom";
    accepted(
        "AgentRun",
        &task(&json!({"forEach": {"itemsFrom": {"path": "/a"}}})),
    );
    refused("AgentRun", &task(&json!({"forEach": {}})), message);
    refused(
        "AgentRun",
        &task(&json!({"forEach": {"items": "${[1]}", "itemsFrom": {"path": "/a"}}})),
        message,
    );
}

#[test]
fn a_sandbox_is_written_by_pool_or_by_parts() {
    let message =
        "give either pool, or any of image, resources, runtimeClassName and egress: a pool has its own";
    let both = json!({"pool": "p", "egress": []});
    accepted(
        "AgentRun",
        &run(&json!({"sandbox": {"pool": "p", "env": [{"name": "A", "value": "b"}]}})),
    );
    accepted(
        "AgentRun",
        &run(&json!({"sandbox": {"image": "i", "egress": []}})),
    );
    refused("AgentRun", &run(&json!({"sandbox": both})), message);
    refused("AgentRun", &task(&json!({"sandbox": both})), message);
    refused(
        "AgentRun",
        &run(&json!({"delegation": {"agents": [{"name": "a", "sandbox": both}]}})),
        message,
    );
    accepted("SubTask", &with(&sub_task(), &json!({"sandbox": both})));
}

#[test]
fn a_key_of_a_secret_is_a_file_or_a_variable() {
    let message = "give exactly one of path and env";
    let secret = |item: Value| {
        run(&json!({"sandbox": {"secrets": [{"name": "s", "mountPath": "/s", "items": [item]}]}}))
    };
    accepted("AgentRun", &secret(json!({"key": "k", "path": "p"})));
    refused("AgentRun", &secret(json!({"key": "k"})), message);
    refused(
        "AgentRun",
        &secret(json!({"key": "k", "path": "p", "env": "E"})),
        message,
    );
}

#[test]
fn files_of_a_secret_have_a_folder() {
    let message = "give mountPath, or env for every one of items";
    let secret =
        |secret: Value| run(&json!({"sandbox": {"secrets": [with(&json!({"name": "s"}), &secret)]}}));
    accepted("AgentRun", &secret(json!({"mountPath": "/s"})));
    accepted("AgentRun", &secret(json!({"items": [{"key": "k", "env": "E"}]})));
    refused("AgentRun", &secret(json!({})), message);
    refused(
        "AgentRun",
        &secret(json!({"items": [{"key": "k", "env": "E"}, {"key": "l", "path": "p"}]})),
        message,
    );
}

#[test]
fn a_file_has_exactly_one_source() {
    let message = "give exactly one of content, configMapKeyRef, from and claim";
    let file = |source: Value| run(&json!({"files": [with(&json!({"path": "a"}), &source)]}));
    accepted("AgentRun", &file(json!({"content": ""})));
    accepted("AgentRun", &file(json!({"claim": {"name": "c", "path": "p"}})));
    refused("AgentRun", &file(json!({})), message);
    refused(
        "AgentRun",
        &file(json!({"content": "", "from": {"run": "r", "path": "p"}})),
        message,
    );
}

#[test]
fn an_existing_claim_is_used_as_it_is() {
    let data = |data: Value| run(&json!({"userData": data}));
    accepted(
        "AgentRun",
        &data(json!({"existingClaim": "c", "onRelease": "Retain"})),
    );
    refused(
        "AgentRun",
        &data(json!({"existingClaim": "c", "size": "1Gi"})),
        "existingClaim is used as it is: leave out size, storageClassName and accessModes",
    );
    let message = "existingClaim is never deleted: leave onRelease out, or make it Retain";
    refused(
        "AgentRun",
        &data(json!({"existingClaim": "c", "onRelease": "Delete"})),
        message,
    );
    let thread = json!({"user": "u", "thread": "t", "existingClaim": "c"});
    accepted("Thread", &thread);
    refused("Thread", &with(&thread, &json!({"onRelease": "Delete"})), message);
    refused(
        "Thread",
        &with(&thread, &json!({"claim": {}})),
        "give at most one of claim and existingClaim",
    );
}

#[test]
fn only_a_thread_can_be_busy() {
    accepted(
        "AgentRun",
        &run(&json!({"userData": {"thread": "t", "concurrencyPolicy": "Reject"}})),
    );
    refused(
        "AgentRun",
        &run(&json!({"userData": {"concurrencyPolicy": "Reject"}})),
        "concurrencyPolicy is about runs of one thread: give thread, or leave it out",
    );
}

#[test]
fn a_skill_has_exactly_one_source() {
    let message = "give exactly one of configMap, inline, image and claim";
    accepted("Skill", &json!({"image": "i"}));
    refused("Skill", &json!({}), message);
    refused("Skill", &json!({"image": "i", "claim": {"name": "c"}}), message);
}

#[test]
fn a_header_has_a_value_or_a_secret() {
    let message = "give exactly one of value and secretRef";
    let model = |header: Value| json!({"endpoint": "https://example.com", "model": "m", "headers": [header]});
    accepted("Model", &model(json!({"name": "a", "value": "b"})));
    refused("Model", &model(json!({"name": "a"})), message);
}

#[test]
fn cancel_suspend_and_ttl_of_a_run_can_change() {
    let old = run(&json!({"suspend": true}));
    for patch in [
        json!({"cancel": true}),
        json!({"cancel": false}),
        json!({"suspend": false}),
        json!({"suspend": null}),
        json!({"ttlSecondsAfterFinished": 60}),
    ] {
        assert_eq!(
            change("AgentRun", &old, &with(&old, &patch)),
            Vec::<String>::new(),
            "{patch}"
        );
    }
}

#[test]
fn a_cancel_stays() {
    let message = "spec.cancel stays true once it is: create a new AgentRun to run again";
    let old = run(&json!({"cancel": true}));
    assert_eq!(change("AgentRun", &old, &old), Vec::<String>::new());
    assert_eq!(
        change("AgentRun", &old, &run(&json!({"cancel": false}))),
        [message]
    );
    assert_eq!(change("AgentRun", &old, &run(&json!({}))), [message]);
}

/// Every other field of a run, with a value to come and one to change to.
fn run_fields() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("goal", json!("a"), json!("b")),
        (
            "lead",
            json!({"outputSchema": {"a": 1}}),
            json!({"outputSchema": {"b": 1}}),
        ),
        (
            "tasks",
            task(&json!({"input": {"a": 1}}))["tasks"].clone(),
            task(&json!({"input": {"b": 1}}))["tasks"].clone(),
        ),
        ("params", json!({"a": 1}), json!({"a": 2})),
        (
            "files",
            json!([{"path": "a", "content": "1"}]),
            json!([{"path": "a", "content": "2"}]),
        ),
        ("output", json!("a"), json!("b")),
        ("userData", json!({"thread": "a"}), json!({"thread": "b"})),
        ("sandbox", json!({"pool": "a"}), json!({"pool": "b"})),
        ("limits", json!({"maxParallel": 1}), json!({"maxParallel": 2})),
        ("delegation", json!({"maxDepth": 1}), json!({"maxDepth": 2})),
        ("models", json!({"lead": "a"}), json!({"lead": "b"})),
        ("approval", json!({"plan": true}), json!({"plan": false})),
        ("failurePolicy", json!("Continue"), json!("FailFast")),
        ("acceptance", json!(["a"]), json!(["b"])),
        ("acceptancePolicy", json!("Report"), json!("Require")),
        ("resumeFrom", json!("a"), json!("b")),
    ]
}

// F021
#[test]
fn nothing_else_of_a_run_can_come_go_or_change() {
    // With both there is always something to do, and a lead has its goal.
    let base = with(&task(&json!({})), &json!({"goal": "g"}));
    for (field, value, other) in run_fields() {
        let message = format!("spec.{field} is immutable: create a new AgentRun");
        let without = with(&base, &json!({field: null}));
        let one = with(&base, &json!({field: value}));
        let two = with(&base, &json!({field: other}));
        assert_eq!(change("AgentRun", &one, &one), Vec::<String>::new(), "{field}");
        assert_eq!(
            change("AgentRun", &one, &two),
            [message.as_str()],
            "{field} changes"
        );
        assert_eq!(
            change("AgentRun", &without, &one),
            [message.as_str()],
            "{field} comes"
        );
        assert_eq!(
            change("AgentRun", &one, &without),
            [message.as_str()],
            "{field} goes"
        );
    }
}

#[test]
fn every_field_of_a_run_is_either_fixed_or_named_as_changeable() {
    let fixed = run_fields().into_iter().map(|(field, ..)| field.to_owned());
    let changeable = ["cancel", "suspend", "ttlSecondsAfterFinished"].map(str::to_owned);
    let mut expected: Vec<String> = fixed.chain(changeable).collect();
    expected.sort();
    assert_eq!(spec_fields("AgentRun"), expected);
}

/// Names of the fields of a kind's spec in alphabetical order.
fn spec_fields(kind: &str) -> Vec<String> {
    let fields = SCHEMAS[kind].pointer("/properties/spec/properties").unwrap();
    fields.as_object().unwrap().keys().cloned().collect()
}

// F021
#[test]
fn nothing_of_a_sub_task_can_change() {
    let whole = "spec is immutable, input included: change the AgentRun, or create a new SubTask";
    let old = sub_task();
    assert_eq!(change("SubTask", &old, &old), Vec::<String>::new());
    for (field, value) in [
        ("runRef", json!({"name": "r", "uid": "v"})),
        ("parentRef", json!({"name": "p", "uid": "p"})),
        ("task", json!("u")),
        ("role", json!("Lead")),
        ("description", json!("d")),
        ("index", json!(1)),
        ("key", json!("k")),
        ("function", json!({"skill": "s", "name": "f", "digest": "e"})),
        ("history", json!("Fresh")),
        ("inputFrom", json!({"task": "a"})),
        ("sandbox", json!({"pool": "p"})),
        ("resources", json!({"memory": "1Gi"})),
        ("timeout", json!("1s")),
        ("retry", json!({"attempts": 2})),
        ("context", json!({"mode": "Snapshot"})),
        ("acceptance", json!(["a"])),
        ("acceptancePolicy", json!("Require")),
        ("approval", json!("Required")),
        ("cache", json!({})),
    ] {
        let message = format!("spec.{field} is immutable: change the AgentRun, or create a new SubTask");
        assert_eq!(
            change("SubTask", &old, &with(&old, &json!({field: value}))),
            [message.as_str(), whole]
        );
    }
    assert_eq!(
        change("SubTask", &old, &with(&old, &json!({"input": {"a": 2}}))),
        [whole]
    );
    assert_eq!(
        change("SubTask", &old, &with(&old, &json!({"input": null}))),
        [whole]
    );
}

#[test]
fn a_thread_stays_the_same_thread() {
    let old = json!({"user": "u", "thread": "t"});
    let other = with(&old, &json!({"user": "v"}));
    assert_eq!(
        change("Thread", &old, &other),
        ["spec.user is immutable: use another thread"]
    );
    let release = with(&old, &json!({"onRelease": "Delete"}));
    assert_eq!(change("Thread", &old, &release), Vec::<String>::new());
}

fn status_change(kind: &str, spec: &Value, old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let whole = |status: Option<&Value>| {
        let mut object = object(kind, spec);
        if let Some(status) = status {
            object
                .as_object_mut()
                .unwrap()
                .insert("status".into(), status.clone());
        }
        object
    };
    violations(kind, &whole(new), Some(&whole(old)))
}

#[test]
fn an_outcome_never_changes_and_never_goes() {
    let message = "status.outcome is final: it can neither change nor be removed";
    let (success, error) = (json!({"outcome": "Success"}), json!({"outcome": "Error"}));
    let check = |old: Option<&Value>, new: Option<&Value>| status_change("SubTask", &sub_task(), old, new);
    assert_eq!(check(None, Some(&success)), Vec::<String>::new());
    assert_eq!(check(Some(&json!({})), Some(&success)), Vec::<String>::new());
    assert_eq!(
        check(
            Some(&success),
            Some(&json!({"outcome": "Success", "message": "m"}))
        ),
        Vec::<String>::new()
    );
    assert_eq!(check(Some(&success), Some(&error)), [message]);
    assert_eq!(check(Some(&success), Some(&json!({}))), [message]);
    assert_eq!(check(Some(&success), None), [message]);
}

#[test]
fn a_terminal_phase_of_a_run_never_changes_and_never_goes() {
    let message = "status.phase is final once it is Succeeded, Failed or Cancelled: it can neither change nor be removed";
    let check = |old: &str, new: Option<&str>| {
        let new = new.map(|phase| json!({"phase": phase}));
        status_change(
            "AgentRun",
            &run(&json!({})),
            Some(&json!({"phase": old})),
            new.as_ref(),
        )
    };
    assert_eq!(check("Running", Some("Failed")), Vec::<String>::new());
    assert_eq!(check("Running", None), Vec::<String>::new());
    for phase in ["Succeeded", "Failed", "Cancelled"] {
        assert_eq!(check(phase, Some(phase)), Vec::<String>::new());
        assert_eq!(check(phase, Some("Running")), [message]);
        assert_eq!(check(phase, None), [message]);
    }
}
