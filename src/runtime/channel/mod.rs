//! The one stream to the gateway. It reconnects for ever; what must not be lost waits in the [`Outbox`]
//! until it is acknowledged.

mod backoff;
mod connect;
mod fit;
mod outbox;
mod questions;
mod run;
mod session;
mod tls;

pub use outbox::{Delegates, FetchError, Outbox};
pub use questions::{Answered, ModelQuestion};
pub use run::{Event, run};
pub use tls::{TlsError, Trust, trust};
