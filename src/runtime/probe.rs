//! The isolation probe: before any user code, all that must be closed is tried, until it is closed.

use agentrun_protocol::probe::{Isolation, ProbeTargets};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

/// A handshake that takes longer does not count.
const HANDSHAKE: Duration = Duration::from_millis(200);
/// Between two rounds when something was open.
const PAUSE: Duration = Duration::from_millis(100);
/// Rounds running that must find everything closed.
const ROUNDS: u32 = 2;
/// How long an installation that does not require isolation waits for it, to report it rightly.
const NOT_REQUIRED: Duration = Duration::from_secs(1);

/// Tries all targets, in parallel, until two rounds running found all of them closed or `bound` is over.
pub async fn probe(targets: &ProbeTargets, bound: Duration) -> Isolation {
    let (bound, open) = if targets.required {
        (bound, Isolation::NotIsolated)
    } else {
        (bound.min(NOT_REQUIRED), Isolation::NotRequired)
    };
    if targets.closed.is_empty() {
        tracing::warn!("nothing was named that must be closed: isolation cannot be verified");
        return open;
    }
    let end = Instant::now() + bound;
    let mut closed = 0;
    while closed < ROUNDS {
        let Some(target) = first_open(targets).await else {
            closed += 1;
            continue;
        };
        closed = 0;
        if Instant::now() >= end {
            tracing::error!(%target, "the network of this Pod is not isolated");
            return open;
        }
        sleep(PAUSE).await;
    }
    Isolation::Verified
}

async fn first_open(targets: &ProbeTargets) -> Option<SocketAddr> {
    let mut attempts: JoinSet<Option<SocketAddr>> = targets
        .closed
        .iter()
        .chain(&targets.closed_if_there)
        .map(|target| is_open(*target))
        .collect();
    while let Some(attempt) = attempts.join_next().await {
        if let Ok(Some(open)) = attempt {
            return Some(open);
        }
    }
    None
}

async fn is_open(target: SocketAddr) -> Option<SocketAddr> {
    match timeout(HANDSHAKE, TcpStream::connect(target)).await {
        Ok(Ok(_)) => Some(target),
        Ok(Err(error)) if is_ours(&error) => {
            tracing::warn!(%target, %error, "the probe itself failed, which proves nothing");
            Some(target)
        }
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Errors of our own side: no packet was sent, so nothing is known.
fn is_ours(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let ours = [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOBUFS,
        Errno::NOMEM,
        Errno::ADDRNOTAVAIL,
    ];
    Errno::from_io_error(error).is_some_and(|errno| ours.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn open_port() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn targets(required: bool, closed: Vec<SocketAddr>, closed_if_there: Vec<SocketAddr>) -> ProbeTargets {
        ProbeTargets {
            required,
            closed,
            closed_if_there,
        }
    }

    async fn closed_port() -> SocketAddr {
        open_port().await.1
    }

    #[tokio::test]
    async fn an_open_target_is_waited_for_and_then_not_isolated() {
        let (_listener, open) = open_port().await;
        let bound = Duration::from_millis(300);
        let started = Instant::now();
        assert_eq!(
            probe(&targets(true, vec![open], vec![]), bound).await,
            Isolation::NotIsolated
        );
        assert!(started.elapsed() >= bound);
        assert_eq!(
            probe(&targets(false, vec![open], vec![]), bound).await,
            Isolation::NotRequired
        );
    }

    #[tokio::test]
    async fn a_target_that_closes_late_is_verified() {
        let (listener, address) = open_port().await;
        let targets = targets(true, vec![address], vec![]);
        let probing = probe(&targets, Duration::from_secs(10));
        let closing = async {
            listener.accept().await.unwrap();
            drop(listener);
        };
        let (isolation, ()) = tokio::join!(probing, closing);
        assert_eq!(isolation, Isolation::Verified);
    }

    #[tokio::test]
    async fn a_place_where_nothing_may_live_counts_when_it_connects() {
        let closed = closed_port().await;
        let (_listener, open) = open_port().await;
        let bound = Duration::from_millis(100);
        let found = probe(&targets(true, vec![closed], vec![open]), bound).await;
        assert_eq!(found, Isolation::NotIsolated);
        let found = probe(&targets(true, vec![closed], vec![closed]), bound).await;
        assert_eq!(found, Isolation::Verified);
    }

    // F108: an empty list allows nothing.
    #[tokio::test]
    async fn no_targets_prove_nothing() {
        assert_eq!(
            probe(&targets(true, vec![], vec![]), Duration::ZERO).await,
            Isolation::NotIsolated
        );
    }
}
