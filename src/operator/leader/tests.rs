//! Two candidates against an API server of one Lease, which can be made to fail for one of them.

use super::*;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The stored Lease, shared by all clients.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Option<Value>>>);

impl Server {
    fn holder(&self) -> String {
        let lease = self.0.lock().unwrap();
        let holder = lease
            .as_ref()
            .map(|lease| lease["spec"]["holderIdentity"].clone());
        holder
            .and_then(|holder| holder.as_str().map(str::to_owned))
            .unwrap_or_default()
    }

    fn answer(&self, method: &Method, body: &[u8]) -> (StatusCode, Value) {
        let mut stored = self.0.lock().unwrap();
        let refuse = |code: StatusCode, reason: &str| {
            (
                code,
                json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": reason}),
            )
        };
        if *method == Method::GET {
            return stored.clone().map_or_else(
                || refuse(StatusCode::NOT_FOUND, "NotFound"),
                |lease| (StatusCode::OK, lease),
            );
        }
        let mut lease: Value = serde_json::from_slice(body).unwrap();
        let version = |lease: &Value| {
            lease["metadata"]["resourceVersion"]
                .as_str()
                .map(|text| text.parse::<u64>().unwrap())
        };
        let (now, read) = (stored.as_ref().and_then(version), version(&lease));
        if now != read {
            return refuse(StatusCode::CONFLICT, "Conflict");
        }
        lease["metadata"]["resourceVersion"] = json!((now.unwrap_or(0) + 1).to_string());
        *stored = Some(lease.clone());
        (StatusCode::OK, lease)
    }

    /// A client that gets no answer while `cut` is set.
    fn client(&self, cut: &Arc<AtomicBool>) -> Client {
        let (server, cut) = (self.clone(), Arc::clone(cut));
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, cut) = (server.clone(), Arc::clone(&cut));
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                if cut.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                let (status, lease) = server.answer(&parts.method, &body);
                let body = Body::from(serde_json::to_vec(&lease).unwrap());
                Ok::<_, std::convert::Infallible>(Response::builder().status(status).body(body).unwrap())
            }
        });
        Client::new(service, "sys")
    }
}

struct Candidate {
    fence: Fence,
    cut: Arc<AtomicBool>,
    shutdown: CancellationToken,
    /// 1 while its controllers run, 2 when they have ended.
    stage: Arc<AtomicU32>,
    ended: tokio::task::JoinHandle<Result<(), LeadError>>,
}

impl Candidate {
    fn start(server: &Server, name: &str) -> Self {
        let millis = Duration::from_millis;
        let election = Election {
            lease: millis(900),
            renew_deadline: millis(400),
            retry: millis(50),
            ..Election::new("sys", name)
        };
        let (fence, cut) = (Fence::default(), Arc::<AtomicBool>::default());
        let (shutdown, stage) = (CancellationToken::new(), Arc::<AtomicU32>::default());
        let client = server.client(&cut);
        let running = Arc::clone(&stage);
        let work = move |stop: CancellationToken| async move {
            running.store(1, Ordering::SeqCst);
            stop.cancelled().await;
            running.store(2, Ordering::SeqCst);
        };
        let ended = tokio::spawn(lead(client, election, fence.clone(), shutdown.clone(), work));
        Self {
            fence,
            cut,
            shutdown,
            stage,
            ended,
        }
    }

    fn stage(&self) -> u32 {
        self.stage.load(Ordering::SeqCst)
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}

// F088, F090
#[tokio::test]
async fn an_old_leader_without_an_answer_has_stopped_before_the_new_one_starts() {
    let server = Server::default();
    let old = Candidate::start(&server, "old");
    until("the first candidate leads", || old.stage() == 1).await;
    let new = Candidate::start(&server, "new");
    old.cut.store(true, Ordering::SeqCst);
    until("the second candidate leads", || {
        let leads = new.stage() == 1;
        assert!(!(leads && old.stage() == 1), "both lead");
        assert!(
            !(leads && old.fence.check().is_ok()),
            "the old leader may still write"
        );
        leads
    })
    .await;
    assert!(matches!(old.ended.await.unwrap(), Err(LeadError::Lost(_))));
    assert_eq!(server.holder(), "new");
}

#[tokio::test]
async fn a_leader_that_is_shut_down_ends_its_work_before_it_gives_the_lease_back() {
    let server = Server::default();
    let old = Candidate::start(&server, "old");
    until("the first candidate leads", || old.stage() == 1).await;
    let new = Candidate::start(&server, "new");
    old.shutdown.cancel();
    assert!(old.ended.await.unwrap().is_ok());
    assert_eq!(old.stage.load(Ordering::SeqCst), 2);
    assert_eq!(old.fence.check(), Err(NotLeading));
    until("the second candidate leads", || new.stage() == 1).await;
}

#[tokio::test]
async fn a_lease_that_someone_else_has_taken_is_lost_at_once() {
    let server = Server::default();
    let old = Candidate::start(&server, "old");
    until("the first candidate leads", || old.stage() == 1).await;
    {
        let mut stored = server.0.lock().unwrap();
        let lease = stored.as_mut().unwrap();
        lease["spec"]["holderIdentity"] = json!("thief");
        lease["metadata"]["resourceVersion"] = json!("1000");
    }
    let error = old.ended.await.unwrap().unwrap_err().to_string();
    assert_eq!(error, "the lease was lost: thief holds it");
    assert_eq!(old.fence.check(), Err(NotLeading));
}

#[tokio::test]
async fn a_candidate_can_be_shut_down_while_it_waits() {
    let server = Server::default();
    let leader = Candidate::start(&server, "leader");
    until("the first candidate leads", || leader.stage() == 1).await;
    let waiting = Candidate::start(&server, "waiting");
    waiting.shutdown.cancel();
    assert!(waiting.ended.await.unwrap().is_ok());
    assert_eq!(
        (waiting.stage.load(Ordering::SeqCst), &*server.holder()),
        (0, "leader")
    );
}
