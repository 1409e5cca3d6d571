//! One attempt from its assignment to its result.

mod agent;
mod artifacts;
mod cache;
mod call;
mod context;
mod input;
mod judge;
mod output;
mod prepare;
mod program;
mod record;
mod run;
mod schemas;
mod warm;

pub use context::{Context, Control, Stop};
pub use run::{AttemptEnd, run};
pub use schemas::Last as LastSchemas;
pub use warm::Pool;
