//! What ends an agent's attempt before the agent is done.

use crate::attempt::Control;
use crate::executor::{Link, Lost, ToolFailure};
use std::io;
use tokio::time::{Instant, sleep_until};

/// Why an attempt ends before its agent is done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Halt {
    #[error("the deadline has come")]
    Late,
    #[error("it was cancelled")]
    Cancelled,
    #[error(transparent)]
    Lost(#[from] Lost),
    /// What happens cannot be written down any more.
    #[error(transparent)]
    Evidence(#[from] io::Error),
}

impl From<ToolFailure> for Halt {
    fn from(failure: ToolFailure) -> Halt {
        match failure {
            ToolFailure::Lost(lost) => Halt::Lost(lost),
            ToolFailure::Evidence(error) => Halt::Evidence(error),
        }
    }
}

/// What may end an attempt at any time.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    pub(super) deadline: Instant,
    pub(super) control: Control,
    pub(super) link: &'a Link,
}

impl Bounds<'_> {
    /// Whether nothing has ended the attempt yet.
    pub(super) fn check(&self) -> Result<(), Halt> {
        if self.control.is_stopped() {
            return Err(Halt::Cancelled);
        }
        if Instant::now() >= self.deadline {
            return Err(Halt::Late);
        }
        Ok(())
    }

    /// Waits for `what`, which is dropped when the attempt ends before.
    pub(super) async fn wait<T>(&self, what: impl Future<Output = T>) -> Result<T, Halt> {
        let mut control = self.control.clone();
        tokio::select! {
            done = what => Ok(done),
            _ = control.stopped() => Err(Halt::Cancelled),
            () = sleep_until(self.deadline) => Err(Halt::Late),
            () = self.link.lost() => Err(Halt::Lost(Lost)),
        }
    }
}
