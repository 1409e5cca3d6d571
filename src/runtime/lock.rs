//! Locks that are held for a few lines and never across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`. A panic elsewhere cannot leave our plain maps half-changed, so poison is ignored.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
