//! Waiting: for a condition, by watch, with a deadline. Nothing here looks at intervals.

use futures::StreamExt as _;
use kube::Api;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

/// Long enough for a Pod or two on a node that is busy; what must be quicker is measured by times in objects.
pub const MINUTE: Duration = Duration::from_mins(1);

/// The objects that a watch has shown, by name.
pub type Seen<K> = BTreeMap<String, K>;

/// The one object of this name.
pub fn named(name: &str) -> watcher::Config {
    watcher::Config::default().fields(&format!("metadata.name={name}"))
}

/// All objects that a label selector selects.
pub fn labelled(selector: &str) -> watcher::Config {
    watcher::Config::default().labels(selector)
}

/// All objects.
pub const NONE: &str = "";

/// Waits until `found` finds something among the objects, and gives it. Panics at the deadline with what was seen.
pub async fn until<K, T>(
    api: &Api<K>,
    config: watcher::Config,
    deadline: Duration,
    what: &str,
    mut found: impl FnMut(&Seen<K>) -> Option<T>,
) -> T
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut seen = Seen::new();
    let mut complaint = String::new();
    let look = async {
        let mut events = watcher::watcher(api.clone(), config).default_backoff().boxed();
        let mut ready = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => note(&mut seen, &mut ready, event),
                Err(error) => complaint = format!("; the last watch error: {error}"),
            }
            if let Some(thing) = ready.then(|| found(&seen)).flatten() {
                return thing;
            }
        }
        panic!("the watch ended")
    };
    if let Ok(thing) = tokio::time::timeout(deadline, look).await {
        return thing;
    }
    let names: Vec<_> = seen.keys().collect();
    panic!("not within {deadline:?}: {what}; objects seen: {names:?}{complaint}")
}

fn note<K: kube::Resource>(seen: &mut Seen<K>, ready: &mut bool, event: Event<K>) {
    match event {
        Event::Init => {
            seen.clear();
            *ready = false;
        }
        Event::InitApply(object) | Event::Apply(object) => {
            seen.insert(object.meta().name.clone().unwrap_or_default(), object);
        }
        Event::Delete(object) => {
            seen.remove(object.meta().name.as_deref().unwrap_or_default());
        }
        Event::InitDone => *ready = true,
    }
}
