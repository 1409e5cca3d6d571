//! Waits for the end of one call.

use crate::api::cluster::Cluster;
use crate::api::problem::{Code, Problem};
use crate::api::stream::sightings::Sink;
use crate::api::view::TaskStatus;
use crate::board::Name;
use crate::text::chain;
use agentrun_api::{AgentRun, SubTask};
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
    pub(crate) fn new(cluster: &Arc<Cluster>, name: &Name, armed: bool) -> Self {
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
