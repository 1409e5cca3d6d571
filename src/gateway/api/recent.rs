//! Answers that are kept for a moment.

use super::bounds;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// At most [`bounds::REVIEWS_KEPT`] answers, none older than [`bounds::REVIEW_AGE`].
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    kept: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
        }
    }
}

impl<K: Hash + Eq, V: Clone> Recent<K, V> {
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, value) = kept.get(key)?;
        (at.elapsed() < bounds::REVIEW_AGE).then(|| value.clone())
    }

    pub(crate) fn put(&self, key: K, value: V) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= bounds::REVIEWS_KEPT {
            kept.retain(|_, (at, _)| at.elapsed() < bounds::REVIEW_AGE);
        }
        // Whoever floods this with new keys makes it forget, never grow.
        if kept.len() >= bounds::REVIEWS_KEPT {
            kept.clear();
        }
        kept.insert(key, (Instant::now(), value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_forgotten_when_it_is_old_and_a_flood_never_grows_the_rest() {
        let recent = Recent::default();
        recent.put("a".to_owned(), 1);
        assert_eq!(recent.get(&"a".to_owned()), Some(1));
        tokio::time::advance(bounds::REVIEW_AGE).await;
        assert_eq!(recent.get(&"a".to_owned()), None);
        for number in 0..3 * bounds::REVIEWS_KEPT {
            recent.put(number.to_string(), 2);
        }
        assert!(recent.kept.lock().unwrap().len() <= bounds::REVIEWS_KEPT);
    }
}
