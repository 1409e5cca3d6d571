//! Takes the thread and makes the claim. A Thread's name is its lock; `status.activeRun` is set by compare-and-swap.

use super::draft::{DataWait, DataWaitReason, Draft};
use super::{is_over, owner_of_data};
use crate::error::{ReconcileError, already_exists};
use crate::world::World;
use crate::write;
use agentrun_api::names::{labels, paths};
use agentrun_api::{
    AccessMode, AgentRun, ClaimTemplate, ConcurrencyPolicy, FailedReason, OnRelease, RunRef, Thread,
    ThreadSpec, UserData, VolumeReadyReason,
};
use agentrun_core::conditions::Is;
use agentrun_core::names;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use kube::api::PostParams;
use kube::{Api, Resource, ResourceExt as _};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Size of a claim when nothing names one (docs/reference.md).
const DEFAULT_SIZE: &str = "1Gi";

/// Takes the thread, if the run names one, and sees to the claim. `Some` says what has to be waited for.
pub(super) async fn take(
    world: &World,
    run: &Arc<AgentRun>,
    draft: &mut Draft,
) -> Result<Option<DataWait>, ReconcileError> {
    let data = run.spec.user_data.clone().unwrap_or_default();
    let (user, thread_id) = owner_of_data(run);
    let (owner, owner_uid, template) = if data.thread.is_some() {
        let name = names::thread_name(&user, &thread_id);
        let thread = ensure_thread(world, run, &name, &user, &thread_id, &data).await?;
        if let Some(message) = mismatch(&thread.spec, &data) {
            return Ok(Some(DataWait {
                reason: DataWaitReason::ThreadMismatch,
                message,
            }));
        }
        draft.status.thread = Some(name);
        match lock(world, run, &thread, &data).await? {
            Lock::Taken(thread) => {
                let template = thread.spec.claim.clone().unwrap_or_default();
                (
                    owner(&*thread),
                    thread.uid().unwrap_or_default(),
                    (template, thread.spec.existing_claim.clone()),
                )
            }
            Lock::Waits(wait) => return Ok(Some(wait)),
        }
    } else {
        (
            owner(&**run),
            run.uid().unwrap_or_default(),
            (data.claim.clone(), data.existing_claim.clone()),
        )
    };
    // A claim that is to be kept has no owner whose end could take it along. A Thread owns its claim always: it is
    // kept by keeping the Thread.
    let kept = data.thread.is_none() && data.on_release == Some(OnRelease::Retain);
    let owner = (!kept).then_some(owner);
    let name = match template.1 {
        Some(existing) => existing,
        None => {
            ensure_claim(
                world,
                &run.namespace().unwrap_or_default(),
                owner,
                &owner_uid,
                &template.0,
            )
            .await?
        }
    };
    draft.status.claim_name = Some(name.clone());
    draft.volume(
        Is::Unknown,
        VolumeReadyReason::Provisioning,
        &format!("claim {name} is bound when its first Pod is scheduled"),
    );
    Ok(None)
}

async fn ensure_thread(
    world: &World,
    run: &AgentRun,
    name: &str,
    user: &str,
    thread: &str,
    data: &UserData,
) -> Result<Arc<Thread>, ReconcileError> {
    let namespace = run.namespace().unwrap_or_default();
    if let Some(thread) = world.threads.get(&namespace, name) {
        return Ok(thread);
    }
    let api: Api<Thread> = Api::namespaced(world.operator.client.clone(), &namespace);
    let mut new = Thread::new(
        name,
        ThreadSpec {
            user: user.to_owned(),
            thread: thread.to_owned(),
            claim: Some(data.claim.clone()).filter(|claim| *claim != ClaimTemplate::default()),
            existing_claim: data.existing_claim.clone(),
            on_release: Some(data.on_release.unwrap_or(OnRelease::Retain)),
        },
    );
    new.metadata.namespace = Some(namespace);
    new.metadata.finalizers = Some(vec![labels::IN_USE.to_owned()]);
    new.metadata.labels = Some(BTreeMap::from([(
        labels::MANAGED_BY.to_owned(),
        labels::MANAGED_BY_VALUE.to_owned(),
    )]));
    let made = match api.create(&PostParams::default(), &new).await {
        Err(error) if already_exists(&error) => api.get(name).await?,
        made => made?,
    };
    world.threads.wrote(made.clone());
    Ok(Arc::new(made))
}

