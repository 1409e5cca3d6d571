//! The endpoint itself, on loopback.

use super::{Answer, Scenario};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

type Body = StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>;

/// A request that was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Value,
}

/// A scripted endpoint; it ends when it is dropped.
#[derive(Debug)]
pub struct Scripted {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    scenario: Scenario,
    asked: Vec<Asked>,
    /// The only key that is taken.
    key: Option<String>,
}

impl Scripted {
    /// Answers as the scenario says.
    pub async fn start(scenario: Scenario) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port of loopback");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State {
            scenario,
            asked: Vec::new(),
            key: None,
        }));
        let serving = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            address,
            state,
            serving,
        }
    }

    /// Takes no other key than this from now on.
    pub fn demand(&self, key: &str) {
        self.state.lock().expect("no panic").key = Some(key.to_owned());
    }

    /// The `endpoint` of a Model that is here.
    pub fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.state.lock().expect("no panic").asked.clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        let service = service_fn(move |request| {
            let state = Arc::clone(&state);
            async move { Ok::<_, Infallible>(answer(&state, request).await) }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service),
        );
    }
}

async fn answer(state: &Mutex<State>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let answer = {
        let mut state = state.lock().expect("no panic");
        state.asked.push(Asked {
            headers: head.headers.clone(),
            body: body.clone(),
        });
        let sent = head
            .headers
            .get("authorization")
            .and_then(|sent| sent.to_str().ok());
        let refused = state
            .key
            .as_ref()
            .is_some_and(|key| sent != Some(format!("Bearer {key}").as_str()));
        if refused {
            Answer::error(
                401,
                &format!("Incorrect API key provided: {}", sent.unwrap_or("none")),
            )
        } else if head.uri.path() != "/v1/chat/completions" {
            Answer::error(404, "there are chat completions only")
        } else {
            let none = || Answer::error(500, "the scenario has no answer to this request");
            state.scenario.answer(&body).unwrap_or_else(none)
        }
    };
    tokio::time::sleep(answer.delay()).await;
    respond(&answer)
}

fn respond(answer: &Answer) -> Response<Body> {
    let mut response = Response::builder().status(answer.status.unwrap_or(200));
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let (kind, body) = match (answer.whole(), answer.status) {
        (Some(whole), _) => ("application/json", one(whole)),
        (None, Some(status)) if status != 200 => ("application/json", one(json!({}).to_string().into())),
        (None, _) => ("text/event-stream", events(answer)),
    };
    if !answer.headers.contains_key("content-type") {
        response = response.header("content-type", kind);
    }
    response.body(StreamBody::new(body)).expect("a response")
}

fn one(bytes: Bytes) -> BoxStream<'static, io::Result<Frame<Bytes>>> {
    stream::iter([Ok(Frame::data(bytes))]).boxed()
}

fn events(answer: &Answer) -> BoxStream<'static, io::Result<Frame<Bytes>>> {
    let mut written: Vec<String> = answer
        .chunks()
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    let mut end = None;
    if let Some(after) = answer.cut_after {
        let cut = written
            .get(after)
            .map(|chunk| chunk[..chunk.len() / 2].to_owned());
        written.truncate(after);
        written.extend(cut);
        end = Some(Err(io::Error::other("cut by the script")));
    }
    let again = written
        .iter()
        .rev()
        .find(|chunk| !chunk.contains("[DONE]"))
        .cloned();
    let again = again.filter(|_| answer.endless);
    if again.is_some() {
        written.pop();
    }
    let pause = Duration::from_millis(answer.pause_ms);
    let said = stream::iter(written)
        .chain(stream::repeat(again.unwrap_or_default()).take(if answer.endless { usize::MAX } else { 0 }));
    let said = said.then(move |chunk| async move {
        tokio::time::sleep(pause).await;
        Ok(Frame::data(Bytes::from(chunk)))
    });
    said.chain(stream::iter(end)).boxed()
}
