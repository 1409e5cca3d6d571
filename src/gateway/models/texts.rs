//! The text that a model is writing, for those who follow: in pieces that are worth a message, and never waited for.

use super::limits::{TEXT, TEXT_AGE, TEXT_KEPT};
use crate::channel::Outbox;
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::work::AttemptId;
use tokio::time::Instant;

/// Collects text and sends it when there is room.
#[derive(Debug)]
pub(super) struct Texts {
    to: Option<(Outbox, AttemptId, u64)>,
    text: String,
    sent: Instant,
}

impl Texts {
    /// For the followers of one call.
    pub(super) fn of(outbox: Outbox, id: AttemptId, call: u64) -> Self {
        Self {
            to: Some((outbox, id, call)),
            ..Self::nobody()
        }
    }

    /// For nobody.
    pub(super) fn nobody() -> Self {
        Self {
            to: None,
            text: String::new(),
            sent: Instant::now(),
        }
    }

    /// Takes text.
    pub(super) fn push(&mut self, text: &str) {
        if self.to.is_none() || text.is_empty() {
            return;
        }
        if self.text.len() + text.len() > TEXT_KEPT {
            // Too slow: they get the answer in the end.
            self.text.clear();
        }
        self.text.push_str(text);
        if self.text.len() >= TEXT || self.sent.elapsed() >= TEXT_AGE {
            self.send();
        }
    }

    /// Sends what is left, before the answer comes.
    pub(super) fn send(&mut self) {
        let Some((outbox, id, call)) = &self.to else {
            return;
        };
        if self.text.is_empty() || self.text.len() > TEXT_KEPT {
            return;
        }
        let message = ToRuntime::ModelText {
            id: id.clone(),
            call: *call,
            text: self.text.clone(),
        };
        if outbox.offer(&message) {
            self.text.clear();
            self.sent = Instant::now();
        }
    }
}
