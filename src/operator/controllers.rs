//! The controllers that a leader runs: which watch wakes which reconcile.

use crate::Operator;
use crate::admissions::Admissions;
use crate::cache::{Cache, fill, key};
use crate::error::ReconcileError;
use crate::world::{Installation, Memory, World};
use crate::{housekeeping, indexes, run, skill, subtask, thread};
use agentrun_api::names::labels;
use agentrun_api::{AgentRun, Model, SandboxPool, Skill, SubTask, Thread};
use agentrun_core::plan::delegates;
use agentrun_core::plan::run::has_lease;
use futures::channel::mpsc;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use kube::runtime::controller::{Action, Config, ReconcileRequest, applier};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Resource, ResourceExt as _};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Reconciles of one kind that run at once. They wait for the API server, not for the processor.
const CONCURRENCY: u16 = 32;

/// A queue of names to reconcile.
struct Queue<K: Resource<DynamicType = ()>> {
    sender: mpsc::UnboundedSender<ReconcileRequest<K>>,
}

impl<K: Resource<DynamicType = ()>> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
        }
    }
}

impl<K: Resource<DynamicType = ()>> Queue<K> {
    fn new() -> (Self, mpsc::UnboundedReceiver<ReconcileRequest<K>>) {
        let (sender, receiver) = mpsc::unbounded();
        (Self { sender }, receiver)
    }

    /// Wakes the reconcile of an object, once however often it is called before that runs.
    fn wake(&self, namespace: &str, name: &str) {
        let object = ObjectRef::new(name).within(namespace);
        // A closed queue means that the controllers are stopping.
        let _ = self.sender.unbounded_send(object.into());
    }
}

