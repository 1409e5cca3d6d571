//! One call of an agent, from the choice of its model to the answer: tries, fallbacks, budget and accounts.

use super::access::{Access, access};
use super::body::body;
use super::budget::{Amount, Entry};
use super::count::{cost, estimate};
use super::fault::{Fault, Next};
use super::once::Try;
use super::reader::Reply;
use super::texts::Texts;
use super::tries::Tries;
use crate::board::Name;
use crate::gateway::Gateway;
use crate::objects::Age;
use agentrun_api::{AgentRun, Model, SubTask};
use agentrun_core::agents::models::{NoModel, choose};
use agentrun_core::agents::role;
use agentrun_protocol::agent::Spent;
use agentrun_protocol::chat::{
    Message, ModelAnswer, ModelFailure, ModelFailureCode, ModelRequest, Role, TokenUsage,
};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube::ResourceExt as _;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::time::Instant;

/// Bytes of a request's JSON that a token has at most, roughly: calls that are under way count by it.
const BYTES_PER_TOKEN: usize = 4;

/// Whose call it is.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) subtask: Arc<SubTask>,
    pub(super) run: Arc<AgentRun>,
}

/// What is asked.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Arc<ModelRequest>,
    /// Bytes of its JSON.
    pub(super) bytes: usize,
    pub(super) spent: Spent,
}

/// Asks.
pub(super) async fn ask(
    gateway: &Gateway,
    caller: &Caller,
    asked: &Asked,
    texts: &mut Texts,
) -> Result<ModelAnswer, ModelFailure> {
    let request = &asked.request;
    let chain = chain(gateway, caller, request).map_err(|error| ModelFailure {
        code: ModelFailureCode::NoModel,
        message: error.to_string(),
    })?;
    let subtask = caller.subtask.uid().unwrap_or_default();
    let run = caller.run.uid().unwrap_or_default();
    let recorded = {
        let board = gateway.board();
        gateway.models.tidy(&board);
        board.used_by(&run)
    };
    let admitted = gateway.models.ledger.enter(Entry {
        run: &caller.run,
        today: Timestamp::now().to_zoned(TimeZone::UTC).date(),
        subtask: &subtask,
        told: Amount::of(&asked.spent),
        recorded,
        asks: u64::try_from(asked.bytes / BYTES_PER_TOKEN).unwrap_or(u64::MAX),
    })?;
    let (model, reply) = first_answer(gateway, &chain, request, texts).await?;
    let (reply, usage) = counted(request, reply).await;
    let micros = cost(model.spec.price.as_ref(), usage);
    admitted.used(Amount {
        tokens: usage.input.saturating_add(usage.output),
        micros,
    });
    account(gateway, &model, request.role, usage, micros);
    Ok(ModelAnswer {
        text: reply.text,
        tool_calls: reply.tool_calls,
        finish: reply.finish,
        usage,
        cost_micros: micros,
        model: model.name_any(),
    })
}

/// The models to ask, in this order.
fn chain(gateway: &Gateway, caller: &Caller, request: &ModelRequest) -> Result<Vec<Arc<Model>>, NoModel> {
    let namespace = caller.subtask.namespace().unwrap_or_default();
    let models = gateway.board().models_of(&namespace);
    let by_run = &caller.run.spec.models;
    let all: Vec<&Model> = models.iter().map(Arc::as_ref).collect();
    let first = match choose(&all, request.model.as_deref(), by_run, request.role) {
        // Without a model for summaries an agent makes them with its own.
        Err(NoModel::Missing { .. }) if request.role == Role::Summarizer => {
            let agent = caller.subtask.spec.agent.as_ref();
            let own = agent.and_then(|agent| agent.agent.model.as_deref());
            choose(&all, own, by_run, role::of(&caller.subtask.spec))?
        }
        chosen => chosen?,
    };
    let first = named(&models, &first.name_any()).unwrap_or_else(|| Arc::new(first.clone()));
    let mut chain = vec![Arc::clone(&first)];
    for name in &first.spec.fallbacks {
        match named(&models, name) {
            Some(model) if chain.iter().any(|known| Arc::ptr_eq(known, &model)) => {}
            Some(model) => chain.push(model),
            None => tracing::warn!(
                namespace,
                model = first.name_any(),
                fallback = name,
                "a Model names a fallback that is not there"
            ),
        }
    }
    Ok(chain)
}

fn named(models: &[Arc<Model>], name: &str) -> Option<Arc<Model>> {
    models.iter().find(|model| model.name_any() == name).cloned()
}

async fn first_answer(
    gateway: &Gateway,
    chain: &[Arc<Model>],
    request: &ModelRequest,
    texts: &mut Texts,
) -> Result<(Arc<Model>, Reply), ModelFailure> {
    let until = Instant::now() + gateway.models.patience.call;
    let mut failure: Option<ModelFailure> = None;
    for (place, model) in chain.iter().enumerate() {
        let another_follows = place + 1 < chain.len();
        let fault = match answer_of(gateway, model, another_follows, until, request, texts).await {
            Ok(reply) => return Ok((Arc::clone(model), reply)),
            Err(fault) => fault,
        };
        tracing::warn!(
            model = model.name_any(),
            namespace = model.namespace(),
            role = request.role.as_str(),
            cause = fault.message,
            another_follows,
            "a model gave no answer"
        );
        let message = format!("Model `{}`: {}", model.name_any(), fault.message);
        if fault.next == Next::Nowhere {
            let code = fault.code;
            return Err(ModelFailure { code, message });
        }
        failure = Some(match failure {
            None => ModelFailure {
                code: fault.code,
                message,
            },
            Some(first) => ModelFailure {
                code: first.code,
                message: format!("{}; {message}", first.message),
            },
        });
    }
    Err(failure.unwrap_or_else(|| ModelFailure {
        code: ModelFailureCode::NoModel,
        message: "there is no model to ask".to_owned(),
    }))
}

