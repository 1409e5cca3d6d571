//! Follows one kind of object and brings what it sees to the board.

use crate::api::Sightings;
use crate::board::{Board, Name, Touched};
use crate::gateway::Gateway;
use crate::health::Watch;
use crate::text::chain;
use agentrun_api::{AgentRun, Model, SandboxPool, Skill, SubTask};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::Api;
use kube::core::{DeserializeGuard, ObjectMeta};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

/// How a kind stands on the board.
pub(crate) trait Followed:
    kube::Resource<DynamicType = ()> + DeserializeOwned + Clone + Debug + Send + 'static
{
    /// Which watch this is.
    const WATCH: Watch;
    /// Tells those who wait for this object of it.
    fn tell(&self, _: &Sightings) {}
    /// Tells those who wait for this object that it is gone.
    fn tell_removed(_: &ObjectMeta, _: &Sightings) {}
    /// Tells those who wait for objects of this kind that the watch began anew.
    fn tell_begun_anew(_: &Sightings) {}
    /// Takes an object.
    fn put(self, board: &mut Board) -> Touched;
    /// Forgets the object with this metadata.
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched;
    /// Forgets everything but these UIDs.
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched;
}

impl Followed for SubTask {
    const WATCH: Watch = Watch::SubTasks;
    fn tell(&self, sightings: &Sightings) {
        sightings.subtask(self);
    }
    fn put(self, board: &mut Board) -> Touched {
        board.put_subtask(self)
    }
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched {
        board.remove_subtask(metadata.uid.as_deref().unwrap_or_default())
    }
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched {
        board.retain_subtasks(seen)
    }
}

impl Followed for AgentRun {
    const WATCH: Watch = Watch::AgentRuns;
    fn tell(&self, sightings: &Sightings) {
        sightings.run(self);
    }
    fn tell_removed(metadata: &ObjectMeta, sightings: &Sightings) {
        sightings.deleted(&name(metadata), metadata.uid.as_deref().unwrap_or_default());
    }
    fn tell_begun_anew(sightings: &Sightings) {
        sightings.begun_anew();
    }
    fn put(self, board: &mut Board) -> Touched {
        board.put_run(self)
    }
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched {
        board.remove_run(metadata.uid.as_deref().unwrap_or_default())
    }
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched {
        board.retain_runs(seen)
    }
}

impl Followed for Skill {
    const WATCH: Watch = Watch::Skills;
    fn put(self, board: &mut Board) -> Touched {
        board.put_skill(self)
    }
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched {
        board.remove_skill(&name(metadata))
    }
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched {
        board.retain_skills(seen)
    }
}

impl Followed for SandboxPool {
    const WATCH: Watch = Watch::SandboxPools;
    fn put(self, board: &mut Board) -> Touched {
        board.put_pool(self)
    }
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched {
        board.remove_pool(&name(metadata))
    }
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched {
        board.retain_pools(seen)
    }
}

impl Followed for Model {
    const WATCH: Watch = Watch::Models;
    fn put(self, board: &mut Board) -> Touched {
        board.put_model(self)
    }
    fn remove(metadata: &ObjectMeta, board: &mut Board) -> Touched {
        board.remove_model(&name(metadata))
    }
    fn retain(seen: &BTreeSet<String>, board: &mut Board) -> Touched {
        board.retain_models(seen)
    }
}

fn name(metadata: &ObjectMeta) -> Name {
    Name {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

/// Follows all objects of a kind in all namespaces, for ever.
pub(crate) async fn follow<K: Followed>(client: kube::Client, gateway: Arc<Gateway>) {
    let api: Api<DeserializeGuard<K>> = Api::all(client);
    let config = watcher::Config::default().timeout(crate::bounds::WATCH_SECONDS);
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut seen = BTreeSet::new();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => {
                gateway.health.watch_works(K::WATCH);
                take(event, &mut seen, &gateway);
            }
            Ok(None) => return,
            Err(error) => {
                gateway
                    .metrics
                    .watch_failures
                    .with_label_values(&[K::WATCH.as_str()])
                    .inc();
                gateway.health.watch_fails(K::WATCH);
                tracing::warn!(
                    error = chain(&error),
                    kind = K::WATCH.as_str(),
                    "watch failed, trying again"
                );
            }
        }
    }
}

fn take<K: Followed>(
    event: watcher::Event<DeserializeGuard<K>>,
    seen: &mut BTreeSet<String>,
    gateway: &Gateway,
) {
    match event {
        watcher::Event::Init => seen.clear(),
        watcher::Event::InitApply(object) => {
            seen.extend(metadata(&object).uid.clone());
            put(object, gateway);
        }
        watcher::Event::InitDone => {
            let seen = std::mem::take(seen);
            gateway.change(|board| K::retain(&seen, board));
            K::tell_begun_anew(&gateway.sightings);
            gateway.health.watch_synced(K::WATCH);
        }
        watcher::Event::Apply(object) => put(object, gateway),
        watcher::Event::Delete(object) => {
            K::tell_removed(metadata(&object), &gateway.sightings);
            gateway.change(|board| K::remove(metadata(&object), board));
        }
    }
}

fn metadata<K: Followed>(object: &DeserializeGuard<K>) -> &ObjectMeta {
    match &object.0 {
        Ok(object) => object.meta(),
        Err(invalid) => &invalid.metadata,
    }
}

/// An object that this version cannot read is told and left as it was last seen.
fn put<K: Followed>(object: DeserializeGuard<K>, gateway: &Gateway) {
    match object.0 {
        Ok(object) => {
            object.tell(&gateway.sightings);
            gateway.change(|board| object.put(board));
        }
        Err(invalid) => {
            let name = invalid.metadata.name.clone().unwrap_or_default();
            let error = &invalid.error;
            tracing::warn!(
                kind = K::WATCH.as_str(),
                name,
                error,
                "object cannot be read, it is left out"
            );
        }
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
