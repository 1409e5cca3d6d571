//! One function call over HTTP: a run of one task, waited for, its answer in the response.

mod answer;
mod find;

pub(crate) use answer::FlowAnswer;

use super::Api;
use super::bounds;
use super::call::{self, Begun, Call, End, Waiter};
use super::caller::{Caller, Verb};
use super::create::literal;
use super::problem::{Code, Problem};
use super::stream::sightings::Sink as _;
use super::target::{self, InPath, InQuery, Params};
use agentrun_api::GoDuration;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How a function is called.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// How long the call may take with everything around it.
    timeout: Option<String>,
    /// The pool whose sandboxes it may run in.
    pool: Option<String>,
    /// Whether the answer shows all that is known of the call.
    #[serde(default)]
    envelope: bool,
}

/// `POST flow/{skill}/{function}` and `POST flow/{function}`.
pub(crate) async fn call(
    State(api): State<Arc<Api>>,
    path: InPath,
    options: InQuery<Options>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&api, path, options, &headers, body).await {
        Ok(response) => response,
        Err(problem) => FlowAnswer::refused(problem),
    }
}

async fn answer(
    api: &Arc<Api>,
    path: InPath,
    options: InQuery<Options>,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let params = Params::of(path)?;
    let namespace = api.namespace(&params)?;
    let caller = api.door.admit(headers, &namespace, Verb::Create, None).await?;
    let options = target::query(options)?;
    let input: Value = target::body(headers, body, bounds::INPUT).await?;
    api.ready()?;
    let function = find::function(
        &api.gateway.board(),
        &namespace,
        params.skill()?,
        &params.function(),
    )?;
    let timeout = timeout(options.timeout.as_deref())?;
    let _place = api.calls.try_acquire().map_err(|_| call::too_many())?;
    let spec = spec(&function, input, timeout, options.pool.as_deref(), &caller);
    let waiter = Arc::new(Waiter::default());
    let whose = Call {
        kind: "call",
        namespace: &namespace,
        caller: &caller,
        headers,
    };
    let Begun {
        name,
        uid,
        made,
        unheard,
    } = whose.begin(api, &spec, &waiter).await?;
    if made.earlier {
        let children = api
            .cluster
            .subtasks(&name.namespace, &uid, bounds::SUBTASKS)
            .await;
        let children = children.map_err(|error| Problem::of_api_server("read the call", &error))?;
        waiter.run(&made.run);
        children.items.iter().for_each(|subtask| waiter.subtask(subtask));
    }
    let latest = Instant::now() + timeout + bounds::CALL_GRACE;
    let end = call::end(&waiter, &uid, latest, &api.gateway.stop).await?;
    let end = match end {
        End::Run(run) => {
            // Its sub-task may have ended, too: the two watches are not in step.
            let children = api
                .cluster
                .subtasks(&name.namespace, &uid, bounds::SUBTASKS)
                .await;
            let ended = children.unwrap_or_default().items.into_iter();
            let ended = ended
                .into_iter()
                .find(|it| it.status.as_ref().is_some_and(|status| status.outcome.is_some()));
            ended.map_or(End::Run(run), |subtask| End::SubTask(Box::new(subtask)))
        }
        end => end,
    };
    if matches!(end, End::Late) {
        drop(unheard);
    } else {
        unheard.heard();
    }
    Ok(FlowAnswer::of(&end, &name.name, timeout).response(options.envelope))
}

/// A run of one call. It goes soon after its end: only the caller waits for it.
fn spec(
    function: &find::Function,
    input: Value,
    timeout: Duration,
    pool: Option<&str>,
    caller: &Caller,
) -> Value {
    let mut spec = json!({
        "tasks": [{
            "name": "call",
            "function": {"skill": function.skill, "name": function.name},
            "input": harmless(input),
        }],
        "limits": {"timeout": format!("{}ms", timeout.as_millis())},
        "userData": {"user": caller.user()},
        "ttlSecondsAfterFinished": bounds::CALL_TTL,
    });
    if let Some(pool) = pool {
        spec["sandbox"] = json!({"pool": pool});
    }
    spec
}

/// The value with nothing in it that a run would take for an expression.
fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => literal(&text).into(),
        Value::Array(items) => items.into_iter().map(harmless).collect(),
        Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(key, value)| (literal(&key), harmless(value)))
                .collect()
        }
        scalar => scalar,
    }
}

fn timeout(asked: Option<&str>) -> Result<Duration, Problem> {
    let (usual, most) = bounds::CALL;
    let Some(asked) = asked else {
        return Ok(usual);
    };
    let refused = |cause: String| Problem::new(Code::BadRequest, format!("timeout: {cause}"));
    let parsed = GoDuration(asked.to_owned()).parse();
    let parsed = parsed.map_err(|error| refused(error.to_string()))?;
    if parsed < Duration::from_millis(1) || parsed > most {
        return Err(refused(format!(
            "{asked} was found, 1ms to {}s are taken",
            most.as_secs()
        )));
    }
    Ok(parsed)
}

#[cfg(test)]
#[path = "../tests/flow_unit.rs"]
mod tests;
