//! The channel over loopback TLS, with a scripted runtime on the other side.

use crate::auth::{AuthError, PodIdentity, Reviewer};
use crate::fixtures::{Answer, Api, GET_TASK, PATCH_TASK, POD, RUN, TASK, run, sha, subtask};
use crate::gateway::Gateway;
use crate::{server, tls};
use agentrun_protocol::Blob;
use agentrun_protocol::channel::{MAX_MODEL_REQUEST, PATH, Refusal, TLS_NAME, ToGateway, ToRuntime};
use agentrun_protocol::chat::{ModelAnswer, ModelFailure, ModelFailureCode};
use agentrun_protocol::frame::{self, Decoder, MAX_BLOB, MAX_FRAME};
use agentrun_protocol::result::AttemptResult;
use agentrun_protocol::version::{CURRENT, Version};
use agentrun_protocol::work::{Assignment, AttemptId};
use agentrun_testkit::openai::{Answer as Said, Scenario, Scripted as Endpoint};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::json;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(10);

/// Tokens are names of Pod UIDs; `bad` is none, and `down` is an API server that does not answer.
struct Scripted;

impl Reviewer for Scripted {
    async fn review(&self, token: &str) -> Result<PodIdentity, AuthError> {
        match token {
            "bad" => Err(AuthError::Rejected("the token is refused".into())),
            "down" => {
                let error = std::io::Error::other("no API server");
                Err(AuthError::Unavailable(Box::new(kube::Error::Service(Box::new(
                    error,
                )))))
            }
            uid => Ok(PodIdentity {
                namespace: "team-a".into(),
                name: "pod-1".into(),
                uid: uid.into(),
            }),
        }
    }
}

