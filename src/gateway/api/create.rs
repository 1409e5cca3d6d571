//! Makes a task: an AgentRun in the caller's name.

use super::Api;
use super::bounds;
use super::caller::{Caller, Verb};
use super::problem::{Code, Problem, json};
use super::target::{self, InPath, Params};
use super::view::{Accepted, Links};
use agentrun_api::names::labels::{REQUEST_DIGEST, REQUESTED_BY};
use agentrun_api::{AgentRun, AgentRunSpec};
use agentrun_core::digest::sha256_hex;
use agentrun_core::names::{canonical_json, h};
use agentrun_core::plan::validate::{FieldError, Validated, validate};
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kube::ResourceExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Says which request this is, so that sending it again makes nothing twice.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A task to make: an instruction, a spec, or both.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTask {
    /// What a lead agent is asked to do, word for word: it becomes `spec.goal`, with `${` made harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instruction: Option<String>,
    /// `auto` starts at once. `plan`, which lets a person approve the plan first, is not supported yet.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Everything that the `spec` of an AgentRun takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<AgentRunSpec>")]
    pub(crate) spec: Option<Map<String, Value>>,
}

/// How a task starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// At once.
    #[default]
    Auto,
    /// After the approval of its plan.
    Plan,
}

/// `POST tasks`.
pub(crate) async fn create(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let namespace = api.namespace(&Params::of(path)?)?;
    let caller = api.door.admit(&headers, &namespace, Verb::Create, None).await?;
    let new = new_task(target::body(&headers, body, bounds::BODY).await?)?;
    let key = idempotency_key(&headers)?;
    let digest = digest(&new);
    let spec = spec(new, &caller)?;
    check(&spec)?;
    let identity = match &key {
        Some(key) => json!({"name": keyed_name("task", &namespace, &caller, key)}),
        None => json!({"generateName": "task-"}),
    };
    let manifest = manifest(identity, &caller, &digest, &spec);
    let made = make(&api, &namespace, &manifest, &digest).await?;
    let mut response = json(StatusCode::ACCEPTED, &Accepted::of(&namespace, &made.run));
    let location = Links::of(&namespace, &made.run.name_any()).this;
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// The task of a body, which must be an object: a list would be read by the order of the fields.
fn new_task(body: Map<String, Value>) -> Result<NewTask, Problem> {
    let parsed = serde_json::from_value(Value::Object(body));
    parsed.map_err(|error| target::unexpected(&error))
}

/// A run that is there now.
#[derive(Debug)]
pub(crate) struct Made {
    /// The run.
    pub(crate) run: AgentRun,
    /// Whether an earlier request with the same key made it.
    pub(crate) earlier: bool,
}

/// Makes the run, or finds the one that the same request made before.
pub(crate) async fn make(
    api: &Api,
    namespace: &str,
    manifest: &Value,
    digest: &str,
) -> Result<Made, Problem> {
    let failed = |error: &kube::Error| Problem::of_api_server("make the task", error);
    let error = match api.cluster.create(namespace, manifest).await {
        Ok(run) => return Ok(Made { run, earlier: false }),
        Err(error) => error,
    };
    let name = manifest["metadata"]["name"].as_str();
    let Some(name) = name.filter(|_| is_conflict(&error)) else {
        return Err(failed(&error));
    };
    let there = api
        .cluster
        .run(namespace, name)
        .await
        .map_err(|error| failed(&error))?;
    match there {
        Some(run)
            if run
                .annotations()
                .get(REQUEST_DIGEST)
                .is_some_and(|its| its == digest) =>
        {
            Ok(Made { run, earlier: true })
        }
        Some(_) => {
            let message = format!(
                "the Idempotency-Key was used with another body for task {name}: send that body again, or use another key"
            );
            Err(Problem::new(Code::Conflict, message))
        }
        // It went between the two requests.
        None => Err(failed(&error)),
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// The value of `Idempotency-Key`, where it is given.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        return Ok(None);
    };
    let most = bounds::IDEMPOTENCY_KEY;
    match key.to_str() {
        Ok(key) if (1..=most).contains(&key.len()) => Ok(Some(key.to_owned())),
        _ => {
            let message =
                format!("Idempotency-Key takes 1 to {most} visible ASCII characters, for example a UUID");
            Err(Problem::new(Code::BadRequest, message))
        }
    }
}

/// The name that a key gives: each user has their own keys.
pub(crate) fn keyed_name(kind: &str, namespace: &str, caller: &Caller, key: &str) -> String {
    format!("{kind}-{}", h(20, &[namespace, &caller.name, key]))
}

/// What tells two bodies apart, whatever the order of their members.
pub(crate) fn digest(body: &impl Serialize) -> String {
    let value = serde_json::to_value(body).unwrap_or_default();
    sha256_hex(canonical_json(&value).as_bytes())
}

/// The spec of the run that a new task asks for.
fn spec(new: NewTask, caller: &Caller) -> Result<Value, Problem> {
    if new.mode == Mode::Plan {
        let message = "mode: plan is not supported by this version yet, use auto";
        return Err(Problem::new(Code::NotYetSupported, message));
    }
    if new.instruction.is_none() && new.spec.is_none() {
        let message = "the body has neither instruction nor spec: give one of them, or both";
        return Err(Problem::new(Code::Invalid, message));
    }
    let mut spec = new.spec.unwrap_or_default();
    if let Some(instruction) = new.instruction {
        if spec.contains_key("goal") {
            let message = "instruction and spec.goal are the same thing: give one of them";
            return Err(Problem::new(Code::Invalid, message));
        }
        spec.insert("goal".into(), literal(&instruction).into());
    }
    let data = spec.entry("userData").or_insert_with(|| json!({}));
    // What is no object is left to the API server to refuse.
    if let Some(data) = data.as_object_mut() {
        data.entry("user").or_insert_with(|| caller.user().into());
    }
    Ok(Value::Object(spec))
}

/// Text in which nothing is an expression.
pub(crate) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Finds the mistakes that the operator would find, before anything is made. A spec that is not even of the right
/// shape is left to the API server, which names every mistake.
pub(crate) fn check(spec: &Value) -> Result<(), Problem> {
    let Ok(spec) = serde_json::from_value::<AgentRunSpec>(spec.clone()) else {
        return Ok(());
    };
    let (code, mistakes) = match validate(&spec) {
        Validated::Valid(_) => return Ok(()),
        Validated::NotYetSupported(mistakes) => (Code::NotYetSupported, mistakes),
        Validated::Invalid(mistakes) => (Code::Invalid, mistakes),
    };
    let mistakes: Vec<_> = mistakes.iter().map(FieldError::to_string).collect();
    Err(Problem::new(code, mistakes.join("; ")))
}

/// The manifest of a run.
pub(crate) fn manifest(identity: Value, caller: &Caller, digest: &str, spec: &Value) -> Value {
    let mut metadata = identity;
    metadata["annotations"] = json!({REQUESTED_BY: caller.name, REQUEST_DIGEST: digest});
    json!({
        "apiVersion": format!("{}/{}", agentrun_api::GROUP, agentrun_api::VERSION),
        "kind": "AgentRun",
        "metadata": metadata,
        "spec": spec,
    })
}

#[cfg(test)]
#[path = "tests/create.rs"]
mod tests;
