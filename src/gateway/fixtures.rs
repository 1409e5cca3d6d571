//! Objects and a scripted API server for the tests of this room.

use crate::gateway::Gateway;
use crate::metrics::Metrics;
use crate::models::{Models, Patience};
use agentrun_api::{AgentRun, Skill, SubTask};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(crate) const POD: &str = "pod-uid";
pub(crate) const TASK: &str = "task-uid";
pub(crate) const RUN: &str = "run-uid";

/// A sub-task that runs `true` as attempt 1 in [`POD`], changed by `change`.
pub(crate) fn subtask(change: impl FnOnce(&mut Value)) -> SubTask {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1",
        "kind": "SubTask",
        "metadata": {
            "name": "st-1", "namespace": "team-a", "uid": TASK, "resourceVersion": "7",
            "creationTimestamp": "2030-01-01T00:00:00Z",
        },
        "spec": {
            "runRef": {"name": "run-1", "uid": RUN},
            "task": "build",
            "role": "Task",
            "command": {"argv": ["true"]},
            "timeout": "10s",
        },
        "status": {
            "phase": "Running",
            "attempts": [{"number": 1, "podName": "pod-1", "podUID": POD, "started": "2030-01-01T00:00:01.000000Z"}],
            "sandbox": {"podName": "pod-1", "podUID": POD},
        },
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

/// A run with one inline file, changed by `change`.
pub(crate) fn run(change: impl FnOnce(&mut Value)) -> AgentRun {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1",
        "kind": "AgentRun",
        "metadata": {"name": "run-1", "namespace": "team-a", "uid": RUN, "resourceVersion": "3"},
        "spec": {"files": [{"path": "in.csv", "content": "a,b\n"}]},
        "status": {"phase": "Running", "files": [{"path": "in.csv", "bytes": 4, "sha256": sha("a,b\n")}]},
    });
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

/// A skill `math` with one inline function `add`, changed by `change`.
pub(crate) fn skill(change: impl FnOnce(&mut Value)) -> Skill {
    let mut object = json!({
        "apiVersion": "agentrun.dev/v1alpha1",
        "kind": "Skill",
        "metadata": {"name": "math", "namespace": "team-a", "uid": "skill-uid", "resourceVersion": "5"},
        "spec": {"inline": {"files": [
            {"path": "functions/add.py", "content": "def run(i): return 1\n"},
            {"path": "SKILL.md", "content": "# math"},
        ]}},
        "status": {
            "functions": [{"name": "add", "file": "functions/add.py", "maxMemoryMb": 64, "timeoutSec": 5}],
        },
    });
    let files = agentrun_core::skill::digest(&crate::skills::contents(
        &serde_json::from_value(object.clone()).unwrap(),
        None,
    ));
    object["status"]["digest"] = json!(files);
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

pub(crate) fn sha(text: &str) -> String {
    agentrun_core::digest::sha256_hex(text.as_bytes())
}

/// An answer of the scripted API server.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn ok(object: &impl serde::Serialize) -> Self {
        Self {
            code: 200,
            body: json!(object),
        }
    }

    /// A refusal as the API server writes it.
    pub(crate) fn refusal(code: u16) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
            "message": format!("scripted {code}"), "reason": if code == 404 { "NotFound" } else { "Scripted" },
        });
        Self { code, body }
    }
}

/// A request that the scripted API server got.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Value,
}

/// An API server that answers each `METHOD path` from its own script; the last answer repeats. Watches have `?watch`
/// behind their path, and end after their answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Api {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    scripts: BTreeMap<String, Vec<Answer>>,
    seen: Vec<Seen>,
}

impl Api {
    /// Adds answers for one request line.
    pub(crate) fn on(self, line: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.state
            .lock()
            .unwrap()
            .scripts
            .entry(line.to_owned())
            .or_default()
            .extend(answers);
        self
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// The bodies of the patches so far.
    pub(crate) fn patches(&self) -> Vec<Value> {
        let seen = self.seen().into_iter();
        seen.filter(|seen| seen.method == Method::PATCH)
            .map(|seen| seen.body)
            .collect()
    }

    fn answer(&self, seen: Seen) -> Answer {
        let mut state = self.state.lock().unwrap();
        let line = format!("{} {}", seen.method, seen.path);
        state.seen.push(seen);
        match state.scripts.get_mut(&line) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers.first().cloned().unwrap_or_else(|| Answer::refusal(404)),
            None => Answer::refusal(404),
        }
    }

    /// A gateway on top of this API server, with every watch synced and nothing on its board.
    pub(crate) fn gateway(&self) -> Arc<Gateway> {
        let gateway = Gateway::new(
            self.client(),
            Metrics::new().unwrap(),
            Models::new(Patience::default(), None),
        );
        gateway.health.certificate_loaded();
        for watch in crate::health::Watch::ALL {
            gateway.health.watch_synced(watch);
        }
        gateway
    }

    pub(crate) fn client(&self) -> kube::Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let api = api.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let watches = parts
                    .uri
                    .query()
                    .is_some_and(|query| query.contains("watch=true"));
                let path = format!("{}{}", parts.uri.path(), if watches { "?watch" } else { "" });
                let seen = Seen {
                    method: parts.method,
                    path,
                    body,
                };
                let answer = api.answer(seen);
                let body = Full::new(Bytes::from(answer.body.to_string()));
                Ok::<_, kube::Error>(Response::builder().status(answer.code).body(body).unwrap())
            }
        });
        kube::Client::new(service, "default")
    }
}

/// The request lines of the one sub-task.
pub(crate) const GET_TASK: &str = "GET /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks/st-1";
pub(crate) const LIST_TASKS: &str = "GET /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks";
pub(crate) const PATCH_TASK: &str =
    "PATCH /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks/st-1/status";