pub(crate) struct Server {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) address: SocketAddr,
    authority: CertificateDer<'static>,
    pub(crate) authority_pem: String,
    _folder: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start(api: &Api) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed([TLS_NAME.to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        let certificate = tls::Certificate::wait_for(folder.path().to_owned()).await;
        let config = Arc::new(tls::server_config(certificate).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = api.gateway();
        tokio::spawn(server::serve(
            listener,
            config,
            16,
            Arc::new(Scripted),
            Arc::clone(&gateway),
        ));
        Self {
            gateway,
            address,
            authority: made.cert.der().clone(),
            authority_pem: made.cert.pem(),
            _folder: folder,
        }
    }

    /// A server that has seen one run and its one assigned sub-task.
    async fn with_work(api: &Api) -> Self {
        let server = Self::start(api).await;
        server.gateway.change(|board| board.put_run(run(|_| ())));
        server.gateway.change(|board| board.put_subtask(subtask(|_| ())));
        server
    }

    /// Opens a channel and returns the answer with the sender of the request's body.
    async fn open(&self, token: &str) -> (Response<Incoming>, mpsc::Sender<Bytes>) {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.authority.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from(TLS_NAME).unwrap();
        let socket = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
            .unwrap();
        let (mut http, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .unwrap();
        tokio::spawn(connection);
        let (sender, mut queue) = mpsc::channel::<Bytes>(8);
        let next = move |cx: &mut std::task::Context<'_>| {
            queue
                .poll_recv(cx)
                .map(|bytes| bytes.map(|bytes| Ok::<_, Infallible>(Frame::data(bytes))))
        };
        let request = Request::post(PATH)
            .header("authorization", format!("Bearer {token}"))
            .body(StreamBody::new(futures::stream::poll_fn(next)))
            .unwrap();
        (within(http.send_request(request)).await.unwrap(), sender)
    }

    /// A runtime that said hello and was welcomed.
    async fn runtime(&self) -> Runtime {
        let mut runtime = self.stranger(POD).await;
        runtime.say(&hello(CURRENT)).await;
        assert_eq!(runtime.hear().await, ToRuntime::Welcome { protocol: CURRENT });
        runtime
    }

    /// A runtime that took attempt 1 from a gateway before this one.
    async fn resumed(&self) -> Runtime {
        let mut runtime = self.stranger(POD).await;
        let mut hello = hello(CURRENT);
        if let ToGateway::Hello { running, .. } = &mut hello {
            *running = Some(id(1));
        }
        runtime.say(&hello).await;
        assert_eq!(runtime.hear().await, ToRuntime::Welcome { protocol: CURRENT });
        runtime
    }

    /// A runtime that has said nothing yet.
    async fn stranger(&self, token: &str) -> Runtime {
        let (response, sender) = self.open(token).await;
        assert_eq!(response.status(), 200);
        Runtime {
            sender,
            body: response.into_body(),
            decoder: Decoder::default(),
        }
    }
}

struct Runtime {
    sender: mpsc::Sender<Bytes>,
    body: Incoming,
    decoder: Decoder,
}

impl Runtime {
    async fn say(&self, message: &ToGateway) {
        self.sender
            .send(frame::encode(message).unwrap().into())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> ToRuntime {
        within(self.next()).await.expect("the stream ended")
    }

    async fn next(&mut self) -> Option<ToRuntime> {
        loop {
            if let Some(message) = self.decoder.next().unwrap() {
                return Some(message);
            }
            let frame = self.body.frame().await?.ok()?;
            self.decoder.push(frame.data_ref()?);
        }
    }

    async fn assigned(&mut self) -> Assignment {
        match self.hear().await {
            ToRuntime::Assign(assignment) => *assignment,
            other => panic!("expected an assignment, heard {other:?}"),
        }
    }

    async fn report(&self, attempt: i32) {
        let result = json!({
            "ending": "Success", "reason": "Completed", "timing": {"startMs": 1, "runMs": 2},
            "usage": {"peakMemoryBytes": 1, "cpuMs": 1}, "processTreeEmpty": true,
        });
        let result: AttemptResult = serde_json::from_value(result).unwrap();
        self.say(&ToGateway::Result {
            id: id(attempt),
            result: Box::new(result),
        })
        .await;
    }
}

pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("nothing happened in time")
}

fn hello(protocol: Version) -> ToGateway {
    ToGateway::Hello {
        protocol,
        runtime_digest: "sha256:0".into(),
        running: None,
    }
}

fn id(attempt: i32) -> AttemptId {
    AttemptId {
        uid: TASK.into(),
        attempt,
    }
}

#[tokio::test]
async fn an_old_protocol_is_refused_as_version_skew() {
    let server = Server::start(&Api::default()).await;
    let mut runtime = server.stranger(POD).await;
    runtime.say(&hello(Version { major: 0, minor: 9 })).await;
    let ToRuntime::Refused { code, message } = runtime.hear().await else {
        panic!()
    };
    assert_eq!(code, Refusal::VersionSkew);
    assert!(message.contains("0.9"), "{message}");
    assert_eq!(within(runtime.next()).await, None);
}

#[tokio::test]
async fn a_bad_token_is_unauthenticated_and_a_silent_api_server_is_not() {
    let server = Server::start(&Api::default()).await;
    let (response, _sender) = server.open("bad").await;
    assert_eq!(response.status(), 401);
    let mut decoder = Decoder::default();
    decoder.push(&response.into_body().collect().await.unwrap().to_bytes());
    let refused = decoder.next().unwrap();
    assert!(
        matches!(
            refused,
            Some(ToRuntime::Refused {
                code: Refusal::Unauthenticated,
                ..
            })
        ),
        "{refused:?}"
    );
    assert_eq!(server.open("").await.0.status(), 401);
    assert_eq!(server.open("down").await.0.status(), 503);
}

#[tokio::test]
async fn work_is_assigned_stored_and_acknowledged() {
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::with_work(&api).await;
    let mut runtime = server.runtime().await;
    assert_eq!(runtime.assigned().await.id, id(1));
    runtime.say(&ToGateway::Taken(id(1))).await;
    runtime.report(1).await;
    assert_eq!(runtime.hear().await, ToRuntime::Ack(id(1)));
    let patch = api.patches()[0].to_string();
    assert!(patch.contains("\"/status/outcome\""), "{patch}");
    assert_eq!(
        server
            .gateway
            .metrics
            .results
            .with_label_values(&["Success"])
            .get(),
        1
    );
}

#[tokio::test]
async fn work_that_comes_later_wakes_the_stream() {
    let server = Server::start(&Api::default()).await;
    let mut runtime = server.runtime().await;
    server.gateway.change(|board| board.put_subtask(subtask(|_| ())));
    server.gateway.change(|board| board.put_run(run(|_| ())));
    assert_eq!(runtime.assigned().await.id, id(1));
}

#[tokio::test]
async fn the_same_work_is_assigned_again_after_a_reconnect_and_the_older_stream_is_superseded() {
    let server = Server::with_work(&Api::default()).await;
    let mut first = server.runtime().await;
    let before = first.assigned().await;
    let mut second = server.runtime().await;
    assert_eq!(second.assigned().await.id, before.id);
    let refused = first.hear().await;
    assert!(
        matches!(
            refused,
            ToRuntime::Refused {
                code: Refusal::Superseded,
                ..
            }
        ),
        "{refused:?}"
    );
    assert_eq!(within(first.next()).await, None);
}

#[tokio::test]
async fn work_of_another_pod_is_not_handed_out() {
    let server = Server::with_work(&Api::default()).await;
    let mut other = server.stranger("another-pod").await;
    other.say(&hello(CURRENT)).await;
    assert_eq!(other.hear().await, ToRuntime::Welcome { protocol: CURRENT });
    other.say(&ToGateway::Ping).await;
    assert_eq!(other.hear().await, ToRuntime::Pong);
}

#[tokio::test]
async fn a_cancelled_run_cancels_what_runs() {
    let server = Server::with_work(&Api::default()).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    let cancelled = run(|o| o["status"]["cancelRequestedAt"] = json!("2030-01-01T00:00:00Z"));
    server.gateway.change(|board| board.put_run(cancelled));
    assert_eq!(
        runtime.hear().await,
        ToRuntime::Cancel {
            id: id(1),
            grace_ms: 5000
        }
    );
}

#[tokio::test]
async fn work_that_the_object_gives_to_nobody_any_more_is_cancelled_when_a_runtime_still_has_it() {
    let ended = subtask(|o| o["status"]["outcome"] = json!("Timeout"));
    let api = Api::default().on(GET_TASK, [Answer::ok(&ended)]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| board.put_subtask(ended));
    let mut runtime = server.runtime().await;
    runtime.say(&ToGateway::Taken(id(1))).await;
    assert_eq!(
        runtime.hear().await,
        ToRuntime::Cancel {
            id: id(1),
            grace_ms: 5000
        }
    );
}

#[tokio::test]
async fn work_that_a_runtime_brings_along_goes_on_although_its_assignment_cannot_be_made_again() {
    let unassignable = |o: &mut serde_json::Value| {
        o["spec"]["command"] = json!(null);
        o["spec"]["agent"] = json!({"prompt": "hello"});
    };
    let api = Api::default()
        .on(GET_TASK, [Answer::ok(&subtask(unassignable))])
        .on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        board.put_run(run(|_| ()));
        board.put_subtask(subtask(unassignable))
    });
    let mut runtime = server.resumed().await;
    runtime.say(&ToGateway::Ping).await;
    assert_eq!(runtime.hear().await, ToRuntime::Pong);
    runtime.report(1).await;
    assert_eq!(runtime.hear().await, ToRuntime::Ack(id(1)));
    let patches = api.patches();
    assert_eq!(patches.len(), 1, "{patches:?}");
    assert!(patches[0].to_string().contains("Completed"), "{patches:?}");
}