/// Runs until `stop`. A reconcile under way is dropped where it waits: every write stands for itself, and whoever leads
/// next goes on from the objects.
pub async fn work(
    operator: Arc<Operator>,
    installation: watch::Receiver<Option<Arc<Installation>>>,
    stop: CancellationToken,
) {
    let (runs, runs_writer) = Cache::<AgentRun>::new(indexes::run);
    let (subtasks, subtasks_writer) = Cache::<SubTask>::new(indexes::subtask);
    let (pods, pods_writer) = Cache::<Pod>::new(indexes::pod);
    let (threads, threads_writer) = Cache::<Thread>::new(indexes::thread);
    let (skills, skills_writer) = Cache::<Skill>::new(|_| Vec::new());
    let (pools, pools_writer) = Cache::<SandboxPool>::new(|_| Vec::new());
    let (models, models_writer) = Cache::<Model>::new(|model| model.namespace().into_iter().collect());
    let (claims, claims_writer) = Cache::<PersistentVolumeClaim>::new(|_| Vec::new());
    let (nodes, nodes_writer) = Cache::<Node>::new(|_| Vec::new());
    let world = Arc::new(World {
        operator: Arc::clone(&operator),
        runs: runs.clone(),
        subtasks: subtasks.clone(),
        pods: pods.clone(),
        threads: threads.clone(),
        skills: skills.clone(),
        pools: pools.clone(),
        models: models.clone(),
        claims: claims.clone(),
        nodes: nodes.clone(),
        installation,
        since: Instant::now(),
        admissions: Admissions::default(),
        memory: Memory::default(),
    });
    let (run_queue, run_requests) = Queue::<AgentRun>::new();
    let (subtask_queue, subtask_requests) = Queue::<SubTask>::new();
    let (thread_queue, thread_requests) = Queue::<Thread>::new();
    let (skill_queue, skill_requests) = Queue::<Skill>::new();

    let watches = &operator.watches;
    let managed = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_VALUE);
    let managed = Some(managed.as_str());
    let filling = futures::future::join_all([
        fill(
            "agentruns",
            operator.looked_after(),
            None,
            runs.clone(),
            runs_writer,
            watches.clone(),
            |object| {
                wake_for_run(object, &world, &run_queue, &subtask_queue, &thread_queue);
            },
        )
        .boxed(),
        fill(
            "subtasks",
            operator.looked_after(),
            None,
            subtasks.clone(),
            subtasks_writer,
            watches.clone(),
            |object| {
                let (namespace, name) = key(object);
                subtask_queue.wake(&namespace, &name);
                if let Some(parent) = &object.spec.parent_ref {
                    subtask_queue.wake(&namespace, &parent.name);
                }
                run_queue.wake(&namespace, &object.spec.run_ref.name);
                wake_waiting_delegates(object, &world, &subtask_queue);
                wake_thread_of_subtask(object, &world, &thread_queue);
            },
        )
        .boxed(),
        fill(
            "pods",
            operator.looked_after(),
            managed,
            pods,
            pods_writer,
            watches.clone(),
            |object| {
                wake_for_pod(object, &world, &subtask_queue, &thread_queue);
                if let Some(skill) = object.annotations().get(labels::SKILL) {
                    skill_queue.wake(&object.namespace().unwrap_or_default(), skill);
                }
            },
        )
        .boxed(),
        fill(
            "threads",
            operator.looked_after(),
            None,
            threads.clone(),
            threads_writer,
            watches.clone(),
            |object| {
                let (namespace, name) = key(object);
                thread_queue.wake(&namespace, &name);
                for run in world.runs.under(&format!("{namespace}/{name}")) {
                    run_queue.wake(&namespace, &run.name_any());
                }
            },
        )
        .boxed(),
        fill(
            "skills",
            operator.looked_after(),
            None,
            skills.clone(),
            skills_writer,
            watches.clone(),
            |object| {
                let (namespace, name) = key(object);
                skill_queue.wake(&namespace, &name);
                wake_unadmitted(&world, &namespace, &run_queue);
            },
        )
        .boxed(),
        fill(
            "sandboxpools",
            operator.looked_after(),
            None,
            pools,
            pools_writer,
            watches.clone(),
            |object| {
                wake_unadmitted(&world, &object.namespace().unwrap_or_default(), &run_queue);
            },
        )
        .boxed(),
        fill(
            "models",
            operator.looked_after(),
            None,
            models,
            models_writer,
            watches.clone(),
            |object| {
                wake_unadmitted(&world, &object.namespace().unwrap_or_default(), &run_queue);
            },
        )
        .boxed(),
        fill(
            "persistentvolumeclaims",
            operator.looked_after(),
            managed,
            claims,
            claims_writer,
            watches.clone(),
            |object| {
                let namespace = object.namespace().unwrap_or_default();
                for owner in object
                    .owner_references()
                    .iter()
                    .filter(|owner| owner.kind == AgentRun::kind(&()))
                {
                    run_queue.wake(&namespace, &owner.name);
                }
            },
        )
        .boxed(),
        fill(
            "nodes",
            Api::all(operator.client.clone()),
            None,
            nodes,
            nodes_writer,
            watches.clone(),
            |_: &Node| {},
        )
        .boxed(),
    ]);
    let synced = async {
        let _ = runs.store().wait_until_ready().await;
        let _ = subtasks.store().wait_until_ready().await;
        let _ = world.pods.store().wait_until_ready().await;
        let _ = threads.store().wait_until_ready().await;
        let _ = skills.store().wait_until_ready().await;
        let _ = world.pools.store().wait_until_ready().await;
        let _ = world.models.store().wait_until_ready().await;
        let _ = world.claims.store().wait_until_ready().await;
        let _ = world.nodes.store().wait_until_ready().await;
    };
    let working = async {
        synced.await;
        tracing::info!("caches are filled, controllers run");
        futures::join!(
            housekeeping::keep(Arc::clone(&world)),
            drive("agentrun", runs.store(), run_requests, &world, |object, world| {
                run::reconcile(object, world).boxed()
            }),
            drive(
                "subtask",
                subtasks.store(),
                subtask_requests,
                &world,
                |object, world| { subtask::reconcile(object, world).boxed() }
            ),
            drive(
                "thread",
                threads.store(),
                thread_requests,
                &world,
                |object, world| { thread::reconcile(object, world).boxed() }
            ),
            drive(
                "skill",
                skills.store(),
                skill_requests,
                &world,
                |object, world| skill::reconcile(object, world).boxed()
            ),
        );
    };
    tokio::select! {
        () = stop.cancelled() => {}
        _ = filling => tracing::error!("every watch has ended"),
        () = working => {}
    }
}

/// A run's own change concerns its sub-tasks (cancel, suspend, its end), its thread and who waits for that.
fn wake_for_run(
    run: &AgentRun,
    world: &World,
    runs: &Queue<AgentRun>,
    subtasks: &Queue<SubTask>,
    threads: &Queue<Thread>,
) {
    let (namespace, name) = key(run);
    runs.wake(&namespace, &name);
    let stops = run.metadata.deletion_timestamp.is_some()
        || run
            .status
            .as_ref()
            .is_some_and(|status| status.cancel_requested_at.is_some() || run::is_over(status))
        || world.runs.get(&namespace, &name).is_none()
        || run.spec.suspend.is_some();
    if stops {
        for child in world.subtasks.under(&run.uid().unwrap_or_default()) {
            subtasks.wake(&namespace, &child.name_any());
        }
    }
    for index in indexes::run(run) {
        if let Some((_, thread)) = index.split_once('/') {
            threads.wake(&namespace, thread);
        }
        for other in world.runs.under(&index) {
            runs.wake(&namespace, &other.name_any());
        }
    }
}

