//! One leader at a time, and the old one stops before another starts.
//!
//! The holder renews the Lease every [`Election::retry`]. If it could not for [`Election::renew_deadline`], counted by
//! its monotonic clock from the moment before the last successful request was sent, its [`Fence`] closes by itself:
//! from then on the reconcilers' client refuses writes, even where the process was paused and nothing else has noticed
//! yet. Others take the Lease only when they saw it unchanged for the whole `lease` duration by their own monotonic
//! clock, which began later than the holder's. Clocks of different machines are never compared.

mod decide;
mod fence;

pub use decide::Election;
pub use fence::{Fence, NotLeading};

use decide::{Observed, Step};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use std::future::Future;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Name of the Lease in the operator's namespace.
pub const LEASE: &str = "agentrun-operator";
/// How long a leader that shuts down may take to end its reconciles.
const DRAIN_BOUND: Duration = Duration::from_secs(20);

/// Leadership ended otherwise than by shutdown.
#[derive(Debug, thiserror::Error)]
pub enum LeadError {
    /// The Lease could not be renewed in time, or another holder has it.
    #[error("the lease was lost: {0}")]
    Lost(String),
    /// What the leader ran has ended.
    #[error("the controllers have ended by themselves")]
    Ended,
}

/// Waits for the Lease, runs `run` while it is held, and gives it back. The token that `run` gets is cancelled when the
/// Lease is lost or `shutdown` is asked for; after a loss what has not ended by the Lease's expiry is dropped.
pub async fn lead<F, Fut>(
    client: Client,
    election: Election,
    fence: Fence,
    shutdown: CancellationToken,
    run: F,
) -> Result<(), LeadError>
where
    F: FnOnce(CancellationToken) -> Fut,
    Fut: Future<Output = ()>,
{
    let holder = Holder {
        api: Api::namespaced(client, &election.namespace),
        election,
        fence,
    };
    let Some(lease) = holder.acquire(&shutdown).await else {
        return Ok(());
    };
    tracing::info!(holder = holder.election.identity, "leading");
    let stop = CancellationToken::new();
    let work = run(stop.clone());
    tokio::pin!(work);
    let mut renewal = tokio::spawn(holder.clone().renew(lease));
    let end = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        () = &mut work => {
            holder.give_back(&mut renewal).await;
            return Err(LeadError::Ended);
        }
        lost = &mut renewal => Err(LeadError::Lost(lost.unwrap_or_else(|error| error.to_string()))),
    };
    stop.cancel();
    if end.is_err() {
        holder.fence.close();
        let left = holder
            .election
            .lease
            .saturating_sub(holder.election.renew_deadline);
        let _ = tokio::time::timeout(left, work).await;
        return end;
    }
    let drained = tokio::select! {
        drained = tokio::time::timeout(DRAIN_BOUND, work) => drained.is_ok(),
        lost = &mut renewal => return Err(LeadError::Lost(lost.unwrap_or_else(|error| error.to_string()))),
    };
    // What still runs may write: the next leader must wait until the Lease expires.
    if drained {
        holder.give_back(&mut renewal).await;
    } else {
        renewal.abort();
    }
    holder.fence.close();
    Ok(())
}

/// A candidate for the Lease, and its holder.
#[derive(Clone)]
struct Holder {
    api: Api<Lease>,
    election: Election,
    fence: Fence,
}

impl Holder {
    /// Waits until the Lease is ours; `None` on shutdown.
    async fn acquire(&self, shutdown: &CancellationToken) -> Option<Lease> {
        let mut observed = Observed::default();
        loop {
            let asked = Instant::now();
            let attempt = tokio::time::timeout(self.election.renew_deadline, self.try_acquire(&mut observed));
            match attempt.await {
                Ok(Ok(Some(lease))) => {
                    self.fence.open_until(asked + self.election.renew_deadline);
                    return Some(lease);
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "cannot ask for the lease"),
                Err(_) => tracing::warn!("the API server does not answer"),
            }
            tokio::select! {
                () = shutdown.cancelled() => return None,
                () = tokio::time::sleep(self.election.retry) => {}
            }
        }
    }

    async fn try_acquire(&self, observed: &mut Observed) -> Result<Option<Lease>, Error> {
        let found = self.api.get_opt(LEASE).await?;
        // After the answer: what it says was true no later than now.
        let now = Instant::now();
        let result = match self.election.step(found, observed, now) {
            Step::Wait => return Ok(None),
            Step::Create(lease) => self.api.create(&PostParams::default(), &lease).await,
            Step::Take(lease) => self.api.replace(LEASE, &PostParams::default(), &lease).await,
        };
        match result {
            Ok(lease) => Ok(Some(lease)),
            Err(error) if is_conflict(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews until that fails for too long; returns why.
    async fn renew(self, mut lease: Lease) -> String {
        let mut why = "it was not renewed".to_owned();
        loop {
            let left = self.fence.left(Instant::now());
            if left.is_zero() {
                return why;
            }
            tokio::time::sleep(self.election.retry.min(left)).await;
            let asked = Instant::now();
            let left = self.fence.left(asked);
            if left.is_zero() {
                return why;
            }
            let renewed = Election::renewed(&lease);
            match tokio::time::timeout(left, self.api.replace(LEASE, &PostParams::default(), &renewed)).await
            {
                Ok(Ok(stored)) => {
                    lease = stored;
                    self.fence.open_until(asked + self.election.renew_deadline);
                }
                Ok(Err(error)) if is_conflict(&error) => match self.reread().await {
                    Some(Ok(stored)) => lease = stored,
                    Some(Err(other)) => return other,
                    None => {}
                },
                Ok(Err(error)) => {
                    tracing::warn!(%error, "the lease was not renewed");
                    why = error.to_string();
                }
                Err(_) => "the API server did not answer".clone_into(&mut why),
            }
        }
    }

    /// After a conflict: an answer of ours may have been lost, or another holder has it.
    async fn reread(&self) -> Option<Result<Lease, String>> {
        let left = self.fence.left(Instant::now());
        let found = tokio::time::timeout(left, self.api.get_opt(LEASE))
            .await
            .ok()?
            .ok()?;
        let Some(lease) = found else {
            return Some(Err("the Lease was deleted".to_owned()));
        };
        match Election::holder(&lease) {
            Some(holder) if holder == self.election.identity => Some(Ok(lease)),
            holder => Some(Err(format!("{} holds it", holder.unwrap_or("nobody")))),
        }
    }

    /// Ends the renewal and leaves the Lease to whoever wants it.
    async fn give_back(&self, renewal: &mut tokio::task::JoinHandle<String>) {
        renewal.abort();
        let _ = renewal.await;
        self.fence.close();
        let released = async {
            let lease = self.api.get(LEASE).await?;
            if Election::holder(&lease) != Some(&*self.election.identity) {
                return Ok(());
            }
            self.api
                .replace(LEASE, &PostParams::default(), &Election::released(&lease))
                .await
                .map(drop)
        };
        match tokio::time::timeout(self.election.renew_deadline, released).await {
            Ok(Ok(())) => tracing::info!("the lease is given back"),
            Ok(Err(error)) => tracing::warn!(%error, "the lease expires by itself"),
            Err(_) => tracing::warn!("the lease expires by itself, the API server does not answer"),
        }
    }
}

fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

#[cfg(test)]
mod tests;
