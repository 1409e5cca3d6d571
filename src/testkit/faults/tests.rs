use super::*;
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::{Body, DynBody};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;
use tower::{BoxError, Layer as _, Service, ServiceExt as _, service_fn};

const PODS: &str = "/api/v1/namespaces/ns/pods";
const WATCH: &str = "/api/v1/namespaces/ns/pods?watch=true";

fn request(method: Method, uri: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(uri)
        .body(Body::empty())
        .unwrap()
}

/// An API server that counts what reaches it and whose watches show `events`.
fn server(
    reached: &Arc<AtomicUsize>,
    events: &'static [&'static str],
) -> impl Service<Request<Body>, Response = Response<Box<DynBody>>, Error = BoxError, Future: Send + 'static>
+ Clone
+ use<> {
    let reached = Arc::clone(reached);
    service_fn(move |_| {
        reached.fetch_add(1, Ordering::SeqCst);
        let chunks = events
            .iter()
            .map(|event| Ok::<_, BoxError>(http_body::Frame::data(Bytes::from_static(event.as_bytes()))));
        let body: Box<DynBody> = match events.is_empty() {
            true => Box::new(Full::new(Bytes::from_static(b"{}")).map_err(BoxError::from)),
            false => Box::new(StreamBody::new(futures::stream::iter(chunks))),
        };
        std::future::ready(Ok::<_, BoxError>(Response::new(body)))
    })
}

/// Status of an answer, or the error's text.
async fn ask(faults: &Faults, reached: &Arc<AtomicUsize>, method: Method) -> Result<u16, String> {
    let service = faults.layer(server(reached, &[]));
    let answer = service.oneshot(request(method, PODS)).await;
    answer
        .map(|answer| answer.status().as_u16())
        .map_err(|error| error.to_string())
}

async fn watched(action: Action, events: &'static [&'static str]) -> Result<String, String> {
    let faults = Faults::new([Fault::new(Matcher::watches(), Which::All, action)]);
    let service = faults.layer(server(&Arc::default(), events));
    let answer = service.oneshot(request(Method::GET, WATCH)).await.unwrap();
    let (mut text, mut body) = (String::new(), answer.into_body());
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap()),
            Err(error) => return Err(format!("{text}{error}")),
        }
    }
    Ok(text)
}

#[test]
fn requests_are_read_from_their_paths() {
    let call = |method, uri| Call::of(&request(method, uri));
    let pod = call(Method::DELETE, "/api/v1/namespaces/ns/pods/a");
    assert_eq!((pod.verb, pod.resource.as_str()), (Verb::Delete, "pods"));
    assert_eq!(
        (pod.namespace.as_deref(), pod.name.as_deref()),
        (Some("ns"), Some("a"))
    );
    let status = call(
        Method::PATCH,
        "/apis/agentrun.dev/v1alpha1/namespaces/ns/subtasks/a/status",
    );
    assert_eq!(
        (status.verb, status.resource.as_str()),
        (Verb::Patch, "subtasks/status")
    );
    assert_eq!(call(Method::GET, "/api/v1/namespaces/ns").resource, "namespaces");
    assert_eq!(call(Method::GET, "/api/v1/nodes").verb, Verb::List);
    assert_eq!(call(Method::GET, "/api/v1/nodes/a").verb, Verb::Get);
    assert_eq!(call(Method::GET, WATCH).verb, Verb::Watch);
}

#[test]
fn events_are_no_writes_unless_they_are_asked_for() {
    let event = Call::of(&request(
        Method::POST,
        "/apis/events.k8s.io/v1/namespaces/ns/events",
    ));
    assert!(!Matcher::writes().matches(&event));
    assert!(Matcher::writes().of("events").matches(&event));
}

#[tokio::test]
async fn the_world_stops_after_the_write_that_the_script_names_and_before_its_answer() {
    let faults = Faults::new([Fault::new(Matcher::writes(), Which::Nth(2), Action::Stop)]);
    let reached = Arc::default();
    assert_eq!(ask(&faults, &reached, Method::POST).await, Ok(200));
    assert_eq!(ask(&faults, &reached, Method::GET).await, Ok(200));
    assert!(!faults.has_stopped());
    let second = tokio::spawn({
        let (faults, reached) = (faults.clone(), Arc::clone(&reached));
        async move { ask(&faults, &reached, Method::POST).await }
    });
    faults.stopped().await;
    assert_eq!(reached.load(Ordering::SeqCst), 3, "the write has happened");
    let service = faults.layer(server(&reached, &[]));
    let later = service.oneshot(request(Method::GET, PODS));
    assert!(
        futures::FutureExt::now_or_never(later).is_none(),
        "nothing is answered any more"
    );
    assert_eq!(reached.load(Ordering::SeqCst), 3);
    assert!(!second.is_finished());
    second.abort();
}

#[tokio::test]
async fn a_lost_answer_reaches_the_server_and_a_broken_connection_does_not() {
    let faults = Faults::new([
        Fault::new(Matcher::writes(), Which::Nth(1), Action::LoseAnswer),
        Fault::new(Matcher::writes(), Which::Nth(2), Action::Break),
    ]);
    let reached = Arc::default();
    assert!(ask(&faults, &reached, Method::POST).await.is_err());
    assert_eq!(reached.load(Ordering::SeqCst), 1);
    assert!(ask(&faults, &reached, Method::POST).await.is_err());
    assert_eq!(reached.load(Ordering::SeqCst), 1);
    assert_eq!(faults.count(&Matcher::writes()), 2);
}

#[tokio::test]
async fn chosen_requests_get_the_status_that_the_script_names() {
    let conflict = Action::Answer(StatusCode::CONFLICT);
    let faults = Faults::new([Fault::new(
        Matcher::writes().of("pods"),
        Which::Every(2),
        conflict,
    )]);
    let reached = Arc::default();
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(ask(&faults, &reached, Method::POST).await.unwrap());
    }
    assert_eq!(answers, [200, 409, 200, 409]);
    assert_eq!(ask(&faults, &reached, Method::GET).await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn late_events_keep_their_order_and_do_not_add_up() {
    let start = Instant::now();
    let delay = Duration::from_secs(2);
    let seen = watched(Action::Delay(delay), &["a\nb", "\nc\n"]).await;
    assert_eq!(seen.unwrap(), "a\nb\nc\n");
    assert_eq!(start.elapsed().as_secs(), 2);
}

#[tokio::test]
async fn events_are_repeated_whole_however_the_connection_splits_them() {
    assert_eq!(
        watched(Action::Repeat, &["a", "a\nb\n"]).await.unwrap(),
        "aa\naa\nb\nb\n"
    );
}

#[tokio::test]
async fn a_watch_breaks_after_so_many_events() {
    let seen = watched(Action::CutAfter(2), &["a\nb\nc\n"]).await;
    assert_eq!(seen.unwrap_err(), "a\nb\nthe watch broke");
}

#[tokio::test(start_paused = true)]
async fn a_gap_hides_events_and_then_says_that_the_history_is_gone() {
    let hidden = Duration::from_secs(3);
    let start = Instant::now();
    let seen = watched(Action::Gap { events: 1, hidden }, &["a\n", "b\n"])
        .await
        .unwrap();
    assert!(
        seen.starts_with("a\n{") && seen.contains("410") && !seen.contains("b\n"),
        "{seen}"
    );
    assert_eq!(start.elapsed().as_secs(), 3);
}