/// What starts, ends or begins to wait may make a place free for a delegate that waits for one.
fn wake_waiting_delegates(subtask: &SubTask, world: &World, subtasks: &Queue<SubTask>) {
    let namespace = subtask.namespace().unwrap_or_default();
    for delegate in world
        .subtasks
        .under(&indexes::delegates_of(&subtask.spec.run_ref.uid))
    {
        let ended = delegate
            .status
            .as_ref()
            .is_some_and(|status| status.outcome.is_some());
        if !ended && !delegates::has_started(&delegate) {
            subtasks.wake(&namespace, &delegate.name_any());
        }
    }
}

/// A thread counts leases; it looks again when the last one of a run has ended.
fn wake_thread_of_subtask(subtask: &SubTask, world: &World, threads: &Queue<Thread>) {
    let namespace = subtask.namespace().unwrap_or_default();
    let run_ref = &subtask.spec.run_ref;
    let Some(run) = world.runs.get(&namespace, &run_ref.name) else {
        return;
    };
    let index = indexes::run(&run);
    if index.is_empty()
        || world
            .subtasks
            .under(&run_ref.uid)
            .iter()
            .any(|child| has_lease(child))
    {
        return;
    }
    for thread in index.iter().filter_map(|index| index.split_once('/')) {
        threads.wake(&namespace, thread.1);
    }
}

/// The same for the last Pod on a claim.
fn wake_threads_of_claim(pod: &Pod, world: &World, threads: &Queue<Thread>) {
    let on_it = pod
        .labels()
        .get(labels::CLAIM)
        .map(|uid| world.pods.under(uid).len());
    if on_it != Some(0) {
        return;
    }
    let namespace = pod.namespace().unwrap_or_default();
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    for claim in volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref()) {
        for thread in world.threads.under(&format!("{namespace}/{}", claim.claim_name)) {
            threads.wake(&namespace, &thread.name_any());
        }
    }
}

fn wake_for_pod(pod: &Pod, world: &World, subtasks: &Queue<SubTask>, threads: &Queue<Thread>) {
    wake_threads_of_claim(pod, world, threads);
    let namespace = pod.namespace().unwrap_or_default();
    let Some(subtask) = pod.annotations().get(crate::pods::build::SUBTASK) else {
        return;
    };
    subtasks.wake(&namespace, subtask);
    // Its end may free a claim that others wait for.
    if world.pods.get(&namespace, &pod.name_any()).is_none() {
        let run = pod
            .labels()
            .get(labels::RUN_UID)
            .map(String::as_str)
            .unwrap_or_default();
        for child in world.subtasks.under(run) {
            if child
                .status
                .as_ref()
                .is_none_or(|status| status.outcome.is_none())
            {
                subtasks.wake(&namespace, &child.name_any());
            }
        }
    }
}

/// Runs that wait for an object look again when one of its kind appears.
fn wake_unadmitted(world: &World, namespace: &str, runs: &Queue<AgentRun>) {
    for run in world.runs.all() {
        let waits = run
            .status
            .as_ref()
            .is_none_or(|status| status.start_time.is_none() && !run::is_over(status));
        if waits && run.namespace().as_deref() == Some(namespace) {
            runs.wake(namespace, &run.name_any());
        }
    }
}

type Reconciling = futures::future::BoxFuture<'static, Result<Action, ReconcileError>>;

/// Takes names from a queue and reconciles, each object once at a time, with a pause per object that grows with its
/// failures.
async fn drive<K>(
    name: &'static str,
    store: Store<K>,
    requests: mpsc::UnboundedReceiver<ReconcileRequest<K>>,
    world: &Arc<World>,
    reconcile: fn(Arc<K>, Arc<World>) -> Reconciling,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Unpin,
{
    let failures: Arc<Mutex<HashMap<String, u32>>> = Arc::default();
    let known = Arc::clone(&failures);
    let round = move |object: Arc<K>, world: Arc<World>| {
        let failures = Arc::clone(&known);
        async move {
            let started = Instant::now();
            let uid = object.uid().unwrap_or_default();
            let result = reconcile(object, Arc::clone(&world)).await;
            let category = result.as_ref().map_or_else(ReconcileError::category, |_| "ok");
            world
                .operator
                .metrics
                .reconciled(name, category, started.elapsed());
            if result.is_ok() {
                failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&uid);
            }
            result
        }
        .boxed()
    };
    let policy = move |object: Arc<K>, error: &ReconcileError, _: Arc<World>| {
        let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.uid().unwrap_or_default()).or_default();
        let pause = error.pause(*count);
        *count += 1;
        if error.is_fault() {
            let (namespace, object) = key(&*object);
            tracing::warn!(controller = name, namespace, object, error = %error, ?pause, "reconcile failed, trying again");
        }
        Action::requeue(pause)
    };
    let config = Config::default().concurrency(CONCURRENCY);
    let requests = requests.map(Ok::<_, std::convert::Infallible>);
    applier(round, policy, Arc::clone(world), store, requests, config)
        .for_each(|_| async {})
        .await;
}
