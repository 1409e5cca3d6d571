//! What the operator knows of the cluster: one watch per kind, indexed, with its own writes laid over it.
//!
//! A watch lags behind. An object that we have just written is kept in an overlay until the watch has caught
//! up with it, so that no decision is made twice from a state that we ourselves have changed. Nothing depends
//! on that for safety (names are deterministic, writes carry the resource version); it saves useless writes.

use crate::health::Watches;
use futures::StreamExt as _;
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A watch request is renewed after this many seconds, below the idle limits of common load balancers.
const WATCH_SECONDS: u32 = 290;

/// Namespace and name.
pub type Key = (String, String);

/// Under which values an object is found.
pub type IndexBy<K> = fn(&K) -> Vec<String>;

/// Reads of one kind; clones share it.
pub struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    state: Arc<RwLock<State<K>>>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            state: Arc::clone(&self.state),
        }
    }
}

struct State<K> {
    index_by: IndexBy<K>,
    objects: HashMap<Key, Arc<K>>,
    index: HashMap<String, BTreeSet<Key>>,
    overlay: HashMap<Key, Arc<K>>,
    gone: Gone,
}

/// UIDs of objects that went lately. The answer to a write may be handled after the event that the object is gone:
/// without them it would come back for ever, since no event would follow.
#[derive(Default)]
struct Gone {
    uids: HashSet<String>,
    order: VecDeque<String>,
}

/// Far more than can go between a write and the handling of its answer.
const GONE_KEPT: usize = 4096;

impl Gone {
    fn add(&mut self, uid: String) {
        if self.uids.insert(uid.clone()) {
            self.order.push_back(uid);
        }
        if self.order.len() > GONE_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    fn has<K: Resource>(&self, object: &K) -> bool {
        object
            .meta()
            .uid
            .as_ref()
            .is_some_and(|uid| self.uids.contains(uid))
    }
}

/// Namespace and name of an object.
pub fn key<K: Resource>(object: &K) -> Key {
    (
        object.meta().namespace.clone().unwrap_or_default(),
        object.meta().name.clone().unwrap_or_default(),
    )
}

/// Resource versions of one API server are numbers that grow (Kubernetes says so since 1.35); where one is
/// not, nothing is known to be newer.
fn version<K: Resource>(object: &K) -> u64 {
    object
        .meta()
        .resource_version
        .as_ref()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}

impl<K> Cache<K>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
{
    /// An empty cache and the writer that fills it.
    pub fn new(index_by: IndexBy<K>) -> (Self, Writer<K>) {
        let (store, writer) = reflector::store();
        let state = State {
            index_by,
            objects: HashMap::new(),
            index: HashMap::new(),
            overlay: HashMap::new(),
            gone: Gone::default(),
        };
        (
            Self {
                store,
                state: Arc::new(RwLock::new(state)),
            },
            writer,
        )
    }

    /// The store behind it, for the work queue.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// The newest version that is known of an object.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<K>> {
        self.read().newest(&(namespace.to_owned(), name.to_owned()))
    }

    /// All objects under a value of the index.
    pub fn under(&self, value: &str) -> Vec<Arc<K>> {
        let state = self.read();
        state
            .index
            .get(value)
            .into_iter()
            .flatten()
            .filter_map(|key| state.newest(key))
            .collect()
    }

    /// All objects.
    pub fn all(&self) -> Vec<Arc<K>> {
        let state = self.read();
        state.objects.keys().filter_map(|key| state.newest(key)).collect()
    }

    /// Lays over what the API server answered to our own write.
    pub fn wrote(&self, object: K) {
        let mut state = self.write();
        let key = key(&object);
        let known = state.newest(&key);
        let outdated = known.is_some_and(|known| version(&*known) >= version(&object));
        if outdated || state.gone.has(&object) {
            return;
        }
        let object = Arc::new(object);
        state.add_to_index(&key, &object);
        state.overlay.insert(key, object);
    }

    /// Lays over the answer to a deletion that was asked for. An object that the watch has already seen go stays gone:
    /// the answer is older than that.
    pub fn is_going(&self, object: K) {
        let known = self.read().newest(&key(&object)).is_some();
        if known {
            self.wrote(object);
        }
    }

    /// Forgets an object that the API server says is gone.
    pub fn is_gone(&self, namespace: &str, name: &str) {
        self.write().remove(&(namespace.to_owned(), name.to_owned()));
    }

