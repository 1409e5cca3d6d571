//! Tasks that end with their owner.

use tokio::task::JoinHandle;

/// A running task; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Task<T>(pub(crate) JoinHandle<T>);

impl<T: Send + 'static> Task<T> {
    /// Starts `future`.
    pub(crate) fn spawn(future: impl Future<Output = T> + Send + 'static) -> Self {
        Task(tokio::spawn(future))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
