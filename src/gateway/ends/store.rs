//! Stores the end of an attempt, however long the API server takes.

use super::plan::{Key, Plan, plan};
use super::report::Report;
use crate::backoff::Backoff;
use crate::board::Name;
use crate::bounds;
use crate::gateway::Gateway;
use crate::placement::is_stopped;
use crate::text::chain;
use agentrun_api::SubTask;
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;

/// What became of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    /// It is in the object.
    Written,
    /// It is of no interest any more.
    Dropped,
    /// It could be neither stored nor dropped; it must be reported again.
    GivenUp,
}

/// What one write ended with.
enum Written {
    Yes,
    Gone,
    /// The object may have changed.
    Conflict,
    /// The API server refuses the content, whatever the object is.
    Refused(String),
    Unavailable(Box<kube::Error>),
}

/// Stores a report; retries for up to [`bounds::STORE`].
pub(crate) async fn store(gateway: &Gateway, namespace: &str, key: &Key, mut report: Report) -> Stored {
    let give_up = Instant::now() + bounds::STORE;
    let mut backoff = Backoff::new(bounds::STORE_PAUSE);
    let mut seen = gateway.board().live(&key.id.uid).map(|live| live.subtask);
    let mut refused = false;
    while Instant::now() < give_up {
        let cached = seen.take();
        let fresh = cached.is_none();
        let subtask = match cached {
            Some(subtask) => subtask,
            None => match read(gateway, namespace, &key.id.uid).await {
                Ok(Some(subtask)) => Arc::new(subtask),
                Ok(None) => return dropped("the sub-task is gone"),
                Err(error) => {
                    told(&error);
                    backoff.pause().await;
                    continue;
                }
            },
        };
        let stopped = is_stopped(
            &subtask,
            gateway.board().run(&subtask.spec.run_ref.uid).as_deref(),
        );
        let patch = match plan(&subtask, key, &report, stopped, Timestamp::now()) {
            Plan::Drop(cause) if fresh => return dropped(cause),
            // What the watch has seen may be old: only the object itself decides that a result is of no interest.
            Plan::Drop(_) => continue,
            Plan::Write(patch) => patch,
        };
        match write(gateway, &subtask, patch).await {
            Written::Yes => {
                let outcome = report.outcome.map_or("Evidence", agentrun_api::Outcome::as_str);
                gateway.metrics.results.with_label_values(&[outcome]).inc();
                tracing::info!(outcome, reason = report.reason, "end stored");
                return Stored::Written;
            }
            Written::Gone => return dropped("the sub-task is gone"),
            Written::Conflict => {}
            Written::Refused(refusal) if refused => {
                tracing::error!(refusal, "the API server refuses the end of an attempt");
                return Stored::GivenUp;
            }
            Written::Refused(refusal) => {
                tracing::warn!(
                    refusal,
                    "the API server refuses a result, its end is stored without it"
                );
                refused = true;
                report = report.bare(&refusal);
            }
            Written::Unavailable(error) => {
                told(&error);
                backoff.pause().await;
            }
        }
    }
    tracing::error!("the end of an attempt could not be stored in time");
    Stored::GivenUp
}

fn dropped(cause: &'static str) -> Stored {
    tracing::info!(cause, "end dropped");
    Stored::Dropped
}

fn told(error: &kube::Error) {
    tracing::warn!(
        error = chain(error),
        "the API server did not take the end of an attempt, trying again"
    );
}

async fn read(gateway: &Gateway, namespace: &str, uid: &str) -> Result<Option<SubTask>, kube::Error> {
    let known = gateway.board().name_of(uid);
    let name = match known {
        Some(name) => Some(name),
        None => gateway.objects.find_subtask(namespace, uid).await?,
    };
    let Some(name) = name else { return Ok(None) };
    gateway.objects.subtask(&name).await
}

async fn write(gateway: &Gateway, subtask: &SubTask, patch: Value) -> Written {
    let name = Name::of(subtask);
    let Err(error) = gateway.objects.patch_status(&name, patch).await else {
        return Written::Yes;
    };
    let kube::Error::Api(status) = &error else {
        return Written::Unavailable(Box::new(error));
    };
    match status.code {
        404 => Written::Gone,
        409 => Written::Conflict,
        // A failed `test` and a refused content have the same code: the object's version tells them apart.
        400 | 413 | 422 => match gateway.objects.subtask(&name).await {
            Ok(None) => Written::Gone,
            Ok(Some(now)) if now.resource_version() == subtask.resource_version() => {
                Written::Refused(status.message.clone())
            }
            Ok(Some(_)) => Written::Conflict,
            Err(error) => Written::Unavailable(Box::new(error)),
        },
        _ => Written::Unavailable(Box::new(error)),
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
