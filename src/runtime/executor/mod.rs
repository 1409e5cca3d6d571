//! The one connection to the executor.

mod accept;
mod link;
mod tool;

pub use accept::{AcceptError, accept, bind};
pub use link::{Call, CallEvent, Link, Lost, Stdin};
pub use tool::{Ran, ShellTerms, ToolFailure, Toolbox};
