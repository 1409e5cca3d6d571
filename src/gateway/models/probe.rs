//! Whether models answer: a short call with one tool for each Model that is new, changed or suspected, and again while it
//! is not ready. Every gateway may look; the first to write spares the others, since a write is bound to what was seen.

use super::access::access;
use super::ask::ask_once;
use super::fault::{Fault, Next, says_no_tools};
use super::limits::{PROBE, PROBE_AGAIN, PROBE_MISSING, PROBE_SOON, PROBE_SPREAD, PROBE_WRITES, PROBES};
use super::texts::Texts;
use crate::backoff::Backoff;
use crate::board::Name;
use crate::bounds;
use crate::gateway::Gateway;
use crate::objects::Age;
use crate::text::chain;
use agentrun_api::names::conditions::READY;
use agentrun_api::{Model, ModelStatus, ReadyReason};
use agentrun_core::conditions::{self, Is};
use agentrun_protocol::chat::{Message, ModelFailureCode, ModelRequest, Role, ToolSpec};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Earlier looks at Models.
type Looks = HashMap<Name, Look>;

/// The last look at a Model.
#[derive(Clone, Copy, Debug)]
struct Look {
    generation: Option<i64>,
    at: Instant,
    /// How often this generation was looked at without being ready.
    vain: u32,
}

impl Look {
    /// The look at `now` that follows `before`.
    fn next(model: &Model, before: Option<Look>, now: Instant) -> Look {
        let generation = model.metadata.generation;
        let ready = current(model).is_some_and(|ready| ready.status == "True");
        let again = before.filter(|look| look.generation == generation && !ready);
        Look {
            generation,
            at: now,
            vain: again.map_or(0, |look| look.vain.saturating_add(1)),
        }
    }

    /// What is not ready is perhaps only starting: soon, and then ever later.
    fn pause(self) -> Duration {
        let doubled = 2_u32
            .checked_pow(self.vain)
            .and_then(|times| PROBE_SOON.checked_mul(times));
        doubled.map_or(PROBE_AGAIN, |pause| pause.min(PROBE_AGAIN))
    }
}

/// What a probe found.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Is(Is, ReadyReason, String),
    /// Nothing yet, for this cause.
    Nothing(String),
}

/// Looks after all Models, for ever.
pub(crate) async fn look_after(gateway: Arc<Gateway>) {
    let mut looked = Looks::new();
    let mut probes = JoinSet::new();
    loop {
        let now = Instant::now();
        for model in due(&gateway, &mut looked, now) {
            if probes.len() >= PROBES {
                probes.join_next().await;
            }
            let gateway = Arc::clone(&gateway);
            probes.spawn(async move { look(&gateway, &model).await });
        }
        tokio::select! {
            () = gateway.models.wait() => {}
            () = tokio::time::sleep(PROBE_SPREAD * 5) => {}
            Some(_) = probes.join_next() => {}
        }
    }
}

/// The Models to look at now.
fn due(gateway: &Gateway, looked: &mut Looks, now: Instant) -> Vec<Arc<Model>> {
    let models = gateway.board().models();
    looked.retain(|name, _| models.iter().any(|model| Name::of(&**model) == *name));
    let suspects = gateway.models.suspects();
    let mut due = Vec::new();
    for model in models {
        let name = Name::of(&*model);
        let before = looked.get(&name).copied();
        if is_due(&model, before, suspects.contains(&name), now) {
            looked.insert(name, Look::next(&model, before, now));
            due.push(model);
        }
    }
    due
}

fn is_due(model: &Model, before: Option<Look>, suspected: bool, now: Instant) -> bool {
    let passed = |pause: Duration| before.is_none_or(|look| now.duration_since(look.at) >= pause);
    let changed = before.is_some_and(|look| look.generation != model.metadata.generation);
    let again = before.map_or(PROBE_SOON, Look::pause);
    match current(model) {
        Some(ready) if ready.status == "True" => suspected && passed(PROBE_AGAIN),
        Some(ready) => match ready.reason.parse() {
            Ok(ReadyReason::SecretNotFound | ReadyReason::ConfigMapNotFound) => passed(PROBE_MISSING),
            _ => passed(again),
        },
        None => changed || passed(again),
    }
}

/// The condition `Ready`, if it speaks of the spec as it is.
fn current(model: &Model) -> Option<&Condition> {
    let ready = conditions::get(&model.status.as_ref()?.conditions, READY)?;
    (ready.observed_generation == model.metadata.generation).then_some(ready)
}