#[tokio::test]
async fn work_that_a_runtime_brings_along_and_that_is_over_is_cancelled() {
    let over = subtask(|o| o["status"]["outcome"] = json!("Error"));
    let server = Server::start(&Api::default().on(GET_TASK, [Answer::ok(&over)])).await;
    server.gateway.change(|board| board.put_subtask(over));
    let mut runtime = server.resumed().await;
    assert!(matches!(runtime.hear().await, ToRuntime::Cancel { .. }));
}

#[tokio::test]
async fn contents_of_the_assignment_are_served_and_no_others() {
    let server = Server::with_work(&Api::default()).await;
    let mut runtime = server.runtime().await;
    let known = sha("a,b\n");
    runtime.assigned().await;
    runtime
        .say(&ToGateway::Get {
            sha256: known.clone(),
        })
        .await;
    let ToRuntime::Chunk {
        sha256,
        offset: 0,
        last: true,
        data,
    } = runtime.hear().await
    else {
        panic!()
    };
    assert_eq!((sha256, data.0), (known, b"a,b\n".to_vec()));
    let unknown = sha("secret");
    runtime
        .say(&ToGateway::Get {
            sha256: unknown.clone(),
        })
        .await;
    let missing = runtime.hear().await;
    assert!(
        matches!(&missing, ToRuntime::Missing { sha256, .. } if *sha256 == unknown),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_content_that_changed_since_admission_is_missing() {
    let server = Server::start(&Api::default()).await;
    let old = sha("old");
    server.gateway.change(|board| {
        board.put_run(run(|o| o["status"]["files"][0]["sha256"] = json!(old)));
        board.put_subtask(subtask(|_| ()))
    });
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.say(&ToGateway::Get { sha256: old }).await;
    let missing = runtime.hear().await;
    assert!(
        matches!(&missing, ToRuntime::Missing { message, .. } if message.contains("changed")),
        "{missing:?}"
    );
}

#[tokio::test]
async fn a_config_map_file_is_read_and_checked() {
    let config_map = json!({"metadata": {"name": "c"}, "data": {"k": "a,b\n"}});
    let api = Api::default().on(
        "GET /api/v1/namespaces/team-a/configmaps/c",
        [Answer::ok(&config_map)],
    );
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        let files = json!([{"path": "in.csv", "configMapKeyRef": {"name": "c", "key": "k"}}]);
        board.put_run(run(|o| o["spec"]["files"] = files));
        board.put_subtask(subtask(|_| ()))
    });
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.say(&ToGateway::Get { sha256: sha("a,b\n") }).await;
    assert!(matches!(
        runtime.hear().await,
        ToRuntime::Chunk { last: true, .. }
    ));
}

