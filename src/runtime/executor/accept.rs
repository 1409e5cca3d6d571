//! Takes the executor's connection before any user code runs, and no other one after it.

use super::Link;
use crate::frames::{FrameReader, ReadError};
use agentrun_core::redact::Secrets;
use agentrun_protocol::environment::SandboxFacts;
use agentrun_protocol::executor::{ToExecutor, ToRuntime};
use agentrun_protocol::frame::{self, FrameError};
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// Why there is no executor.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// The socket could not be made or read.
    #[error("the executor's socket failed")]
    Io(#[from] io::Error),
    /// Nobody connected, or nobody answered.
    #[error("the executor did not answer within {0:?}; look at the log of the container `sandbox`")]
    Late(Duration),
    /// It found its container other than expected.
    #[error("the executor refused its container: {0}")]
    Refused(String),
    /// It went away before it was ready.
    #[error("the executor closed its connection before it was ready")]
    Gone,
    /// It answered something else.
    #[error("the executor does not speak the protocol; both come from one image")]
    Protocol(#[source] ReadError),
    /// The expectation does not fit a frame.
    #[error("the expected mounts cannot be sent")]
    Expectation(#[source] FrameError),
}

/// Listens at `socket`, for processes of our own user only.
pub fn bind(socket: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Waits at most `bound` for the executor and its `Ready`, and removes `socket` as soon as it connected. Gives the
/// secrets of its container, too.
pub async fn accept(
    listener: UnixListener,
    socket: &Path,
    facts: &SandboxFacts,
    bound: Duration,
) -> Result<(Link, Secrets), AcceptError> {
    timeout(bound, greet(listener, socket, facts))
        .await
        .unwrap_or(Err(AcceptError::Late(bound)))
}

async fn greet(
    listener: UnixListener,
    socket: &Path,
    facts: &SandboxFacts,
) -> Result<(Link, Secrets), AcceptError> {
    let stream = same_user(&listener).await?;
    drop(listener);
    std::fs::remove_file(socket)?;
    let (reader, mut writer) = stream.into_split();
    let expect = ToExecutor::Expect {
        mounts: facts.mounts.clone(),
        landlock_required: facts.landlock_required,
        secrets: facts.secrets.clone(),
    };
    let expect = frame::encode(&expect).map_err(AcceptError::Expectation)?;
    writer.write_all(&expect).await?;
    let mut reader = FrameReader::new(reader);
    match reader.next().await.map_err(AcceptError::Protocol)? {
        Some(ToRuntime::Ready {
            landlock_abi,
            secrets,
        }) => {
            tracing::info!(landlock_abi, "executor is ready");
            let secrets = Secrets::new(secrets.iter().map(|value| value.0.as_slice()));
            Ok((Link::start(reader, writer), secrets))
        }
        Some(ToRuntime::Refused { message }) => Err(AcceptError::Refused(message)),
        Some(_) | None => Err(AcceptError::Gone),
    }
}

async fn same_user(listener: &UnixListener) -> io::Result<UnixStream> {
    let own = rustix::process::geteuid().as_raw();
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.uid() == own {
            return Ok(stream);
        }
        tracing::warn!("a connection of another user was dropped");
    }
}
