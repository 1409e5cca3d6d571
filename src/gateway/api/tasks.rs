//! Reads tasks, and cancels them.

use super::Api;
use super::bounds;
use super::caller::Verb;
use super::problem::{Code, Problem, json};
use super::stream::{self, Start};
use super::target::{self, InPath, InQuery, Params};
use super::view::{Accepted, Summary, Task, TaskList, TaskStatus};
use crate::board::Name;
use agentrun_api::AgentRun;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use kube::ResourceExt as _;
use serde::Deserialize;
use std::sync::Arc;

/// The last event that a reader had.
const LAST_EVENT_ID: &str = "last-event-id";

/// Which tasks are listed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    limit: Option<u32>,
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// `GET tasks`.
pub(crate) async fn list(
    State(api): State<Arc<Api>>,
    path: InPath,
    page: InQuery<Page>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let namespace = api.namespace(&Params::of(path)?)?;
    api.door.admit(&headers, &namespace, Verb::List, None).await?;
    let page = target::query(page)?;
    let (usual, most) = bounds::PAGE;
    let limit = page.limit.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        let message = format!("limit is {limit}, it takes 1 to {most}");
        return Err(Problem::new(Code::BadRequest, message));
    }
    let found = api.cluster.page(&namespace, limit, page.token.as_deref()).await;
    let found = found.map_err(|error| Problem::of_api_server("list the tasks", &error))?;
    let readable = found.items.iter().filter_map(|item| item.0.as_ref().ok());
    let list = TaskList {
        tasks: readable.map(Summary::of).collect(),
        next: found.metadata.continue_.filter(|token| !token.is_empty()),
    };
    Ok(json(StatusCode::OK, &list))
}

/// `GET tasks/{id}`.
pub(crate) async fn get(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, run) = known(&api, path, &headers, Verb::Get).await?;
    let uid = run.uid().unwrap_or_default();
    let children = api
        .cluster
        .subtasks(&name.namespace, &uid, bounds::SUBTASKS)
        .await;
    let children = children.map_err(|error| Problem::of_api_server("read the task's sub-tasks", &error))?;
    let task = Task::of(&name.namespace, &run, &children.items, children.cut);
    Ok(json(StatusCode::OK, &task))
}

/// `POST tasks/{id}/cancel`. Cancelling a task that is over, or again, changes nothing.
pub(crate) async fn cancel(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (name, run) = known(&api, path, &headers, Verb::Update).await?;
    if TaskStatus::of(&run).is_over() {
        return Ok(json(StatusCode::OK, &Accepted::of(&name.namespace, &run)));
    }
    let run = api.cluster.cancel(&name.namespace, &name.name).await;
    let run = run.map_err(|error| Problem::of_api_server("cancel the task", &error))?;
    Ok(json(StatusCode::ACCEPTED, &Accepted::of(&name.namespace, &run)))
}

/// `GET tasks/{id}/stream`.
pub(crate) async fn events(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = admitted(&api, path, &headers, Verb::Get).await?;
    api.ready()?;
    let last = match headers.get(LAST_EVENT_ID) {
        // What is no text is no id of ours either.
        Some(last) => Some(last.to_str().unwrap_or("?")),
        None => None,
    };
    let place = api.feeds.place(&name.namespace, &api.metrics.streams)?;
    let gateway = &api.gateway;
    let feed = api.feeds.open(&name, &api.cluster, &gateway.sightings).await?;
    let (start, over): (Start, bool) = feed.start(last.filter(|last| !last.is_empty()));
    if over {
        // The one answer after which an EventSource does not come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let events = stream::reader::read(feed, &start, place, gateway.stop.clone());
    let mut response = Response::new(Body::from_stream(events));
    let headers = response.headers_mut();
    let fixed = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
    headers.extend([
        fixed(header::CONTENT_TYPE, "text/event-stream"),
        fixed(header::CACHE_CONTROL, "no-store, no-transform"),
        fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Proxies of the nginx family would collect the events.
        fixed(HeaderName::from_static("x-accel-buffering"), "no"),
    ]);
    Ok(response)
}

/// `POST tasks/{id}/answer` and `POST tasks/{id}/approve`.
pub(crate) async fn no_input(
    State(api): State<Arc<Api>>,
    path: InPath,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    admitted(&api, path, &headers, Verb::Update).await?;
    let message = "this version asks no questions and waits for no approvals, so there is nothing to answer";
    Err(Problem::new(Code::NotFound, message))
}

async fn admitted(api: &Api, path: InPath, headers: &HeaderMap, verb: Verb) -> Result<Name, Problem> {
    let params = Params::of(path)?;
    let (namespace, name) = (api.namespace(&params)?, params.id()?);
    api.door.admit(headers, &namespace, verb, Some(&name)).await?;
    Ok(Name { namespace, name })
}

async fn known(
    api: &Api,
    path: InPath,
    headers: &HeaderMap,
    verb: Verb,
) -> Result<(Name, AgentRun), Problem> {
    let name = admitted(api, path, headers, verb).await?;
    let run = api.cluster.run(&name.namespace, &name.name).await;
    let run = run.map_err(|error| Problem::of_api_server("read the task", &error))?;
    let run = run.ok_or_else(|| stream::not_found(&name))?;
    Ok((name, run))
}
