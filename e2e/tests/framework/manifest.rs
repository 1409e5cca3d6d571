//! Fixtures: YAML text, and code as YAML text in it.

use kube::api::{ApiResource, GroupVersionKind};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// Any text as a YAML scalar: a JSON string is one.
pub fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The line `command: {argv: [...]}` of a task.
pub fn command(argv: &[&str]) -> String {
    let argv: Vec<_> = argv.iter().map(|word| quoted(word)).collect();
    format!("command: {{argv: [{}]}}", argv.join(", "))
}

/// A task's command that runs Python code, which finds these modules imported and `put(json)` for its output.
pub fn python(code: &str) -> String {
    const PRELUDE: &str = "import json, os, sys, time, signal, pathlib\n\
        def put(output): pathlib.Path(os.environ['AGENTRUN_OUTPUT']).write_text(json.dumps(output))\n";
    command(&["python3", "-c", &format!("{PRELUDE}{code}")])
}

/// A task's command that runs shell code.
pub fn sh(code: &str) -> String {
    command(&["sh", "-c", code])
}

/// The objects in a YAML text.
pub fn documents(yaml: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(yaml);
    documents
        .map(|document| Value::deserialize(document).unwrap_or_else(|error| panic!("{error} in:\n{yaml}")))
        .filter(|document| !document.is_null())
        .collect()
}

/// Where objects like this one live.
pub fn kind_of(object: &Value) -> ApiResource {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &kind))
}

/// The security context of a test's own Pod, as Pod Security `restricted` wants it.
pub fn restricted_pod() -> Value {
    json!({
        "runAsNonRoot": true, "runAsUser": 65532, "fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// The same of its container.
pub fn restricted_container() -> Value {
    json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}})
}
