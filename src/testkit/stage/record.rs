//! Every object that was ever made: the API server's own word, read from a watch that misses nothing.

use crate::cluster::Namespace;
use agentrun_api::SubTask;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinSet;

type Uids = Mutex<BTreeMap<String, BTreeSet<String>>>;

/// Names, each with the UIDs of the objects that ever had it.
#[derive(Default)]
pub struct Made {
    pods: Uids,
    subtasks: Uids,
}

impl Made {
    /// How many Pods of each name there ever were.
    pub fn pods(&self) -> BTreeMap<String, usize> {
        counts(&self.pods)
    }

    /// How many SubTasks of each name there ever were.
    pub fn subtasks(&self) -> BTreeMap<String, usize> {
        counts(&self.subtasks)
    }
}

fn counts(uids: &Uids) -> BTreeMap<String, usize> {
    let uids = uids.lock().unwrap_or_else(PoisonError::into_inner);
    uids.iter()
        .map(|(name, uids)| (name.clone(), uids.len()))
        .collect()
}

pub(super) async fn start(namespace: &Namespace, made: &Arc<Made>, tasks: &mut JoinSet<()>) {
    let pods = from_now::<Pod>(namespace).await;
    tasks.spawn(follow(namespace.api::<Pod>(), pods, Arc::clone(made), |made| {
        &made.pods
    }));
    let subtasks = from_now::<SubTask>(namespace).await;
    tasks.spawn(follow(
        namespace.api::<SubTask>(),
        subtasks,
        Arc::clone(made),
        |made| &made.subtasks,
    ));
}

async fn from_now<K>(namespace: &Namespace) -> String
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let list = namespace.api::<K>().list(&ListParams::default()).await;
    let list = list.unwrap_or_else(|error| panic!("list of {}: {error}", K::plural(&())));
    list.metadata.resource_version.expect("a list has a version")
}

async fn follow<K>(api: Api<K>, mut version: String, made: Arc<Made>, uids: fn(&Made) -> &Uids)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + 'static,
{
    loop {
        let Ok(events) = api.watch(&WatchParams::default(), &version).await else {
            continue;
        };
        let mut events = std::pin::pin!(events);
        while let Ok(Some(event)) = events.try_next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap_or(version);
                    let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
                    let mut uids = uids(&made).lock().unwrap_or_else(PoisonError::into_inner);
                    uids.entry(name).or_default().insert(uid);
                }
                WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                WatchEvent::Error(error) => panic!("the record of {} has a hole: {error:?}", K::plural(&())),
            }
        }
    }
}
