//! The channel: one HTTP/2 request per runtime, frames in both bodies.

mod dialogue;
mod inbox;
mod outbox;
mod route;
mod session;
mod work;

pub(crate) use outbox::{Outbox, SendError};
pub(crate) use route::handle;