#[tokio::test]
async fn a_frame_that_is_too_long_closes_the_stream() {
    let server = Server::start(&Api::default()).await;
    let mut runtime = server.runtime().await;
    let length = u32::try_from(MAX_FRAME + 1).unwrap().to_be_bytes();
    runtime
        .sender
        .send(Bytes::copy_from_slice(&length))
        .await
        .unwrap();
    assert_eq!(within(runtime.next()).await, None);
}

#[tokio::test]
async fn work_that_can_never_run_ends_as_an_error_without_a_runtime_doing_anything() {
    let api = Api::default().on(PATCH_TASK, [Answer::ok(&subtask(|_| ()))]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        board.put_run(run(|_| ()));
        board.put_subtask(subtask(|o| {
            o["spec"]["command"] = json!(null);
        }))
    });
    let runtime = server.runtime().await;
    within(async {
        while api.patches().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let patch = api.patches()[0].to_string();
    assert!(
        patch.contains("needs exactly one of function, command and agent"),
        "{patch}"
    );
    drop(runtime);
}

#[tokio::test]
async fn a_gateway_that_stops_closes_its_streams_and_takes_no_more() {
    let server = Server::start(&Api::default()).await;
    let mut runtime = server.runtime().await;
    server.gateway.stop.cancel();
    assert_eq!(within(runtime.next()).await, None);
    server.gateway.tasks.close();
    drop(runtime);
    within(server.gateway.tasks.wait()).await;
}

#[tokio::test]
async fn only_the_one_route_is_there() {
    let gateway = Api::default().gateway();
    let ask = |method: &str, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
        let gateway = Arc::clone(&gateway);
        async move {
            crate::channel::handle(gateway, &Scripted, request)
                .await
                .status()
                .as_u16()
        }
    };
    assert_eq!(ask("POST", "/else").await, 404);
    assert_eq!(ask("GET", PATH).await, 405);
    assert_eq!(ask("POST", PATH).await, 401);
    gateway.stop.cancel();
    assert_eq!(ask("POST", PATH).await, 503);
}

/// A server with work whose namespace has one Model, at an endpoint that answers so.
async fn with_model(answers: impl IntoIterator<Item = Said>) -> (Server, Endpoint) {
    let endpoint = Endpoint::start(Scenario::in_order(answers)).await;
    let server = Server::with_work(&Api::default()).await;
    let model = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model",
        "metadata": {"name": "m", "namespace": "team-a", "uid": "m", "generation": 1},
        "spec": {"endpoint": endpoint.endpoint(), "model": "m", "default": true},
    });
    let model = serde_json::from_value(model).unwrap();
    server.gateway.change(|board| board.put_model(model));
    (server, endpoint)
}

