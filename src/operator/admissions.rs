//! Whom the operator has let start whose start is not written yet.
//!
//! Delegates are decided upon at the same time, each by its own round, and between a decision and its write lie the making
//! of a Pod and more. A delegate of the same second that is seen meanwhile and sorts before would take a place that is
//! given away. So decisions are made one after the other, and each knows the ones before. Losing this memory breaks no
//! cap: what has no attempt in its status has not started, and a new leader decides anew from the objects.

use agentrun_api::{AgentRunSpec, SubTask};
use agentrun_core::plan::delegates::{Delegates, Standing};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// UIDs of delegates that may start and are not known to have started.
#[derive(Debug, Default)]
pub struct Admissions(Mutex<BTreeSet<String>>);

impl Admissions {
    /// Where a delegate stands that has not started. `children` looks at the sub-tasks of its run, now.
    pub fn standing(
        &self,
        run: &AgentRunSpec,
        delegate: &SubTask,
        children: impl FnOnce() -> Vec<Arc<SubTask>>,
    ) -> Standing {
        let mut admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let children = children();
        let children: Vec<_> = children.iter().map(|child| &**child).collect();
        let standing = Delegates::of(run, &children).standing(delegate, &admitted);
        if standing == Standing::MayStart {
            admitted.extend(delegate.metadata.uid.clone());
        }
        standing
    }

    /// Forgets one that has started or ended: its status says so to everybody.
    pub fn forget(&self, uid: &str) {
        let mut admitted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        admitted.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn delegate(name: &str) -> Arc<SubTask> {
        let object = json!({
            "apiVersion": "agentrun.dev/v1alpha1", "kind": "SubTask",
            "metadata": {"name": name, "namespace": "a", "uid": name, "creationTimestamp": "2030-01-01T00:00:00Z"},
            "spec": {"runRef": {"name": "r", "uid": "u"}, "task": "bash", "role": "Delegate", "agent": {"prompt": "x"}},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn one_that_is_seen_late_and_sorts_before_takes_nothing_that_is_given_away() {
        let run = json!({"goal": "x", "delegation": {"maxPerRun": 1}});
        let run: AgentRunSpec = serde_json::from_value(run).unwrap();
        let (early, late) = (delegate("z"), delegate("a"));
        let admissions = Admissions::default();
        let both = || vec![early.clone(), late.clone()];
        let first = admissions.standing(&run, &early, || vec![early.clone()]);
        assert_eq!(first, Standing::MayStart);
        assert!(matches!(
            admissions.standing(&run, &late, both),
            Standing::Refused(_)
        ));
        assert_eq!(
            admissions.standing(&run, &early, both),
            Standing::MayStart,
            "it keeps it"
        );
        admissions.forget("z");
        assert_eq!(
            admissions.standing(&run, &late, both),
            Standing::MayStart,
            "the objects alone"
        );
    }
}