    /// What we have written and the watch has not shown, each with its UID.
    fn written(&self) -> Vec<(Key, Option<String>)> {
        let state = self.read();
        let unseen = state
            .overlay
            .iter()
            .filter(|(key, _)| !state.objects.contains_key(*key));
        unseen
            .map(|(key, object)| (key.clone(), object.meta().uid.clone()))
            .collect()
    }

    /// Forgets what a list does not have: what the watch has shown before, and what was written before the list was
    /// asked for. What we have made since is younger than the list.
    fn forget_missing(&self, listed: &BTreeSet<Key>, written: &[(Key, Option<String>)]) -> Vec<Arc<K>> {
        let mut state = self.write();
        let is_same = |(key, uid): &&(Key, Option<String>)| {
            state.newest(key).is_some_and(|object| object.meta().uid == *uid)
        };
        let unseen = written.iter().filter(is_same).map(|(key, _)| key);
        let known = state.objects.keys().chain(unseen);
        let missing: BTreeSet<Key> = known.filter(|key| !listed.contains(*key)).cloned().collect();
        missing.iter().filter_map(|key| state.remove(key)).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, State<K>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<K>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn applied(&self, object: &K) -> Option<Arc<K>> {
        let stored = self.store.get(&ObjectRef::from_obj(object))?;
        self.write().apply(&stored);
        Some(stored)
    }
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> State<K> {
    fn newest(&self, key: &Key) -> Option<Arc<K>> {
        self.overlay.get(key).or_else(|| self.objects.get(key)).cloned()
    }

    fn apply(&mut self, object: &Arc<K>) {
        let key = key(&**object);
        let seen = version(&**object);
        if self
            .overlay
            .get(&key)
            .is_some_and(|ours| version(&**ours) <= seen)
        {
            self.overlay.remove(&key);
        }
        self.add_to_index(&key, object);
        self.objects.insert(key, Arc::clone(object));
    }

    fn add_to_index(&mut self, key: &Key, object: &K) {
        for value in (self.index_by)(object) {
            self.index.entry(value).or_default().insert(key.clone());
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<K>> {
        let known = self.newest(key);
        if let Some(uid) = known.as_ref().and_then(|object| object.meta().uid.clone()) {
            self.gone.add(uid);
        }
        self.overlay.remove(key);
        self.objects.remove(key);
        for value in known.iter().flat_map(|object| (self.index_by)(object)) {
            if let Some(keys) = self.index.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.index.remove(&value);
                }
            }
        }
        known
    }
}

/// Keeps a cache filled until its future is dropped. `changed` is called after the cache has the change, for every
/// object that was made, changed, deleted, or found missing after a gap of the watch.
pub async fn fill<K>(
    name: &str,
    api: Api<DeserializeGuard<K>>,
    labels: Option<&str>,
    cache: Cache<K>,
    mut writer: Writer<K>,
    watches: Watches,
    changed: impl Fn(&K),
) where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    K::DynamicType: Eq + Hash,
{
    let config = watcher::Config {
        label_selector: labels.map(Into::into),
        ..watcher::Config::default()
    };
    let stream = watcher::watcher(api, config.timeout(WATCH_SECONDS)).default_backoff();
    let mut stream = std::pin::pin!(watches.follow(name, stream));
    let (mut listed, mut written) = (BTreeSet::new(), Vec::new());
    while let Some(event) = stream.next().await {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                tracing::warn!(watch = name, %error, "watch failed, retrying");
                continue;
            }
        };
        // One object that cannot be read must not hide the others.
        let Some(event) = readable(name, event) else {
            continue;
        };
        writer.apply_watcher_event(&event);
        match event {
            Event::Init => {
                listed.clear();
                written = cache.written();
            }
            Event::InitApply(object) => {
                listed.insert(key(&object));
            }
            Event::InitDone => {
                let gone = cache.forget_missing(&listed, &written);
                let there = cache.store.state();
                for object in &there {
                    cache.write().apply(object);
                }
                gone.iter().chain(&there).for_each(|object| changed(object));
            }
            Event::Apply(object) => {
                if let Some(object) = cache.applied(&object) {
                    changed(&object);
                }
            }
            Event::Delete(object) => {
                cache.write().remove(&key(&object));
                changed(&object);
            }
        }
    }
}

