//! Events from objects; pure.
//!
//! Every event has a key that is the same wherever and whenever it is derived. Whatever an object shows now also shows
//! what it showed before, so that an old sighting never brings an event that a newer one did not.

use super::event::{Event, Subagent, SubagentStatus};
use crate::api::view::{self, File, TaskStatus};
use agentrun_api::{AgentRun, SubTask};
use jiff::Timestamp;
use kube::ResourceExt as _;
use serde_json::Value;
use std::time::Duration;

/// An event with what it is told apart and sorted by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Keyed {
    /// The same for the same event on every gateway.
    pub(crate) key: String,
    /// When it happened, as far as the object says.
    pub(crate) at: Timestamp,
    /// The event.
    pub(crate) event: Event,
}

/// The first event of a run.
pub(crate) fn opening(run: &AgentRun) -> Keyed {
    Keyed {
        key: "plan".into(),
        at: run
            .creation_timestamp()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        event: Event::Plan {
            steps: view::steps(&run.spec),
        },
    }
}

/// What a sub-task shows, in the order in which it happened.
pub(crate) fn of_subtask(subtask: &SubTask) -> Vec<Keyed> {
    let uid = subtask.uid().unwrap_or_default();
    let status = subtask.status.clone().unwrap_or_default();
    let mut attempts: Vec<_> = status.attempts.iter().collect();
    attempts.sort_by_key(|attempt| attempt.number);
    let first = attempts.first().and_then(|attempt| attempt.started.as_ref());
    let mut at = made(subtask, first.map(|time| time.0));
    let mut events = vec![Keyed {
        key: format!("{uid}/started"),
        at,
        event: Event::Subagent(subagent(subtask, SubagentStatus::Started)),
    }];
    for attempt in attempts {
        // Times come from several clocks: a later event of one sub-task never sorts before an earlier one.
        at = attempt.started.as_ref().map_or(at, |time| time.0.max(at));
        let mut running = subagent(subtask, SubagentStatus::Running);
        running.attempt = Some(attempt.number);
        events.push(Keyed {
            key: format!("{uid}/running/{}", attempt.number),
            at,
            event: Event::Subagent(running),
        });
        at = attempt.finished.as_ref().map_or(at, |time| time.0.max(at));
    }
    let Some(outcome) = status.outcome else {
        return events;
    };
    let name = view::name_of(subtask);
    events.extend(status.artifacts.iter().map(|artifact| {
        let file = File::delivered(artifact);
        delivered(file, Some(name.clone()), at)
    }));
    let mut ended = subagent(subtask, SubagentStatus::of(outcome));
    ended.attempt = status.attempts.iter().map(|attempt| attempt.number).max();
    ended.outcome = Some(outcome);
    ended.reason = status.reason;
    ended.message = status.message;
    events.push(Keyed {
        key: format!("{uid}/ended"),
        at,
        event: Event::Subagent(ended),
    });
    events
}

/// When a sub-task was made. The API server tells whole seconds: the end of that second, or its first start if that was
/// before, so that it does not seem to have been made before the ends that it waited for.
fn made(subtask: &SubTask, first_start: Option<Timestamp>) -> Timestamp {
    let Some(second) = subtask.creation_timestamp() else {
        return Timestamp::UNIX_EPOCH;
    };
    let latest = second.0 + Duration::from_millis(999);
    first_start.map_or(latest, |start| start.clamp(second.0, latest))
}

/// What a run shows at its end; nothing before.
pub(crate) fn ending(run: &AgentRun) -> Vec<Keyed> {
    let state = TaskStatus::of(run);
    if !state.is_over() {
        return Vec::new();
    }
    let status = run.status.clone().unwrap_or_default();
    let at = status
        .completion_time
        .as_ref()
        .map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let files = status.artifacts.iter().map(File::delivered);
    let mut events: Vec<_> = files.map(|file| delivered(file, None, at)).collect();
    if state != TaskStatus::Succeeded {
        let message = view::message(&status).unwrap_or_else(|| "the task did not end well".into());
        let code = status.reason.unwrap_or_else(|| "Failed".into());
        events.push(Keyed {
            key: "error".into(),
            at,
            event: Event::Error { code, message },
        });
    }
    events.push(Keyed {
        key: "done".into(),
        at,
        event: Event::Done {
            status: state,
            outputs: status.output.map_or(Value::Null, |output| output.0),
            output_ref: status.output_ref.as_ref().map(File::stored),
        },
    });
    events
}

/// What is told when a run is deleted before its end.
pub(crate) fn deleted() -> Keyed {
    Keyed {
        key: "deleted".into(),
        at: Timestamp::UNIX_EPOCH,
        event: Event::Error {
            code: "TaskDeleted".into(),
            message: "the task's AgentRun was deleted, nothing more is known of it".into(),
        },
    }
}

fn delivered(file: File, subagent: Option<String>, at: Timestamp) -> Keyed {
    Keyed {
        // The run's own list repeats what its sub-tasks delivered.
        key: format!("artifact/{}/{}", file.sha256, file.path),
        at,
        event: Event::Artifact { file, subagent },
    }
}

fn subagent(subtask: &SubTask, status: SubagentStatus) -> Subagent {
    Subagent {
        name: view::name_of(subtask),
        status,
        id: subtask.name_any(),
        attempt: None,
        outcome: None,
        reason: None,
        message: None,
    }
}
