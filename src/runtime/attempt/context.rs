//! What all attempts of a Pod share, and what may end one of them.

use super::{LastSchemas, Pool};
use crate::channel::Outbox;
use crate::executor::Link;
use crate::settings::Settings;
use crate::store::skills::Skills;
use agentrun_core::redact::Secrets;
use agentrun_protocol::probe::Isolation;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::sync::watch;

/// Shared by all attempts of this Pod.
#[derive(Debug)]
pub struct Context {
    /// What the runtime was told.
    pub settings: Settings,
    /// The executor.
    pub link: Link,
    /// What stands nowhere in what is written down.
    pub secrets: Secrets,
    /// The gateway.
    pub outbox: Outbox,
    /// What the isolation probe found; `None` until it is over. Kept for the Pod.
    pub isolation: watch::Receiver<Option<Isolation>>,
    /// The skills that are there.
    pub skills: Skills,
    /// Processes that serve many calls.
    pub warm: Pool,
    /// The schemas of the function that was called last.
    pub schemas: LastSchemas,
    /// Whether the volume has passed its write test.
    pub volume_tested: AtomicBool,
}

/// An order to end an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
}

/// Hears the order to end one attempt.
#[derive(Clone, Debug)]
pub struct Control(watch::Receiver<Option<Stop>>);

impl Control {
    /// The sender gives the order.
    pub fn new() -> (watch::Sender<Option<Stop>>, Control) {
        let (sender, receiver) = watch::channel(None);
        (sender, Control(receiver))
    }

    /// Whether the order has come.
    pub fn is_stopped(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Returns when the order comes. May be dropped and called again.
    pub async fn stopped(&mut self) -> Stop {
        let order = self.0.wait_for(Option::is_some).await.ok().and_then(|stop| *stop);
        match order {
            Some(stop) => stop,
            // Nobody can give the order any more.
            None => std::future::pending().await,
        }
    }
}