async fn look(gateway: &Gateway, model: &Model) {
    // Others may be faster; then there is nothing to do.
    tokio::time::sleep(Backoff::new((PROBE_SPREAD, PROBE_SPREAD)).next()).await;
    let Some(seen) = newest(gateway, model) else {
        return;
    };
    let rewritten = seen.metadata.resource_version != model.metadata.resource_version;
    if rewritten && current(&seen).is_some_and(|ready| ready.status == "True") {
        return;
    }
    let probed = tokio::time::timeout(PROBE, probe(gateway, &seen)).await;
    let found = probed.unwrap_or_else(|_| {
        let message = format!("the endpoint gave no answer in {} s", PROBE.as_secs());
        Found::Is(Is::False, ReadyReason::Unreachable, message)
    });
    let mut backoff = Backoff::new(bounds::STORE_PAUSE);
    for _ in 0..PROBE_WRITES {
        if told(gateway, model, &found).await {
            return;
        }
        backoff.pause().await;
    }
}

/// The Model as it is now, unless its spec is another one.
fn newest(gateway: &Gateway, model: &Model) -> Option<Arc<Model>> {
    let models = gateway.board().models_of(&model.namespace().unwrap_or_default());
    let same =
        |now: &Arc<Model>| now.uid() == model.uid() && now.metadata.generation == model.metadata.generation;
    models.into_iter().find(same)
}

/// Writes what was found into the status; false if that is worth another try.
async fn told(gateway: &Gateway, model: &Model, found: &Found) -> bool {
    let Some(seen) = newest(gateway, model) else {
        return true;
    };
    let (is, reason, message) = match found {
        Found::Is(is, reason, message) => (*is, *reason, message),
        Found::Nothing(_) if current(&seen).is_some() => return true,
        Found::Nothing(cause) => (Is::Unknown, ReadyReason::Pending, cause),
    };
    let before = seen.status.clone().unwrap_or_default();
    let after = after(
        &before,
        seen.metadata.generation,
        is,
        reason,
        message,
        Timestamp::now(),
    );
    if after == before {
        return true;
    }
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": seen.resource_version()},
        {"op": "add", "path": "/status", "value": after},
    ]);
    let name = Name::of(&*seen);
    let written = gateway.objects.patch_model(&name, patch).await;
    let (namespace, model) = (name.namespace, name.name);
    match &written {
        Ok(()) => tracing::info!(
            namespace,
            model,
            reason = reason.as_str(),
            message,
            "looked at a model"
        ),
        Err(error) => tracing::info!(
            namespace,
            model,
            error = chain(error),
            "the status of a model could not be written"
        ),
    }
    written.is_ok()
}

fn after(
    before: &ModelStatus,
    generation: Option<i64>,
    is: Is,
    reason: ReadyReason,
    message: &str,
    now: Timestamp,
) -> ModelStatus {
    let mut after = before.clone();
    after.observed_generation = generation;
    conditions::set(
        &mut after.conditions,
        READY,
        is,
        reason.as_str(),
        message,
        generation,
        now,
    );
    after
}

async fn probe(gateway: &Gateway, model: &Model) -> Found {
    let access = match access(gateway, model, Age::Fresh).await {
        Ok(access) => access,
        Err(no) => {
            return match no.reason() {
                Some(reason) => Found::Is(Is::False, reason, no.to_string()),
                None => Found::Nothing(no.to_string()),
            };
        }
    };
    let mut short = model.clone();
    short.spec.max_output_tokens = Some(1);
    let request = question();
    for _ in 0..4 {
        let asked = ask_once(gateway, &short, &access, &request, &mut Texts::nobody()).await;
        match asked {
            Ok(_) => return Found::Is(Is::True, ReadyReason::Ready, String::new()),
            Err(fault) => match fault.next {
                Next::Without(quirk) if gateway.models.learn(model, quirk) => {}
                _ => return found(&fault),
            },
        }
    }
    Found::Nothing("the endpoint refuses one thing after the other".to_owned())
}

fn found(fault: &Fault) -> Found {
    let no = |reason| Found::Is(Is::False, reason, fault.message.clone());
    match fault.code {
        ModelFailureCode::AuthFailed => no(ReadyReason::AuthFailed),
        ModelFailureCode::Refused if says_no_tools(fault) => no(ReadyReason::NoTools),
        // Models that think first have no word in one token, and some endpoints call that an error.
        ModelFailureCode::Refused if fault.message.contains("output limit") => {
            Found::Is(Is::True, ReadyReason::Ready, String::new())
        }
        ModelFailureCode::Refused => no(ReadyReason::Invalid),
        ModelFailureCode::RateLimited => Found::Nothing(fault.message.clone()),
        _ => no(ReadyReason::Unreachable),
    }
}

/// As short as a call with a tool can be.
fn question() -> ModelRequest {
    ModelRequest {
        role: Role::Executor,
        model: None,
        messages: vec![Message::User {
            text: "Say ok.".to_owned(),
            images: Vec::new(),
        }],
        tools: vec![ToolSpec {
            name: "done".to_owned(),
            description: "Says that it is done.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
        }],
        output_schema: None,
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
