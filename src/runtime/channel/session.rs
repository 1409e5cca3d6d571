//! One connection from hello to its end.

use super::connect::Connection;
use super::outbox::Outbox;
use super::run::Event;
use crate::chain;
use crate::task::Task;
use agentrun_protocol::channel::{IDLE_MS, PING_MS, Refusal, ToGateway, ToRuntime};
use agentrun_protocol::frame::{self, Decoder, FrameError};
use agentrun_protocol::version;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// How a session ended.
#[derive(Debug)]
pub(super) enum SessionEnd {
    /// Connect again, sooner or later.
    Broken(SessionError),
    /// Connect to this gateway.
    Redirect(SocketAddr),
    /// The gateway will not serve us.
    Refused(Refusal, String),
}

/// What broke a session.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("the gateway ended the stream")]
    Closed,
    #[error("nothing was heard for {IDLE_MS} ms")]
    Idle,
    #[error("the stream broke")]
    Http(#[from] hyper::Error),
    #[error("the gateway does not speak the protocol")]
    Frame(#[from] FrameError),
    #[error("redirected to {0:?}, which is no IP:PORT")]
    Redirect(String),
}

/// Says hello and carries messages until the connection ends. `welcomed` tells whether the gateway accepted us.
pub(super) async fn serve(
    connection: Connection,
    runtime_digest: &str,
    outbox: &Outbox,
    events: &mpsc::Sender<Event>,
    welcomed: &mut bool,
) -> SessionEnd {
    let mut session = Session {
        frames: connection.frames,
        inbox: Inbox {
            body: connection.body,
            decoder: Decoder::default(),
        },
        said: Instant::now(),
        heard: Instant::now(),
        _driver: connection.driver,
        greeted: false,
        waiting: None,
    };
    let end = session.run(runtime_digest, outbox, events, welcomed).await;
    outbox.close();
    end
}

struct Session {
    frames: mpsc::Sender<Bytes>,
    inbox: Inbox,
    _driver: Task<()>,
    said: Instant,
    heard: Instant,
    /// Whether the first message has been said.
    greeted: bool,
    /// The message that waits for room on the wire.
    waiting: Option<ToGateway>,
}

impl Session {
    async fn run(
        &mut self,
        runtime_digest: &str,
        outbox: &Outbox,
        events: &mpsc::Sender<Event>,
        welcomed: &mut bool,
    ) -> SessionEnd {
        let frames = self.frames.clone();
        loop {
            let idle = self.heard + Duration::from_millis(IDLE_MS);
            let ping = self.said + Duration::from_millis(PING_MS);
            let step = tokio::select! {
                message = self.inbox.next() => {
                    self.heard = Instant::now();
                    match message {
                        Ok(message) => self.hear(message, outbox, events, welcomed).await,
                        Err(error) => Some(SessionEnd::Broken(error)),
                    }
                }
                permit = frames.reserve(), if self.waiting.is_some() => match permit {
                    Ok(permit) => say(permit, self.waiting.take(), &mut self.said),
                    Err(_) => Some(SessionEnd::Broken(SessionError::Closed)),
                },
                message = outbox.next(), if self.waiting.is_none() && *welcomed => {
                    self.waiting = Some(message);
                    None
                }
                () = outbox.until_ready(), if !self.greeted => {
                    self.greeted = true;
                    self.waiting = Some(ToGateway::Hello {
                        protocol: version::CURRENT,
                        runtime_digest: runtime_digest.to_owned(),
                        running: outbox.running(),
                    });
                    None
                }
                () = sleep_until(ping), if self.waiting.is_none() && self.greeted => {
                    self.waiting = Some(ToGateway::Ping);
                    None
                }
                () = sleep_until(idle) => Some(SessionEnd::Broken(SessionError::Idle)),
            };
            if let Some(end) = step {
                return end;
            }
        }
    }

    async fn hear(
        &mut self,
        message: ToRuntime,
        outbox: &Outbox,
        events: &mpsc::Sender<Event>,
        welcomed: &mut bool,
    ) -> Option<SessionEnd> {
        let event = match outbox.take(message)? {
            ToRuntime::Welcome { protocol } => {
                tracing::info!(%protocol, "welcomed by the gateway");
                *welcomed = true;
                outbox.open();
                return None;
            }
            ToRuntime::Refused { code, message } => return Some(SessionEnd::Refused(code, message)),
            ToRuntime::Redirect { address } => {
                let parsed = address.parse().map(SessionEnd::Redirect);
                return Some(parsed.unwrap_or(SessionEnd::Broken(SessionError::Redirect(address))));
            }
            ToRuntime::Assign(assignment) => Event::Assign(assignment),
            ToRuntime::Cancel { id, grace_ms } => Event::Cancel {
                id,
                grace: Duration::from_millis(grace_ms),
            },
            _ => return None,
        };
        // An error means that the runtime is about to exit.
        let _ = events.send(event).await;
        None
    }
}

fn say(
    permit: mpsc::Permit<'_, Bytes>,
    message: Option<ToGateway>,
    said: &mut Instant,
) -> Option<SessionEnd> {
    match frame::encode(&message?) {
        Ok(bytes) => {
            permit.send(bytes.into());
            *said = Instant::now();
        }
        // Another connection could not carry it either.
        Err(error) => tracing::error!(error = chain(&error), "a message for the gateway was not sent"),
    }
    None
}

struct Inbox {
    body: Incoming,
    decoder: Decoder,
}

impl Inbox {
    /// The next message. May be dropped and called again.
    async fn next(&mut self) -> Result<ToRuntime, SessionError> {
        loop {
            if let Some(message) = self.decoder.next()? {
                return Ok(message);
            }
            let Some(frame) = self.body.frame().await else {
                return Err(SessionError::Closed);
            };
            if let Some(data) = frame?.data_ref() {
                self.decoder.push(data);
            }
        }
    }
}
