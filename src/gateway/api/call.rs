//! One call: a run whose caller waits for its end.

use super::Api;
use super::bounds;
use super::caller::Caller;
use super::cluster::Cluster;
use super::create::{Made, digest, idempotency_key, keyed_name, make, manifest};
use super::problem::{Code, Problem};
use super::stream::sightings::Sink;
use super::view::TaskStatus;
use crate::board::Name;
use crate::text::chain;
use agentrun_api::{AgentRun, SubTask};
use agentrun_core::names::h;
use http::HeaderMap;
use kube::ResourceExt as _;
use serde_json::{Value, json};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How a call ended.
#[derive(Debug)]
pub(crate) enum End {
    /// Its work ended.
    SubTask(Box<SubTask>),
    /// It ended before it had any work.
    Run(Box<AgentRun>),
    /// It did not end in time.
    Late,
}

/// What the watches have seen of a call.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    seen: watch::Sender<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    subtask: Option<SubTask>,
    run: Option<AgentRun>,
    deleted: Option<String>,
}

impl Sink for Waiter {
    fn run(&self, run: &AgentRun) {
        if TaskStatus::of(run).is_over() {
            self.seen.send_modify(|seen| seen.run = Some(run.clone()));
        }
    }

    fn subtask(&self, subtask: &SubTask) {
        if subtask
            .status
            .as_ref()
            .is_some_and(|status| status.outcome.is_some())
        {
            self.seen.send_modify(|seen| seen.subtask = Some(subtask.clone()));
        }
    }

    fn deleted(&self, uid: &str) {
        self.seen.send_modify(|seen| seen.deleted = Some(uid.to_owned()));
    }

    fn begun_anew(&self) {}
}

/// Who calls, and what for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// How the names of its runs begin.
    pub(crate) kind: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) caller: &'a Caller,
    /// With an `Idempotency-Key` or without.
    pub(crate) headers: &'a HeaderMap,
}

/// A call whose run is made.
pub(crate) struct Begun {
    /// Of its run.
    pub(crate) name: Name,
    pub(crate) uid: String,
    pub(crate) made: Made,
    /// Cancels the run when it is dropped, unless the end was heard or can be asked for again.
    pub(crate) unheard: CancelUnheard,
}

impl Call<'_> {
    /// Makes the run of `spec`, or finds the one that the same request has made before. `sink` sees all of it.
    pub(crate) async fn begin(
        &self,
        api: &Arc<Api>,
        spec: &Value,
        sink: &Arc<impl Sink + 'static>,
    ) -> Result<Begun, Problem> {
        let key = idempotency_key(self.headers)?;
        let name = match &key {
            Some(key) => keyed_name(self.kind, self.namespace, self.caller, key),
            None => unique_name(self.kind),
        };
        let digest = digest(spec);
        let manifest = manifest(json!({"name": name}), self.caller, &digest, spec);
        let namespace = self.namespace.to_owned();
        let name = Name { namespace, name };
        // Told before there is anything to tell, so that nothing is missed.
        let sink: Arc<dyn Sink> = sink.clone();
        api.gateway.sightings.tell(&name, Arc::downgrade(&sink));
        let made = make(api, &name.namespace, &manifest, &digest).await?;
        // Without a key nobody could ask for the answer again.
        let unheard = CancelUnheard::new(&api.cluster, &name, key.is_none());
        let uid = made.run.uid().unwrap_or_default();
        Ok(Begun {
            name,
            uid,
            made,
            unheard,
        })
    }
}

pub(crate) fn unique_name(kind: &str) -> String {
    let random = || RandomState::new().hash_one(()).to_string();
    format!("{kind}-{}", h(20, &[&random(), &random()]))
}

pub(crate) fn too_many() -> Problem {
    let most = bounds::CALLS;
    let message = format!("{most} calls are going on, which is the limit: come back");
    Problem::new(Code::TooManyRequests, message)
}

/// The end of the run with this UID.
pub(crate) async fn end(
    waiter: &Waiter,
    uid: &str,
    latest: Instant,
    stop: &CancellationToken,
) -> Result<End, Problem> {
    let mut sightings = waiter.seen.subscribe();
    loop {
        if let Some(end) = seen_end(&sightings.borrow_and_update(), uid) {
            return end;
        }
        tokio::select! {
            changed = sightings.changed() => if changed.is_err() { return Ok(End::Late) },
            () = tokio::time::sleep_until(latest) => return Ok(End::Late),
            () = stop.cancelled() => {
                return Err(Problem::new(Code::Unavailable, "this gateway stops, call again"));
            }
        }
    }
}

fn seen_end(seen: &Seen, uid: &str) -> Option<Result<End, Problem>> {
    let subtask = seen
        .subtask
        .as_ref()
        .filter(|subtask| subtask.spec.run_ref.uid == uid);
    if let Some(subtask) = subtask {
        return Some(Ok(End::SubTask(Box::new(subtask.clone()))));
    }
    let run = seen
        .run
        .as_ref()
        .filter(|run| run.metadata.uid.as_deref() == Some(uid));
    if let Some(run) = run {
        return Some(Ok(End::Run(Box::new(run.clone()))));
    }
    let deleted = seen.deleted.as_deref() == Some(uid);
    let gone = || {
        Problem::new(
            Code::Conflict,
            "the call's AgentRun was deleted before its end, call again",
        )
    };
    deleted.then(|| Err(gone()))
}

/// Cancels the run of a call if nobody is there any more to hear its end.
pub(crate) struct CancelUnheard {
    cluster: Arc<Cluster>,
    name: Name,
    armed: bool,
}

impl CancelUnheard {
    fn new(cluster: &Arc<Cluster>, name: &Name, armed: bool) -> Self {
        Self {
            cluster: Arc::clone(cluster),
            name: name.clone(),
            armed,
        }
    }

    /// The end was heard.
    pub(crate) fn heard(mut self) {
        self.armed = false;
    }
}

impl Drop for CancelUnheard {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (cluster, name) = (Arc::clone(&self.cluster), self.name.clone());
        // Without a runtime the process is ending; the run's own limit then ends it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        runtime.spawn(async move {
            if let Err(error) = cluster.cancel(&name.namespace, &name.name).await {
                let (error, name) = (chain(&error), name.name);
                tracing::warn!(
                    error,
                    name,
                    "a call without caller is not cancelled, its limit ends it"
                );
            }
        });
    }
}
