//! The connect loop.

use super::backoff::Backoff;
use super::connect::connect;
use super::outbox::Outbox;
use super::session::{self, SessionEnd};
use super::tls::Trust;
use crate::chain;
use crate::settings::Gateway;
use agentrun_protocol::channel::Refusal;
use agentrun_protocol::work::{Assignment, AttemptId};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// What the gateway wants.
#[derive(Debug)]
pub enum Event {
    /// Do this.
    Assign(Box<Assignment>),
    /// End this.
    Cancel {
        /// The attempt to end.
        id: AttemptId,
        /// Between the two signals.
        grace: Duration,
    },
    /// Exit: the gateway will never serve us.
    Refused(Refusal),
}

/// Connects again and again, for ever; returns only after a refusal that no new connection can change.
pub async fn run(gateway: Gateway, trust: Trust, outbox: Outbox, events: mpsc::Sender<Event>) {
    let mut backoff = Backoff::default();
    let mut address = gateway.address;
    loop {
        let mut welcomed = false;
        let end = match connect(&gateway, address, &trust).await {
            Ok(connection) => {
                session::serve(
                    connection,
                    &gateway.runtime_digest,
                    &outbox,
                    &events,
                    &mut welcomed,
                )
                .await
            }
            Err(error) => {
                tracing::warn!(%address, error = chain(&error), "the gateway was not reached");
                address = gateway.address;
                sleep(backoff.next()).await;
                continue;
            }
        };
        if welcomed {
            backoff.reset();
        }
        match after(end) {
            Next::Exit(refusal) => {
                // An error means that the runtime is about to exit anyway.
                let _ = events.send(Event::Refused(refusal)).await;
                return;
            }
            Next::There(other) => address = other,
            Next::Again => address = gateway.address,
        }
        sleep(backoff.next()).await;
    }
}

enum Next {
    Exit(Refusal),
    There(SocketAddr),
    Again,
}

fn after(end: SessionEnd) -> Next {
    match end {
        SessionEnd::Redirect(address) => {
            tracing::info!(%address, "redirected");
            Next::There(address)
        }
        // Superseded by a connection that we made ourselves and lost sight of: connect again.
        SessionEnd::Refused(Refusal::Superseded, message) => {
            tracing::warn!(message, "superseded");
            Next::Again
        }
        SessionEnd::Refused(code, message) => {
            tracing::error!(?code, message, "the gateway refused this runtime");
            Next::Exit(code)
        }
        SessionEnd::Broken(error) => {
            tracing::warn!(error = chain(&error), "the stream to the gateway ended");
            Next::Again
        }
    }
}