/// On an existing thread, unset means inherit and different is a mistake.
fn mismatch(thread: &ThreadSpec, asked: &UserData) -> Option<String> {
    let has = thread.claim.clone().unwrap_or_default();
    let differs = |field: &str, asked: Option<String>, has: Option<String>| {
        let asked = asked?;
        (has.as_ref() != Some(&asked)).then(|| {
            let has = has.unwrap_or_else(|| "none".into());
            format!(
                "userData.{field} is {asked}, thread {} has {has}: leave it out or use another thread",
                thread.thread
            )
        })
    };
    let modes = |template: &ClaimTemplate| template.access_modes.as_ref().map(|modes| format!("{modes:?}"));
    let size = |template: &ClaimTemplate| template.size.as_ref().map(|size| size.0.clone());
    let release = |policy: Option<OnRelease>| policy.map(|policy| policy.as_str().to_owned());
    differs(
        "size",
        size(&asked.claim),
        size(&has).or_else(|| Some(DEFAULT_SIZE.to_owned())),
    )
    .or_else(|| {
        differs(
            "storageClassName",
            asked.claim.storage_class_name.clone(),
            has.storage_class_name.clone(),
        )
    })
    .or_else(|| differs("accessModes", modes(&asked.claim), modes(&has)))
    .or_else(|| {
        differs(
            "existingClaim",
            asked.existing_claim.clone(),
            thread.existing_claim.clone(),
        )
    })
    .or_else(|| differs("onRelease", release(asked.on_release), release(thread.on_release)))
}

enum Lock {
    Taken(Arc<Thread>),
    Waits(DataWait),
}

/// Makes this run the thread's active one, when it is its turn.
async fn lock(
    world: &World,
    run: &AgentRun,
    thread: &Arc<Thread>,
    data: &UserData,
) -> Result<Lock, ReconcileError> {
    if thread.metadata.deletion_timestamp.is_some() {
        let message = format!("thread {} is being deleted", thread.spec.thread);
        return Ok(Lock::Waits(DataWait {
            reason: DataWaitReason::ThreadMismatch,
            message,
        }));
    }
    let uid = run.uid().unwrap_or_default();
    let active = thread
        .status
        .as_ref()
        .and_then(|status| status.active_run.clone());
    if active.as_ref().is_some_and(|active| active.uid == uid) {
        return Ok(Lock::Taken(Arc::clone(thread)));
    }
    let before: Vec<_> = live_runs(world, thread)
        .into_iter()
        .filter(|other| is_before(other, run))
        .collect();
    if let Some(ahead) = before.last() {
        return wait_for(world, ahead, before.len(), data.concurrency_policy)
            .await
            .map(Lock::Waits);
    }
    if let Some(pod) = pod_of_a_run_that_is_gone(world, thread) {
        return Ok(Lock::Waits(DataWait {
            reason: DataWaitReason::ThreadEnding,
            message: format!("Pod {pod} of a deleted run has not gone yet"),
        }));
    }
    let api: Api<Thread> = Api::namespaced(
        world.operator.client.clone(),
        &run.namespace().unwrap_or_default(),
    );
    let mut status = thread.status.clone().unwrap_or_default();
    status.active_run = Some(RunRef {
        name: run.name_any(),
        uid,
    });
    status.folder = Some(paths::thread_folder(&thread.spec.user, &thread.spec.thread));
    status.claim_name = Some(match &thread.spec.existing_claim {
        Some(claim) => claim.clone(),
        None => names::claim_name(&thread.uid().unwrap_or_default()),
    });
    status.observed_generation = thread.metadata.generation;
    let written = write::status(&api, &**thread, &status).await?;
    world.threads.wrote(written.clone());
    Ok(Lock::Taken(Arc::new(written)))
}

/// A deleted run goes at once, and its Pods some time later: until then they may write to the thread's files.
fn pod_of_a_run_that_is_gone(world: &World, thread: &Thread) -> Option<String> {
    let namespace = thread.namespace().unwrap_or_default();
    let claim = thread.status.as_ref()?.claim_name.clone()?;
    let claim = world.claims.get(&namespace, &claim)?.uid()?;
    let runs = world.runs.under(&format!("{namespace}/{}", thread.name_any()));
    let is_there = |uid: &String| runs.iter().any(|run| run.uid().as_ref() == Some(uid));
    let pods = world.pods.under(&claim);
    let mut left = pods
        .iter()
        .filter(|pod| !pod.labels().get(labels::RUN_UID).is_some_and(is_there));
    left.next().map(|pod| pod.name_any())
}

