//! An API server for the tests of the public API: it keeps runs and sub-tasks, knows tokens, and who may do what.

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const RUNS: &str = "agentruns";
const SUBTASKS: &str = "subtasks";

/// The server; clones are the same one.
#[derive(Clone, Default)]
pub(super) struct Fake {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<(String, String, String), Value>,
    made: usize,
    asked: Vec<String>,
    down: bool,
}

impl Fake {
    /// Stores an object.
    pub(super) fn put(&self, object: &Value) {
        let kind = if object["kind"] == "AgentRun" {
            RUNS
        } else {
            SUBTASKS
        };
        self.state
            .lock()
            .unwrap()
            .objects
            .insert(key(kind, object), object.clone());
    }

    /// Takes a run away.
    pub(super) fn remove_run(&self, namespace: &str, name: &str) {
        let key = (RUNS.to_owned(), namespace.to_owned(), name.to_owned());
        self.state.lock().unwrap().objects.remove(&key);
    }

    /// All runs.
    pub(super) fn runs(&self) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let runs = state.objects.iter().filter(|((kind, ..), _)| kind == RUNS);
        runs.map(|(_, run)| run.clone()).collect()
    }

    /// How often something that begins so was asked.
    pub(super) fn asked(&self, prefix: &str) -> usize {
        let state = self.state.lock().unwrap();
        state.asked.iter().filter(|line| line.starts_with(prefix)).count()
    }

    /// From now on it answers nothing, or everything again.
    pub(super) fn is_down(&self, down: bool) {
        self.state.lock().unwrap().down = down;
    }

    pub(super) fn client(&self) -> kube::Client {
        let fake = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let fake = fake.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
                let (code, answer) = fake.answer(&parts.method, &parts.uri, body);
                let answer = Full::new(Bytes::from(answer.to_string()));
                Ok::<_, kube::Error>(Response::builder().status(code).body(answer).unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn answer(&self, method: &Method, uri: &http::Uri, body: Value) -> (u16, Value) {
        let mut state = self.state.lock().unwrap();
        state.asked.push(format!("{method} {}", uri.path()));
        if state.down {
            return refusal(503, "the server is down");
        }
        let query: BTreeMap<_, _> = uri
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let parts: Vec<_> = uri.path().trim_start_matches('/').split('/').collect();
        match (method.as_str(), parts.as_slice()) {
            ("POST", ["apis", "authentication.k8s.io", "v1", "tokenreviews"]) => (201, token_review(body)),
            ("POST", ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews"]) => {
                (201, access_review(body))
            }
            ("POST", ["apis", "agentrun.dev", "v1alpha1", "namespaces", namespace, RUNS]) => {
                assert_eq!(query.get("fieldValidation"), Some(&"Strict"));
                state.create(namespace, body)
            }
            ("GET", ["apis", "agentrun.dev", "v1alpha1", "namespaces", namespace, kind]) => {
                state.list(namespace, kind, &query)
            }
            ("GET", [_, _, _, _, namespace, kind, name]) => {
                let key = ((*kind).to_owned(), (*namespace).to_owned(), (*name).to_owned());
                state
                    .objects
                    .get(&key)
                    .map_or_else(|| refusal(404, "not found"), |it| (200, it.clone()))
            }
            ("PATCH", [_, _, _, _, namespace, kind, name]) => {
                let key = ((*kind).to_owned(), (*namespace).to_owned(), (*name).to_owned());
                let Some(object) = state.objects.get_mut(&key) else {
                    return refusal(404, "not found");
                };
                json_patch::merge(object, &body);
                (200, object.clone())
            }
            _ => refusal(404, "no such path"),
        }
    }
}

impl State {
    fn create(&mut self, namespace: &str, mut run: Value) -> (u16, Value) {
        let spec = &run["spec"];
        if spec.get("nonsense").is_some() {
            return refusal(400, "strict decoding error: unknown field \"spec.nonsense\"");
        }
        if !spec["userData"].is_object() {
            return refusal(422, "spec.userData in body must be of type object");
        }
        self.made += 1;
        if let Some(prefix) = run["metadata"]["generateName"].as_str() {
            run["metadata"]["name"] = json!(format!("{prefix}{:05}", self.made));
        }
        run["metadata"]["namespace"] = json!(namespace);
        run["metadata"]["uid"] = json!(format!("uid-{}", self.made));
        run["metadata"]["resourceVersion"] = json!(self.made.to_string());
        run["metadata"]["creationTimestamp"] = json!("2030-01-01T00:00:00Z");
        let key = key(RUNS, &run);
        if self.objects.contains_key(&key) {
            return refusal(409, "already exists");
        }
        self.objects.insert(key, run.clone());
        (201, run)
    }

    fn list(&self, namespace: &str, kind: &str, query: &BTreeMap<&str, &str>) -> (u16, Value) {
        let label = query
            .get("labelSelector")
            .map(|label| label.replace("%3D", "=").replace("%2F", "/"));
        let wanted = label
            .as_deref()
            .and_then(|label| label.strip_prefix("agentrun.dev/run-uid="));
        let after = query.get("continue").copied().unwrap_or_default();
        if after == "old" {
            return refusal(410, "the provided continue parameter is too old");
        }
        let most: usize = query
            .get("limit")
            .map_or(usize::MAX, |limit| limit.parse().unwrap());
        let mut found: Vec<_> = self
            .objects
            .iter()
            .filter(|((its_kind, its_namespace, name), object)| {
                let matches =
                    wanted.is_none_or(|uid| object["metadata"]["labels"]["agentrun.dev/run-uid"] == uid);
                its_kind == kind && its_namespace == namespace && name.as_str() > after && matches
            })
            .collect();
        let more = found.len() > most;
        found.truncate(most);
        let next = found
            .last()
            .filter(|_| more)
            .map(|((_, _, name), _)| name.clone());
        let items: Vec<_> = found.into_iter().map(|(_, object)| object).collect();
        let list = json!({
            "apiVersion": "agentrun.dev/v1alpha1", "kind": "List",
            "metadata": {"resourceVersion": "1", "continue": next}, "items": items,
        });
        (200, list)
    }
}

fn key(kind: &str, object: &Value) -> (String, String, String) {
    let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
    (kind.to_owned(), text("namespace"), text("name"))
}

/// Tokens are names of users; some are bad in their own way.
fn token_review(review: Value) -> Value {
    assert_eq!(review["spec"]["audiences"], json!(["agentrun-api"]));
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    let status = match token.as_str() {
        "expired" => json!({"authenticated": false, "error": "[invalid bearer token, token has expired]"}),
        // What an API server says of a token for the gateway's channel.
        "channel" => {
            json!({"authenticated": false, "error": "token audiences [\"agentrun-gateway\"] is invalid for the target audiences [\"agentrun-api\"]"})
        }
        "unaware" => json!({"authenticated": true, "user": {"username": "lena"}}),
        "nobody" => json!({"authenticated": true, "audiences": ["agentrun-api"], "user": {}}),
        user => json!({
            "authenticated": true, "audiences": ["agentrun-api"],
            "user": {"username": user, "groups": ["system:authenticated"], "extra": {"scopes": ["s"]}},
        }),
    };
    let mut review = review;
    review["status"] = status;
    review
}

/// `lena` and `max` may do everything in `team-a`, `viewer` may read there.
fn access_review(review: Value) -> Value {
    let spec = &review["spec"];
    assert_eq!(spec["groups"], json!(["system:authenticated"]));
    assert_eq!(spec["extra"], json!({"scopes": ["s"]}));
    let asked = &spec["resourceAttributes"];
    assert_eq!(
        (&asked["group"], &asked["resource"]),
        (&json!("agentrun.dev"), &json!("agentruns"))
    );
    let reads = ["get", "list"].contains(&asked["verb"].as_str().unwrap());
    let allowed = match spec["user"].as_str().unwrap() {
        "lena" | "max" => asked["namespace"] == "team-a",
        "viewer" => asked["namespace"] == "team-a" && reads,
        _ => false,
    };
    let mut review = review;
    review["status"] = json!({"allowed": allowed});
    review
}

fn refusal(code: u16, message: &str) -> (u16, Value) {
    let reason = match code {
        404 => "NotFound",
        409 => "AlreadyExists",
        _ => "Scripted",
    };
    let body = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message, "reason": reason,
    });
    (code, body)
}
