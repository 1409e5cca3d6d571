//! The trusted container of a sandbox Pod: takes work from the gateway over one stream, has the executor run it
//! under its deadline, keeps the evidence and posts the result until it is acknowledged.
//!
//! User code never runs here, and nothing here writes a Kubernetes object. [`settings`] says what a runtime is
//! told; [`serve::serve`] is its whole life and takes paths and addresses as arguments, so that tests and a local
//! mode drive the same code.

pub mod attempt;
pub mod channel;
pub mod executor;
pub mod frames;
pub mod inspect;
pub mod probe;
pub mod serve;
pub mod settings;
pub mod store;

mod acceptance;
mod agent;
mod lock;
mod task;

/// Does file work away from the one thread that keeps the timers.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> std::io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

/// An error and what is behind it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
