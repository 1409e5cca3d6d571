//! One runtime's stream, from its hello to its end.

use super::dialogue::Dialogue;
use super::inbox::{Inbox, ReceiveError};
use super::outbox::{Outbox, SendError};
use crate::auth::PodIdentity;
use crate::bounds;
use crate::gateway::Gateway;
use crate::text::chain;
use agentrun_protocol::channel::{IDLE_MS, PING_MS, Refusal, ToGateway, ToRuntime};
use agentrun_protocol::version::{self, Version};
use agentrun_protocol::work::AttemptId;
use bytes::Bytes;
use http_body::Body;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::Instrument as _;

/// Why a stream ended, other than by the runtime's own wish.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    #[error(transparent)]
    Send(#[from] SendError),
    #[error("the runtime said no hello in {} s", bounds::HELLO.as_secs())]
    NoHello,
    #[error("the first message is no hello")]
    NotHello,
    #[error("the runtime said nothing for {} s", IDLE_MS / 1000)]
    Idle,
    #[error("the runtime asked for more than {} contents at once", bounds::GETS)]
    TooManyGets,
    /// Ends the stream, so that the runtime reports again.
    #[error("the end of an attempt could not be stored")]
    NotStored,
}

/// Serves one stream to its end.
pub(crate) async fn serve<B>(gateway: Arc<Gateway>, pod: PodIdentity, body: B, outbox: Outbox)
where
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: std::fmt::Display,
{
    let span = tracing::info_span!(
        "channel",
        namespace = pod.namespace,
        pod = pod.name,
        pod_uid = pod.uid
    );
    let mut inbox = Inbox::new(body);
    async move {
        match run(gateway, pod, &mut inbox, outbox).await {
            Ok(()) => tracing::info!("channel closed"),
            Err(error) => {
                tracing::warn!(error = chain(&error), "channel broken");
            }
        }
    }
    .instrument(span)
    .await;
}

async fn run<B>(
    gateway: Arc<Gateway>,
    pod: PodIdentity,
    inbox: &mut Inbox<B>,
    outbox: Outbox,
) -> Result<(), SessionError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let Hello { protocol, running } = tokio::select! {
        hello = hello(inbox, &outbox) => hello?,
        () = gateway.stop.cancelled() => return Ok(()),
    };
    if !protocol.is_served() {
        let message = format!(
            "protocol {protocol} is not served here, this gateway speaks {}",
            version::CURRENT
        );
        return refuse(&gateway, &outbox, Refusal::VersionSkew, message).await;
    }
    outbox
        .send(&ToRuntime::Welcome {
            protocol: version::CURRENT,
        })
        .await?;
    let mut registration = gateway.streams.register(&pod.uid);
    let _connected = Connected::count(&gateway);
    tracing::info!(%protocol, "runtime connected");
    let mut dialogue = Dialogue::new(Arc::clone(&gateway), pod, outbox);
    if let Some(id) = running {
        dialogue.resume(id);
    }
    dialogue.look().await?;
    let mut heard = Instant::now();
    loop {
        let retry = if dialogue.is_waiting() {
            bounds::RETRY
        } else {
            Duration::MAX
        };
        tokio::select! {
            message = inbox.next() => {
                heard = Instant::now();
                match message? {
                    Some(message) => dialogue.hear(message).await?,
                    None => return Ok(()),
                }
            }
            _ = registration.signals.changed() => {
                if registration.signals.borrow_and_update().superseded {
                    let message = "a newer connection of this Pod took over".to_owned();
                    return refuse(&gateway, dialogue.outbox(), Refusal::Superseded, message).await;
                }
                dialogue.look().await?;
            }
            Some(done) = dialogue.job() => dialogue.finish(done).await?,
            () = tokio::time::sleep(retry) => dialogue.look().await?,
            () = tokio::time::sleep_until(heard + Duration::from_millis(IDLE_MS)) => {
                return Err(SessionError::Idle);
            }
            () = gateway.stop.cancelled() => return Ok(()),
        }
    }
}

/// What a runtime says first.
struct Hello {
    protocol: Version,
    running: Option<AttemptId>,
}

/// Waits for the hello, which comes when the executor answers: after the image of the sandbox is pulled. Until then the
/// stream is kept alive from here.
async fn hello<B>(inbox: &mut Inbox<B>, outbox: &Outbox) -> Result<Hello, SessionError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let latest = Instant::now() + bounds::HELLO;
    loop {
        tokio::select! {
            first = inbox.next() => return match first? {
                Some(ToGateway::Hello { protocol, running, .. }) => Ok(Hello { protocol, running }),
                _ => Err(SessionError::NotHello),
            },
            () = tokio::time::sleep(Duration::from_millis(PING_MS)) => outbox.send(&ToRuntime::Pong).await?,
            () = tokio::time::sleep_until(latest) => return Err(SessionError::NoHello),
        }
    }
}

async fn refuse(
    gateway: &Gateway,
    outbox: &Outbox,
    code: Refusal,
    message: String,
) -> Result<(), SessionError> {
    let label = match code {
        Refusal::VersionSkew => "VersionSkew",
        Refusal::Unauthenticated => "Unauthenticated",
        Refusal::Superseded => "Superseded",
    };
    gateway.metrics.refusals.with_label_values(&[label]).inc();
    tracing::info!(message, "runtime refused");
    Ok(outbox.send(&ToRuntime::Refused { code, message }).await?)
}

/// Counts a connected runtime for as long as it lives.
struct Connected(prometheus::IntGauge);

impl Connected {
    fn count(gateway: &Gateway) -> Self {
        gateway.metrics.runtimes.inc();
        Self(gateway.metrics.runtimes.clone())
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}