/// Asks one model, again where that is worth it.
async fn answer_of(
    gateway: &Gateway,
    model: &Model,
    another_follows: bool,
    until: Instant,
    request: &ModelRequest,
    texts: &mut Texts,
) -> Result<Reply, Fault> {
    let mut tries = Tries::new(&gateway.models.patience, another_follows);
    let mut key = Age::Recent;
    // With what the endpoint refused the key.
    let mut refused: Option<Access> = None;
    loop {
        let fault = match access(gateway, model, key).await {
            Err(no) => Fault::from(no),
            // The key that was not taken is the only one there is.
            Ok(access)
                if key == Age::Fresh && refused.as_ref().is_some_and(|refused| refused.is_like(&access)) =>
            {
                gateway.models.suspect(&Name::of(model));
                return Err(Fault::new(
                    ModelFailureCode::AuthFailed,
                    Next::Elsewhere,
                    "the endpoint does not take the key: check `secretRef` of the Model and the Secret that it names",
                ));
            }
            Ok(access) => match ask_once(gateway, model, &access, request, texts).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => {
                    refused = (fault.next == Next::OtherKey).then_some(access);
                    fault
                }
            },
        };
        match fault.next {
            Next::Without(quirk) if gateway.models.learn(model, quirk) => continue,
            Next::OtherKey if key == Age::Recent => {
                key = Age::Fresh;
                continue;
            }
            _ => {}
        }
        let left = until.saturating_duration_since(Instant::now());
        let Some(pause) = tries.again(fault.next, left) else {
            if matches!(
                fault.code,
                ModelFailureCode::AuthFailed | ModelFailureCode::Unreachable
            ) {
                gateway.models.suspect(&Name::of(model));
            }
            return Err(fault);
        };
        tracing::info!(
            model = model.name_any(),
            cause = fault.message,
            pause_ms = pause.as_millis(),
            "asking a model again"
        );
        tokio::time::sleep(pause).await;
    }
}

/// Asks one model once.
pub(super) async fn ask_once(
    gateway: &Gateway,
    model: &Model,
    access: &Access,
    request: &ModelRequest,
    texts: &mut Texts,
) -> Result<Reply, Fault> {
    let models = &gateway.models;
    let client = models
        .clients
        .client(access.authorities.as_deref(), &models.patience)?;
    let asking = Try {
        client: &client,
        access,
        body: body(&model.spec, request, models.quirks_of(model)).into(),
        patience: &models.patience,
        offered: !request.tools.is_empty(),
        ids: &ids(&request.messages),
    };
    let began = Instant::now();
    let asked = asking.ask(texts).await;
    let answer = asked.as_ref().map_or_else(|fault| code(fault.code), |_| "ok");
    let namespace = model.namespace().unwrap_or_default();
    let labels = [namespace.as_str(), &model.name_any(), answer];
    gateway.metrics.models.calls.with_label_values(&labels).inc();
    gateway
        .metrics
        .models
        .seconds
        .observe(began.elapsed().as_secs_f64());
    asked
}

/// Ids of calls that the conversation has.
fn ids(messages: &[Message]) -> BTreeSet<&str> {
    let calls = messages.iter().filter_map(|message| match message {
        Message::Assistant { tool_calls, .. } => Some(tool_calls),
        _ => None,
    });
    calls.flatten().map(|call| call.id.as_str()).collect()
}

/// What the answer used: as the endpoint says, or counted.
async fn counted(request: &Arc<ModelRequest>, reply: Reply) -> (Reply, TokenUsage) {
    if let Some(usage) = reply.usage {
        return (reply, usage);
    }
    let request = Arc::clone(request);
    let reply = Arc::new(reply);
    let shared = Arc::clone(&reply);
    let counting = tokio::task::spawn_blocking(move || estimate(&request, &shared));
    let usage = counting.await.unwrap_or_default();
    let reply = Arc::try_unwrap(reply).unwrap_or_else(|shared| (*shared).clone());
    (reply, usage)
}

fn account(gateway: &Gateway, model: &Model, role: Role, usage: TokenUsage, micros: u64) {
    let metrics = &gateway.metrics.models;
    let (namespace, name) = (model.namespace().unwrap_or_default(), model.name_any());
    for (kind, tokens) in [("input", usage.input), ("output", usage.output)] {
        let labels = [namespace.as_str(), &name, role.as_str(), kind];
        metrics.tokens.with_label_values(&labels).inc_by(tokens);
    }
    let labels = [namespace.as_str(), &name, role.as_str()];
    metrics.cost_micros.with_label_values(&labels).inc_by(micros);
}

fn code(code: ModelFailureCode) -> &'static str {
    match code {
        ModelFailureCode::NoModel => "NoModel",
        ModelFailureCode::AuthFailed => "AuthFailed",
        ModelFailureCode::Unreachable => "Unreachable",
        ModelFailureCode::RateLimited => "RateLimited",
        ModelFailureCode::ContextTooLong => "ContextTooLong",
        ModelFailureCode::BudgetExceeded => "BudgetExceeded",
        ModelFailureCode::Refused => "Refused",
        ModelFailureCode::BadAnswer => "BadAnswer",
    }
}