fn conversation(text: &str) -> Vec<u8> {
    let request = json!({"role": "lead", "messages": [{"from": "user", "text": text}]});
    request.to_string().into_bytes()
}

impl Runtime {
    /// Asks in pieces of `size` bytes.
    async fn ask(&self, attempt: i32, call: u64, request: &[u8], size: usize) {
        let pieces: Vec<_> = request.chunks(size).collect();
        for (index, piece) in pieces.iter().enumerate() {
            self.say(&ToGateway::ModelCall {
                id: id(attempt),
                call,
                last: index + 1 == pieces.len(),
                data: Blob(piece.to_vec()),
                spent: serde_json::from_value(json!({})).unwrap(),
            })
            .await;
        }
    }

    /// The text that came before the next answer, its call and itself.
    async fn answer(&mut self) -> (String, u64, Result<Box<ModelAnswer>, ModelFailure>) {
        let mut told = String::new();
        loop {
            match self.hear().await {
                ToRuntime::ModelText { text, .. } => told.push_str(&text),
                ToRuntime::ModelAnswer { call, answer, .. } => return (told, call, answer),
                ToRuntime::Assign(_) | ToRuntime::Pong => {}
                other => panic!("expected an answer, heard {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_model_is_asked_in_pieces_and_its_text_can_be_followed() {
    let (server, endpoint) = with_model([Said::text("Fine, thank you.")]).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.ask(1, 7, &conversation("How are you?"), 10).await;
    let (told, call, answer) = runtime.answer().await;
    assert_eq!((call, answer.unwrap().text.as_str()), (7, "Fine, thank you."));
    assert_eq!(told, "Fine, thank you.");
    assert_eq!(endpoint.asked()[0].body["messages"][0]["content"], "How are you?");
}

#[tokio::test]
async fn calls_are_answered_side_by_side_up_to_a_bound() {
    let late = Said {
        delay_ms: 500,
        ..Said::text("late")
    };
    let (server, endpoint) = with_model([late.clone(), Said::text("soon"), late]).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.ask(1, 1, &conversation("first"), MAX_BLOB).await;
    runtime
        .ask(1, 1, &conversation("first, said again"), MAX_BLOB)
        .await;
    while endpoint.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    runtime.ask(1, 2, &conversation("second"), MAX_BLOB).await;
    assert_eq!(runtime.answer().await.1, 2);
    for call in 3..20 {
        runtime.ask(1, call, &conversation("more"), MAX_BLOB).await;
    }
    let mut answered = Vec::new();
    let mut refused = 0;
    for _ in 0..18 {
        let (_, call, answer) = runtime.answer().await;
        answered.push(call);
        refused += usize::from(answer.is_err_and(|failure| failure.message.contains("at once")));
    }
    answered.sort_unstable();
    let expected: Vec<u64> = (1..20).filter(|call| *call != 2).collect();
    assert_eq!(answered, expected, "each is answered once");
    assert_eq!(refused, 10);
}

#[tokio::test]
async fn a_call_of_an_attempt_that_is_elsewhere_is_refused_and_ended() {
    let (server, endpoint) = with_model([Said::text("never")]).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.ask(2, 1, &conversation("let me in"), MAX_BLOB).await;
    let failure = loop {
        match within_long(runtime.next()).await.unwrap() {
            ToRuntime::ModelAnswer { answer, .. } => break answer.unwrap_err(),
            ToRuntime::Cancel { .. } => {}
            other => panic!("heard {other:?}"),
        }
    };
    assert_eq!(failure.code, ModelFailureCode::Refused);
    assert!(endpoint.asked().is_empty());
}

async fn within_long<T>(future: impl Future<Output = T>) -> T {
    let patience = PATIENCE * 3;
    tokio::time::timeout(patience, future)
        .await
        .expect("nothing happened in time")
}

#[tokio::test]
async fn a_conversation_longer_than_the_bound_is_refused_once_and_the_stream_goes_on() {
    let (server, endpoint) = with_model([Said::text("Fine.")]).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    let long = conversation(&"x".repeat(MAX_MODEL_REQUEST));
    runtime.ask(1, 1, &long, MAX_BLOB).await;
    let (_, call, answer) = runtime.answer().await;
    assert_eq!(
        (call, answer.unwrap_err().code),
        (1, ModelFailureCode::ContextTooLong)
    );
    runtime.ask(1, 2, b"{\"no\": \"request\"}", MAX_BLOB).await;
    assert_eq!(
        runtime.answer().await.2.unwrap_err().code,
        ModelFailureCode::Refused
    );
    runtime.ask(1, 3, &conversation("short"), MAX_BLOB).await;
    assert_eq!(runtime.answer().await.2.unwrap().text, "Fine.");
    assert_eq!(endpoint.asked().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_given_up_gets_no_answer_and_frees_its_place() {
    let late = Said {
        delay_ms: 60_000,
        ..Said::text("late")
    };
    let (server, endpoint) = with_model([late, Said::text("Fine.")]).await;
    let mut runtime = server.runtime().await;
    runtime.assigned().await;
    runtime.ask(1, 1, &conversation("first"), MAX_BLOB).await;
    while endpoint.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    runtime.say(&ToGateway::ModelCancel { id: id(1), call: 1 }).await;
    runtime.ask(1, 2, &conversation("second"), MAX_BLOB).await;
    assert_eq!(runtime.answer().await.1, 2);
}

const POST_TASK: &str = "POST /apis/agentrun.dev/v1alpha1/namespaces/team-a/subtasks";

fn lead() -> agentrun_api::SubTask {
    subtask(|o| {
        o["metadata"]["name"] = json!(agentrun_core::names::subtask_name(
            "run-1", "lead", RUN, None, None
        ));
        o["spec"]["command"] = json!(null);
        o["spec"]["agent"] = json!({"prompt": "Count."});
        o["spec"]["role"] = json!("Lead");
        o["spec"]["task"] = json!("lead");
    })
}

fn model() -> agentrun_api::Model {
    let object = json!({
        "apiVersion": "agentrun.dev/v1alpha1", "kind": "Model", "metadata": {"name": "m", "namespace": "team-a", "uid": "m"},
        "spec": {"endpoint": "http://models/v1", "model": "m", "default": true},
    });
    serde_json::from_value(object).unwrap()
}

#[tokio::test]
async fn what_an_agent_delegates_is_made_and_its_end_is_told() {
    let api = Api::default().on(POST_TASK, [Answer::ok(&lead())]);
    let server = Server::start(&api).await;
    server.gateway.change(|board| {
        board.put_model(model());
        board.put_run(run(|_| ()));
        board.put_subtask(lead())
    });
    let mut runtime = server.runtime().await;
    assert!(matches!(
        runtime.assigned().await.work,
        agentrun_protocol::work::Work::Agent(_)
    ));
    let ask = json!({"turn": 1, "call": 0, "agent": "bash", "description": "", "prompt": "Do it."});
    let ask: agentrun_protocol::agent::Delegation = serde_json::from_value(ask).unwrap();
    let delegate = ToGateway::Delegate {
        id: id(1),
        delegations: vec![ask.clone()],
    };
    runtime.say(&delegate).await;
    let ToRuntime::Delegated { at, delegation, .. } = runtime.hear().await else {
        panic!()
    };
    assert_eq!(at, ask.at);
    let agentrun_protocol::agent::DelegationState::Created { name } = delegation else {
        panic!("{delegation:?}")
    };
    server.gateway.change(|board| {
        board.put_subtask(subtask(|o| {
            o["metadata"]["name"] = json!(name);
            o["metadata"]["uid"] = json!("child");
            o["spec"]["command"] = json!(null);
            o["spec"]["agent"] = json!({"prompt": "Do it."});
            o["spec"]["role"] = json!("Delegate");
            o["spec"]["parentRef"] = json!({"name": "lead", "uid": TASK});
            o["status"] = json!({"outcome": "Success", "reason": "Completed", "output": {"text": "done"}});
        }))
    });
    let ToRuntime::Delegated { delegation, .. } = runtime.hear().await else {
        panic!()
    };
    let agentrun_protocol::agent::DelegationState::Ended(end) = delegation else {
        panic!("{delegation:?}")
    };
    assert_eq!((end.name, end.output), (name, Some(json!({"text": "done"}))));
    assert_eq!(api.seen().len(), 1, "one write and no read");
}
