//! The gateway's public HTTP API on a real API server: tokens, rights, strict schemas and watches are the server's own.

use crate::operator::Life;
use agentrun_api::{Skill, SkillStatus};
use agentrun_testkit::cluster::Namespace;
use agentrun_testkit::faults::Faults;
use agentrun_testkit::stage::{Ending, Stage};
use clap::Parser;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{Api, PostParams};
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    settings: agentrun_gateway::Settings,
}

/// An operator and a gateway that serve one namespace.
struct Served {
    namespace: Namespace,
    address: SocketAddr,
    life: Life,
    gateway: JoinHandle<Result<(), agentrun_gateway::GatewayError>>,
    stop: CancellationToken,
    _stage: Stage,
    _certificate: tempfile::TempDir,
}

fn script(task: &str, _: i32) -> Option<Ending> {
    match task {
        "long" => None,
        "bad" => Ending::failure(),
        _ => Ending::success(json!({"n": 1})),
    }
}

impl Served {
    async fn start() -> Self {
        let namespace = Namespace::new("api").await;
        let stage = Stage::start(&namespace, script).await;
        let life = Life::start(&namespace, &Faults::none());
        let certificate = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["agentrun-gateway".to_owned()]).unwrap();
        std::fs::write(certificate.path().join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(
            certificate.path().join("tls.key"),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
        let address = free();
        let tls = certificate.path().to_string_lossy().into_owned();
        let arguments = Arguments::parse_from([
            "gateway",
            "--channel-address=127.0.0.1:0",
            "--canary-address=127.0.0.1:0",
            "--ops-address=127.0.0.1:0",
            &format!("--tls-dir={tls}"),
            &format!("--api-address={address}"),
            &format!("--api-namespace={}", namespace.name),
        ]);
        let stop = CancellationToken::new();
        let (client, stopped) = (namespace.client.clone(), stop.clone());
        let gateway = tokio::spawn(async move {
            agentrun_gateway::run_with(client, arguments.settings, stopped.cancelled()).await
        });
        let served = Self {
            namespace,
            address,
            life,
            gateway,
            stop,
            _stage: stage,
            _certificate: certificate,
        };
        let ready = async || (served.ask("GET", "/ready", "", "", "").await.0 == 200).then_some(());
        served
            .namespace
            .wait_for("a ready gateway", PATIENCE, ready)
            .await;
        served
    }

    /// Sends one request, and returns status and body as text when the server closes.
    async fn text(&self, method: &str, path: &str, token: &str, headers: &str, body: &str) -> (u16, String) {
        let asking = async {
            let mut socket = TcpStream::connect(self.address).await.ok()?;
            let length = body.len();
            let request = format!(
                "{method} {path} HTTP/1.0\r\nauthorization: Bearer {token}\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
            );
            socket.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            socket.read_to_string(&mut answer).await.ok()?;
            let (head, body) = answer.split_once("\r\n\r\n")?;
            let status = head.split(' ').nth(1)?.parse().ok()?;
            Some((status, body.to_owned()))
        };
        let answer = tokio::time::timeout(PATIENCE, asking).await;
        answer.expect("no answer in time").unwrap_or_default()
    }

    async fn ask(&self, method: &str, path: &str, token: &str, headers: &str, body: &str) -> (u16, Value) {
        let (status, text) = self.text(method, path, token, headers, body).await;
        (status, serde_json::from_str(&text).unwrap_or_default())
    }

    /// The events of a task, to its end.
    async fn events(&self, id: &str, token: &str) -> Vec<Value> {
        let (status, text) = self
            .text("GET", &format!("/api/tasks/{id}/stream"), token, "", "")
            .await;
        assert_eq!(status, 200, "{text}");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    async fn make<K>(&self, object: Value) -> K
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + DeserializeOwned,
    {
        self.namespace
            .create(&serde_json::from_value(object).unwrap())
            .await
    }

    /// A token of an account of the namespace.
    async fn token(&self, account: &str, audience: &str) -> String {
        let api: Api<ServiceAccount> = self.namespace.api();
        let request = TokenRequest {
            spec: TokenRequestSpec {
                audiences: vec![audience.to_owned()],
                ..TokenRequestSpec::default()
            },
            ..TokenRequest::default()
        };
        let made = api
            .create_token_request(account, &PostParams::default(), &request)
            .await;
        made.unwrap().status.unwrap().token
    }

    async fn end(self) {
        self.stop.cancel();
        self.gateway.await.unwrap().unwrap();
        self.life.end().await;
        self.namespace.give_back().await;
    }
}

/// An address that nobody listens on.
fn free() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

fn plan(tasks: &Value) -> String {
    json!({"spec": {"tasks": tasks}}).to_string()
}

fn task(name: &str) -> Value {
    json!({"name": name, "command": {"argv": ["true"]}})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_make_follow_cancel_and_call_what_kubernetes_lets_them() {
    let served = Served::start().await;
    for account in ["caller", "stranger"] {
        served
            .make::<ServiceAccount>(json!({"metadata": {"name": account}}))
            .await;
    }
    let rules = json!([{"apiGroups": ["agentrun.dev"], "resources": ["agentruns"], "verbs": ["create", "get", "list", "update"]}]);
    served
        .make::<Role>(json!({"metadata": {"name": "runs"}, "rules": rules}))
        .await;
    let namespace = served.namespace.name.clone();
    let binding = json!({
        "metadata": {"name": "runs"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "runs"},
        "subjects": [{"kind": "ServiceAccount", "name": "caller", "namespace": namespace}],
    });
    served.make::<RoleBinding>(binding).await;
    let caller = served.token("caller", "agentrun-api").await;
    let allowed = async || (served.ask("GET", "/api/tasks", &caller, "", "").await.0 == 200).then_some(());
    served.namespace.wait_for("the role", PATIENCE, allowed).await;

    refusals(&served, &caller).await;
    tasks(&served, &caller).await;
    calls(&served, &caller).await;
    served.end().await;
}

async fn refusals(served: &Served, caller: &str) {
    let channel = served.token("caller", "agentrun-gateway").await;
    let stranger = served.token("stranger", "agentrun-api").await;
    let good = plan(&json!([task("a")]));
    for (token, status, code) in [
        ("x.y.z", 401, "Unauthenticated"),
        (&channel, 401, "Unauthenticated"),
        (&stranger, 403, "Forbidden"),
    ] {
        let answer = served.ask("POST", "/api/tasks", token, "", &good).await;
        assert_eq!(
            (answer.0, &answer.1["error"]["code"]),
            (status, &json!(code)),
            "{}",
            answer.1
        );
    }
    let elsewhere = served
        .ask("GET", "/api/namespaces/kube-system/tasks", caller, "", "")
        .await;
    assert_eq!(elsewhere.0, 403, "{}", elsewhere.1);
    let misspelt = json!({"spec": {"tasks": [task("a")], "limit": {}}}).to_string();
    let bad = json!({"spec": {"tasks": [task("A b")]}}).to_string();
    for (body, cause) in [
        (misspelt, "unknown field \"spec.limit\""),
        (bad, "spec.tasks[0].name"),
    ] {
        let answer = served.ask("POST", "/api/tasks", caller, "", &body).await;
        assert_eq!(
            (answer.0, &answer.1["error"]["code"]),
            (422, &json!("Invalid")),
            "{}",
            answer.1
        );
        let message = answer.1["error"]["message"].as_str().unwrap();
        assert!(message.contains(cause), "{message}");
    }
    let made = served.namespace.list::<agentrun_api::AgentRun>().await;
    assert!(made.is_empty());
}

async fn tasks(served: &Served, caller: &str) {
    let mut after = task("after");
    after["dependsOn"] = json!([{"task": "first"}]);
    let body = plan(&json!([task("first"), after]));
    let key = "idempotency-key: one\r\n";
    let made = served.ask("POST", "/api/tasks", caller, key, &body).await;
    assert_eq!(made.0, 202, "{}", made.1);
    let id = made.1["task_id"].as_str().unwrap();
    let events = served.events(id, caller).await;
    let ends: Vec<_> = events
        .iter()
        .filter(|event| event["status"] == "task_completed")
        .map(|event| &event["name"])
        .collect();
    assert_eq!(ends, ["first", "after"]);
    assert_eq!(events[0]["type"], "plan");
    assert_eq!(
        events[0]["steps"][1],
        json!({"name": "after", "kind": "command", "depends_on": ["first"]})
    );
    let done = json!({"type": "done", "status": "Succeeded", "outputs": {"n": 1}});
    assert_eq!(events.last(), Some(&done));
    assert_eq!(
        served.events(id, caller).await,
        events,
        "a late reader hears the same"
    );
    assert_eq!(
        served.ask("POST", "/api/tasks", caller, key, &body).await.1["task_id"],
        id
    );
    assert_eq!(
        served
            .ask("POST", "/api/tasks", caller, key, &plan(&json!([task("b")])))
            .await
            .0,
        409
    );
    let shown = served
        .ask("GET", &format!("/api/tasks/{id}"), caller, "", "")
        .await
        .1;
    assert_eq!(
        (&shown["status"], &shown["plan"][0]["subtasks"][0]["outcome"]),
        (&json!("Succeeded"), &json!("Success"))
    );
    let user = format!("system:serviceaccount:{}:caller", served.namespace.name);
    assert_eq!(shown["user"], user);

    let long = served
        .ask(
            "POST",
            "/api/tasks",
            caller,
            "",
            &plan(&json!([task("long"), task("bad")])),
        )
        .await
        .1;
    let id = long["task_id"].as_str().unwrap();
    let following = served.events(id, caller);
    let cancelling = async {
        let running = async || {
            let shown = served
                .ask("GET", &format!("/api/tasks/{id}"), caller, "", "")
                .await
                .1;
            let ended = shown["plan"]
                .as_array()?
                .iter()
                .find(|step| step["name"] == "bad")?["subtasks"][0]["outcome"]
                == "Error";
            ended.then_some(())
        };
        served
            .namespace
            .wait_for("the failing half", PATIENCE, running)
            .await;
        served
            .ask("POST", &format!("/api/tasks/{id}/cancel"), caller, "", "")
            .await
    };
    let (events, cancelled) = tokio::join!(following, cancelling);
    assert_eq!(cancelled.0, 202, "{}", cancelled.1);
    let status_of =
        |name: &str| events.iter().rfind(|event| event["name"] == name).unwrap()["status"].clone();
    assert_eq!(
        (status_of("long"), status_of("bad")),
        (json!("task_cancelled"), json!("task_failed"))
    );
    assert_eq!(events.last().unwrap()["status"], "Cancelled");
    let listed = served.ask("GET", "/api/tasks?limit=1", caller, "", "").await.1;
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1);
    let next = listed["continue"].as_str().unwrap();
    let rest = served
        .ask("GET", &format!("/api/tasks?continue={next}"), caller, "", "")
        .await
        .1;
    assert_eq!(rest["tasks"].as_array().unwrap().len(), 1, "{rest}");
}

async fn calls(served: &Served, caller: &str) {
    let functions = "functions:\n- {name: call, max_memory_mb: 64, timeout_sec: 5}\n";
    let skill = json!({"metadata": {"name": "math"}, "spec": {"inline": {"files": [
        {"path": "SKILL.md", "content": "---\nname: math\ndescription: Adds.\n---\n"},
        {"path": "functions.yaml", "content": functions},
        {"path": "functions/call.py", "content": "def run(i): return i\n"},
    ]}}});
    served.make::<Skill>(skill).await;
    let read = async || {
        let skills = served.namespace.list::<Skill>().await;
        let status: SkillStatus = skills.into_iter().next()?.status?;
        (!status.functions.is_empty()).then_some(())
    };
    served
        .namespace
        .wait_for("the skill's functions", PATIENCE, read)
        .await;
    let path = "/api/flow/math/call?timeout=50s&envelope=true";
    let answered = async || {
        let answer = served.ask("POST", path, caller, "", "{\"a\": null}").await;
        // The gateway's own watch of skills may be a moment behind.
        (answer.0 != 404).then_some(answer)
    };
    let answer = served.namespace.wait_for("an answer", PATIENCE, answered).await;
    assert_eq!(
        (answer.0, &answer.1["data"]),
        (200, &json!({"n": 1})),
        "{}",
        answer.1
    );
    assert_eq!(answer.1["envelope"]["status"], "success");
}