/// Runs of a thread that are not over, oldest first.
pub fn live_runs(world: &World, thread: &Thread) -> Vec<Arc<AgentRun>> {
    let index = format!("{}/{}", thread.namespace().unwrap_or_default(), thread.name_any());
    let mut runs = world.runs.under(&index);
    runs.retain(|run| !run.status.as_ref().is_some_and(is_over));
    runs.sort_by_key(|run| order(run));
    runs
}

fn order(run: &AgentRun) -> (Option<jiff::Timestamp>, String) {
    (
        run.metadata.creation_timestamp.as_ref().map(|time| time.0),
        run.name_any(),
    )
}

fn is_before(other: &AgentRun, run: &AgentRun) -> bool {
    other.uid() != run.uid() && order(other) < order(run)
}

async fn wait_for(
    world: &World,
    ahead: &AgentRun,
    count: usize,
    policy: Option<ConcurrencyPolicy>,
) -> Result<DataWait, ReconcileError> {
    let name = ahead.name_any();
    let message = format!("thread is used by run {name}; {count} runs ahead");
    match policy.unwrap_or(ConcurrencyPolicy::Queue) {
        ConcurrencyPolicy::Queue => Ok(DataWait {
            reason: DataWaitReason::ThreadBusy,
            message,
        }),
        ConcurrencyPolicy::Reject => {
            let message = format!("{message}, and concurrencyPolicy is Reject");
            Ok(DataWait {
                reason: DataWaitReason::Ends(FailedReason::Rejected),
                message,
            })
        }
        ConcurrencyPolicy::Replace => {
            let status = ahead.status.clone().unwrap_or_default();
            if status.cancel_requested_at.is_none() {
                let api: Api<AgentRun> = Api::namespaced(
                    world.operator.client.clone(),
                    &ahead.namespace().unwrap_or_default(),
                );
                let mut status = status;
                status.cancel_requested_at = Some(Time(world.now()));
                world.runs.wrote(write::status(&api, ahead, &status).await?);
            }
            Ok(DataWait {
                reason: DataWaitReason::ThreadBusy,
                message: format!("{message}; it is being replaced"),
            })
        }
    }
}

fn owner<K: Resource<DynamicType = ()>>(object: &K) -> OwnerReference {
    OwnerReference {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }
}

async fn ensure_claim(
    world: &World,
    namespace: &str,
    owner: Option<OwnerReference>,
    owner_uid: &str,
    template: &ClaimTemplate,
) -> Result<String, ReconcileError> {
    let is_owned = owner.is_some();
    let name = names::claim_name(owner_uid);
    if world.claims.get(namespace, &name).is_some() {
        return Ok(name);
    }
    let api: Api<PersistentVolumeClaim> = Api::namespaced(world.operator.client.clone(), namespace);
    let made = match api
        .create(&PostParams::default(), &claim(&name, namespace, owner, template))
        .await
    {
        Err(error) if already_exists(&error) => {
            let there = api.get(&name).await?;
            if is_owned
                && !there
                    .owner_references()
                    .iter()
                    .any(|known| known.uid == owner_uid)
            {
                return Err(ReconcileError::NameTaken {
                    kind: "PersistentVolumeClaim",
                    name,
                });
            }
            there
        }
        made => made?,
    };
    world.claims.wrote(made);
    Ok(name)
}

fn claim(
    name: &str,
    namespace: &str,
    owner: Option<OwnerReference>,
    template: &ClaimTemplate,
) -> PersistentVolumeClaim {
    let size = template
        .size
        .as_ref()
        .map_or(DEFAULT_SIZE, |size| size.0.as_str());
    let modes = template
        .access_modes
        .clone()
        .unwrap_or_else(|| vec![AccessMode::ReadWriteOnce]);
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(BTreeMap::from([(
                labels::MANAGED_BY.to_owned(),
                labels::MANAGED_BY_VALUE.to_owned(),
            )])),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(modes.into_iter().map(|mode| mode.as_str().to_owned()).collect()),
            storage_class_name: template.storage_class_name.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some(BTreeMap::from([(
                    "storage".to_owned(),
                    Quantity(size.to_owned()),
                )])),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
