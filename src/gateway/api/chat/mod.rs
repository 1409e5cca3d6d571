//! A run as a model: what programs for the Chat Completions API of OpenAI ask is a goal, and the lead's answer the message.

mod answer;
pub(crate) mod request;

pub(crate) use answer::{ChatCompletion, ChatRefused, ModelList};

use super::Api;
use super::bounds;
use super::call::{self, Begun, Call, End, Waiter};
use super::caller::{Caller, Verb};
use super::create::{check, literal};
use super::problem::{Code, Problem, json};
use super::stream::sightings::Sink;
use super::target::{self, InPath, Params};
use agentrun_api::{AgentRun, SubTask};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use kube::ResourceExt as _;
use request::{Asked, DEFAULT_MODEL};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::time::Instant;

/// Waits for the end of a whole run, whose pieces end before it.
#[derive(Debug, Default)]
struct RunWaiter(Waiter);

impl Sink for RunWaiter {
    fn run(&self, run: &AgentRun) {
        self.0.run(run);
    }

    fn subtask(&self, _subtask: &SubTask) {}

    fn deleted(&self, uid: &str) {
        self.0.deleted(uid);
    }

    fn begun_anew(&self) {}
}

/// `GET v1/models`.
pub(crate) async fn models(State(api): State<Arc<Api>>, path: InPath, headers: HeaderMap) -> Response {
    match list(&api, path, &headers).await {
        Ok(list) => json(StatusCode::OK, &list),
        Err(problem) => ChatRefused::from(problem).into_response(),
    }
}

async fn list(api: &Api, path: InPath, headers: &HeaderMap) -> Result<ModelList, Problem> {
    let namespace = api.namespace(&Params::of(path)?)?;
    api.door.admit(headers, &namespace, Verb::Create, None).await?;
    api.ready()?;
    Ok(ModelList::of(
        &namespace,
        &api.gateway.board().models_of(&namespace),
    ))
}

/// `POST v1/chat/completions`.
pub(crate) async fn complete(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match answer(&api, path, &headers, body).await {
        Ok(completion) => json(StatusCode::OK, &completion),
        Err(refused) => refused.into_response(),
    }
}

async fn answer(
    api: &Arc<Api>,
    path: InPath,
    headers: &HeaderMap,
    body: Body,
) -> Result<ChatCompletion, ChatRefused> {
    let namespace = api.namespace(&Params::of(path)?)?;
    let caller = api.door.admit(headers, &namespace, Verb::Create, None).await?;
    let asked = Asked::of(target::body(headers, body, bounds::BODY).await?)?;
    api.ready()?;
    is_there(api, &namespace, &asked.model)?;
    let _place = api.calls.try_acquire().map_err(|_| call::too_many())?;
    let spec = spec(&asked, &caller);
    check(&spec)?;
    let waiter = Arc::new(RunWaiter::default());
    let whose = Call {
        kind: "chat",
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
        waiter.run(&made.run);
    }
    let latest = Instant::now() + bounds::CALL.1 + bounds::CALL_GRACE;
    let end = call::end(&waiter.0, &uid, latest, &api.gateway.stop).await?;
    let End::Run(run) = end else {
        return Err(ChatRefused::late(&name.name));
    };
    unheard.heard();
    let subtasks = api
        .cluster
        .subtasks(&name.namespace, &uid, bounds::SUBTASKS)
        .await;
    // Only the reason of the lead's stop is in them.
    let subtasks = subtasks.unwrap_or_default().items;
    ChatCompletion::of(&asked.model, &run, &subtasks)
}

fn is_there(api: &Api, namespace: &str, model: &str) -> Result<(), Problem> {
    let models = api.gateway.board().models_of(namespace);
    if model == DEFAULT_MODEL || models.iter().any(|it| it.name_any() == model) {
        return Ok(());
    }
    let message = format!(
        "model {model:?} is no Model of namespace {namespace}: use one that GET v1/models lists, or {DEFAULT_MODEL}"
    );
    Err(Problem::new(Code::NotFound, message))
}

/// The run that answers. It stays a while after its end, for what it delivered.
fn spec(asked: &Asked, caller: &Caller) -> Value {
    let user = asked.user.clone().unwrap_or_else(|| caller.user());
    let mut spec = json!({
        "goal": literal(&asked.goal),
        "limits": {"timeout": format!("{}s", bounds::CALL.1.as_secs())},
        "userData": {"user": user},
        "ttlSecondsAfterFinished": bounds::CHAT_TTL,
    });
    let mut lead = json!({});
    if let Some(instructions) = &asked.instructions {
        lead["instructions"] = literal(instructions).into();
    }
    if asked.model != DEFAULT_MODEL {
        lead["model"] = asked.model.clone().into();
    }
    if lead != json!({}) {
        spec["lead"] = lead;
    }
    spec
}