fn readable<K: Resource<DynamicType = ()>>(
    name: &str,
    event: Event<DeserializeGuard<K>>,
) -> Option<Event<K>> {
    let read = |guard: DeserializeGuard<K>| {
        let (namespace, object) = (guard.namespace().unwrap_or_default(), guard.name_any());
        match guard.0 {
            Ok(object) => Some(object),
            Err(error) => {
                tracing::error!(watch = name, namespace, name = object, error = %error.error, "unreadable object left out");
                None
            }
        }
    };
    Some(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(object) => Event::InitApply(read(object)?),
        Event::Apply(object) => Event::Apply(read(object)?),
        Event::Delete(object) => Event::Delete(read(object)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;

    fn object(name: &str, version: u64, label: &str) -> ConfigMap {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.into());
        object.metadata.namespace = Some("ns".into());
        object.metadata.resource_version = Some(version.to_string());
        object.metadata.labels = Some([("l".to_owned(), label.to_owned())].into());
        object
    }

    fn index_by(object: &ConfigMap) -> Vec<String> {
        object.labels().get("l").cloned().into_iter().collect()
    }

    fn version_of(cache: &Cache<ConfigMap>, name: &str) -> Option<u64> {
        cache.get("ns", name).map(|object| version(&*object))
    }

    #[test]
    fn our_own_write_is_seen_before_the_watch_brings_it() {
        // F084
        let (cache, mut writer) = Cache::new(index_by);
        cache.wrote(object("a", 5, "x"));
        assert_eq!(version_of(&cache, "a"), Some(5));
        assert_eq!(cache.under("x").len(), 1);
        let seen = |writer: &mut Writer<ConfigMap>, version| {
            writer.apply_watcher_event(&Event::Apply(object("a", version, "x")));
            cache.applied(&object("a", version, "x"));
        };
        seen(&mut writer, 4);
        assert_eq!(
            version_of(&cache, "a"),
            Some(5),
            "an older event does not hide our write"
        );
        seen(&mut writer, 6);
        assert_eq!(version_of(&cache, "a"), Some(6));
    }

    #[test]
    fn what_we_made_and_the_watch_never_showed_is_gone_when_a_later_list_lacks_it() {
        // F093
        let (cache, _writer) = Cache::new(index_by);
        cache.wrote(object("before", 5, "x"));
        let written = cache.written();
        cache.wrote(object("meanwhile", 6, "x"));
        let gone = cache.forget_missing(&BTreeSet::new(), &written);
        assert_eq!(gone.len(), 1);
        assert_eq!(version_of(&cache, "before"), None);
        assert_eq!(version_of(&cache, "meanwhile"), Some(6), "the list is older");
    }

    #[test]
    fn an_answer_that_comes_after_the_deletion_brings_nothing_back() {
        let (cache, _) = Cache::new(index_by);
        let with_uid = |version, uid: &str| {
            let mut object = object("a", version, "x");
            object.metadata.uid = Some(uid.into());
            object
        };
        cache.wrote(with_uid(5, "first"));
        cache.is_gone("ns", "a");
        cache.wrote(with_uid(6, "first"));
        assert_eq!(version_of(&cache, "a"), None);
        assert!(cache.under("x").is_empty());
        cache.wrote(with_uid(7, "second"));
        assert_eq!(version_of(&cache, "a"), Some(7), "the name may be taken again");
    }

    #[test]
    fn the_answer_to_a_deletion_does_not_bring_an_object_back() {
        let (cache, _writer) = Cache::new(index_by);
        cache.wrote(object("a", 5, "x"));
        cache.is_gone("ns", "a");
        cache.is_going(object("a", 6, "x"));
        assert_eq!(version_of(&cache, "a"), None);
        cache.wrote(object("b", 5, "x"));
        cache.is_going(object("b", 6, "x"));
        assert_eq!(version_of(&cache, "b"), Some(6));
    }

    #[test]
    fn an_object_that_is_gone_leaves_every_index() {
        let (cache, _writer) = Cache::new(index_by);
        cache.wrote(object("a", 5, "x"));
        cache.is_gone("ns", "a");
        assert!(cache.under("x").is_empty());
        assert!(cache.read().index.is_empty());
        assert_eq!(version_of(&cache, "a"), None);
    }
}
