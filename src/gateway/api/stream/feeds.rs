//! The feeds of all runs that somebody reads, and how many read.

use super::feed::Feed;
use super::sightings::{Sightings, Sink};
use crate::api::bounds;
use crate::api::cluster::Cluster;
use crate::api::problem::{Code, Problem};
use crate::board::Name;
use prometheus::IntGauge;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The feeds by the name of their run.
#[derive(Debug, Default)]
pub(crate) struct Feeds {
    feeds: Mutex<HashMap<Name, Weak<Feed>>>,
    readers: Arc<Mutex<HashMap<String, usize>>>,
}

impl Feeds {
    /// The feed of a run, with everything that is known so far.
    pub(crate) async fn open(
        &self,
        name: &Name,
        cluster: &Arc<Cluster>,
        sightings: &Sightings,
    ) -> Result<Arc<Feed>, Problem> {
        let feed = self.feed(name, cluster, sightings);
        feed.load().await?;
        Ok(feed)
    }

    fn feed(&self, name: &Name, cluster: &Arc<Cluster>, sightings: &Sightings) -> Arc<Feed> {
        let mut feeds = lock(&self.feeds);
        let known = feeds.get(name).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|feed| !feed.is_deleted()) {
            return known;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Feed::new(name.clone(), Arc::clone(cluster));
        let sink: Arc<dyn Sink> = feed.clone();
        sightings.tell(name, Arc::downgrade(&sink));
        feeds.insert(name.clone(), Arc::downgrade(&feed));
        feed
    }

    /// A place for a reader, given back when it is dropped.
    pub(crate) fn place(&self, namespace: &str, gauge: &IntGauge) -> Result<Place, Problem> {
        let mut readers = lock(&self.readers);
        let open = readers.entry(namespace.to_owned()).or_default();
        if *open >= bounds::STREAMS {
            let message = format!(
                "namespace {namespace} has {open} streams open at this gateway, at most {} are served: close some, or come back",
                bounds::STREAMS
            );
            return Err(Problem::new(Code::TooManyRequests, message));
        }
        *open += 1;
        gauge.inc();
        Ok(Place {
            namespace: namespace.to_owned(),
            readers: Arc::clone(&self.readers),
            gauge: gauge.clone(),
        })
    }
}

/// One reader's place.
#[derive(Debug)]
pub(crate) struct Place {
    namespace: String,
    readers: Arc<Mutex<HashMap<String, usize>>>,
    gauge: IntGauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.gauge.dec();
        let mut readers = lock(&self.readers);
        if let Some(open) = readers.get_mut(&self.namespace) {
            *open -= 1;
            if *open == 0 {
                readers.remove(&self.namespace);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
