//! Who wants to know of what the watches see of a run.

use crate::board::Name;
use agentrun_api::{AgentRun, SubTask};
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Is told of what the watches see of one run. Called by the watches themselves: it must not wait.
pub(crate) trait Sink: Debug + Send + Sync {
    /// The run, as it is now.
    fn run(&self, run: &AgentRun);
    /// A sub-task that names the run, as it is now.
    fn subtask(&self, subtask: &SubTask);
    /// The run with this UID was deleted.
    fn deleted(&self, uid: &str);
    /// The watch began anew: whatever was deleted meanwhile was not told.
    fn begun_anew(&self);
}

/// The sinks by the name of their run.
#[derive(Debug, Default)]
pub(crate) struct Sightings {
    sinks: Mutex<HashMap<Name, Vec<Weak<dyn Sink>>>>,
}

impl Sightings {
    /// Tells `sink` of the run called `name` from now on, until it is dropped.
    pub(crate) fn tell(&self, name: &Name, sink: Weak<dyn Sink>) {
        let mut sinks = self.lock();
        // Sinks that are gone go with the next that comes: the map is as large as the largest number of runs that were
        // looked at together.
        sinks.retain(|_, sinks| {
            sinks.retain(|sink| sink.strong_count() > 0);
            !sinks.is_empty()
        });
        sinks.entry(name.clone()).or_default().push(sink);
    }

    pub(crate) fn run(&self, run: &AgentRun) {
        self.of(&Name::of(run)).iter().for_each(|sink| sink.run(run));
    }

    pub(crate) fn subtask(&self, subtask: &SubTask) {
        let name = Name {
            name: subtask.spec.run_ref.name.clone(),
            ..Name::of(subtask)
        };
        self.of(&name).iter().for_each(|sink| sink.subtask(subtask));
    }

    pub(crate) fn deleted(&self, name: &Name, uid: &str) {
        self.of(name).iter().for_each(|sink| sink.deleted(uid));
    }

    pub(crate) fn begun_anew(&self) {
        let all: Vec<_> = self.lock().values().flatten().filter_map(Weak::upgrade).collect();
        for sink in all {
            sink.begun_anew();
        }
    }

    fn of(&self, name: &Name) -> Vec<Arc<dyn Sink>> {
        let sinks = self.lock();
        let sinks = sinks.get(name).into_iter().flatten();
        sinks.filter_map(Weak::upgrade).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Vec<Weak<dyn Sink>>>> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
