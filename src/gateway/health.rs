//! Whether this gateway should be sent anyone.

use crate::bounds;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

/// The watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// SubTasks.
    SubTasks,
    /// AgentRuns.
    AgentRuns,
    /// Skills.
    Skills,
    /// SandboxPools.
    SandboxPools,
    /// Models.
    Models,
}

impl Watch {
    pub(crate) const ALL: [Self; 5] = [
        Self::SubTasks,
        Self::AgentRuns,
        Self::Skills,
        Self::SandboxPools,
        Self::Models,
    ];

    /// Its label in metrics and logs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::SubTasks => "SubTask",
            Self::AgentRuns => "AgentRun",
            Self::Skills => "Skill",
            Self::SandboxPools => "SandboxPool",
            Self::Models => "Model",
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WatchState {
    synced: bool,
    failing_since: Option<Instant>,
}

/// What readiness is made of.
#[derive(Debug, Default)]
pub(crate) struct Health {
    watches: Mutex<[WatchState; Watch::ALL.len()]>,
    certificate: AtomicBool,
    stopping: AtomicBool,
}

impl Health {
    /// The first list of a watch is complete.
    pub(crate) fn watch_synced(&self, watch: Watch) {
        self.lock()[watch as usize].synced = true;
    }

    /// A watch brought something.
    pub(crate) fn watch_works(&self, watch: Watch) {
        self.lock()[watch as usize].failing_since = None;
    }

    /// A watch failed and will be tried again.
    pub(crate) fn watch_fails(&self, watch: Watch) {
        self.lock()[watch as usize]
            .failing_since
            .get_or_insert_with(Instant::now);
    }

    /// A certificate is loaded.
    pub(crate) fn certificate_loaded(&self) {
        self.certificate.store(true, Ordering::Relaxed);
    }

    /// No new work, please.
    pub(crate) fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether every watch has brought its first list.
    pub(crate) fn is_synced(&self) -> bool {
        self.lock().iter().all(|watch| watch.synced)
    }

    /// Nothing, or why this gateway is not ready.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some("shutting down".into());
        }
        if !self.certificate.load(Ordering::Relaxed) {
            return Some("waiting for the serving certificate".into());
        }
        let states = *self.lock();
        let problem = |watch: Watch| {
            let state = states[watch as usize];
            let failing = state
                .failing_since
                .is_some_and(|since| since.elapsed() > bounds::WATCH_FAILING);
            match (state.synced, failing) {
                (false, _) => Some(format!("the first list of {} is not complete", watch.as_str())),
                (true, true) => Some(format!("the watch of {} fails", watch.as_str())),
                (true, false) => None,
            }
        };
        Watch::ALL.into_iter().find_map(problem)
    }

    fn lock(&self) -> MutexGuard<'_, [WatchState; Watch::ALL.len()]> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready() -> Health {
        let health = Health::default();
        health.certificate_loaded();
        for watch in Watch::ALL {
            health.watch_synced(watch);
        }
        health
    }

    #[test]
    fn ready_needs_certificate_and_every_watch() {
        assert_eq!(ready().not_ready(), None);
        assert!(Health::default().not_ready().unwrap().contains("certificate"));
        let health = Health::default();
        health.certificate_loaded();
        health.watch_synced(Watch::SubTasks);
        assert!(health.not_ready().unwrap().contains("AgentRun"));
    }

    // F092
    #[tokio::test(start_paused = true)]
    async fn a_watch_that_keeps_failing_makes_unready_until_it_works_again() {
        let health = ready();
        health.watch_fails(Watch::Skills);
        assert_eq!(health.not_ready(), None);
        tokio::time::advance(bounds::WATCH_FAILING * 2).await;
        assert!(health.not_ready().unwrap().contains("Skill"));
        health.watch_works(Watch::Skills);
        assert_eq!(health.not_ready(), None);
    }

    #[test]
    fn a_gateway_that_stops_is_not_ready() {
        let health = ready();
        health.stopping();
        assert_eq!(health.not_ready().unwrap(), "shutting down");
    }
}
