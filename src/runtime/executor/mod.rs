//! The one connection to the executor.

mod accept;
mod link;

pub use accept::{AcceptError, accept, bind};
pub use link::{Call, CallEvent, Link, Lost, Stdin};
