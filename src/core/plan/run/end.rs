//! Whether a run is over, and how it ended.

use super::{Round, RunEnd, RunPlan, has_lease, is_live};
use crate::plan::acceptance::{self, Check};
use crate::plan::lead;
use crate::plan::outcome::TaskEnd;
use crate::plan::output;
use crate::plan::resolve::Evaluated;
use agentrun_api::{FailedReason, Outcome, When};

impl Round<'_> {
    pub(super) fn finish(mut self) -> RunPlan {
        self.delegates();
        let failed = self
            .plan
            .ends
            .iter()
            .filter(|(_, end)| matches!(end, Some(TaskEnd::Failed(_))));
        let unhandled = failed
            .filter(|(task, _)| !self.is_handled(task))
            .map(|(task, _)| task.clone());
        self.plan.failed = unhandled.collect();
        let ended = match self.view.stopped {
            true => self.view.children.iter().all(|child| !is_live(child)),
            false => self.plan.ends.values().all(Option::is_some) && !self.delegates.is_any_live(),
        };
        // The lead's criteria are the run's: what it did not meet, the run did not.
        if self.is_lead_unaccepted() {
            self.plan.failed.clear();
        }
        if ended && self.plan.failed.is_empty() && !self.view.stopped {
            self.check();
        }
        let over = self.plan.create.is_empty() && ended;
        let released = self
            .view
            .children
            .iter()
            .all(|child| child.metadata.deletion_timestamp.is_some() || !has_lease(child));
        let accepted = |verdicts: &Vec<_>| acceptance::is_accepted(self.view.spec, verdicts);
        let end = match (self.plan.failed.is_empty(), self.failed_fast) {
            (true, _) if !self.plan.acceptance.as_ref().is_none_or(accepted) => RunEnd::NotAccepted,
            (true, _) => RunEnd::Succeeded,
            (false, true) => RunEnd::FailedFast,
            (false, false) => RunEnd::TaskFailed,
        };
        self.lead_end();
        self.plan.end = (over && released && !self.awaits_check).then_some(end);
        if self.plan.end == Some(RunEnd::Succeeded) && !self.view.stopped {
            let leaves = self.graph.leaves();
            self.plan.output = Some(output::of_run(
                self.view.expressions,
                &leaves,
                &self.results,
                &self.scope.scope(),
            ));
        }
        self.plan
    }

    /// What the run's status says of its lead besides the outcome.
    fn lead_end(&mut self) {
        let lead = self
            .children_of(lead::TASK)
            .first()
            .filter(|_| self.view.spec.goal.is_some());
        let Some(status) = lead.and_then(|lead| lead.status.as_ref()) else {
            return;
        };
        let budget = FailedReason::BudgetExceeded.as_str();
        self.plan.budget_exceeded =
            status.outcome == Some(Outcome::Error) && status.reason.as_deref() == Some(budget);
        self.plan.summary = lead::summary(status);
    }

    fn is_lead_unaccepted(&self) -> bool {
        let only = matches!(self.plan.failed.as_slice(), [task] if lead::is_lead(self.view.spec, task));
        let unaccepted = Some(TaskEnd::Failed(Outcome::Success));
        only && self.plan.ends.get(lead::TASK).copied().flatten() == unaccepted
    }

    /// All tasks ended well: what the run as a whole asks for is checked next.
    fn check(&mut self) {
        match acceptance::check(self.view.spec, self.planned) {
            Check::None => {}
            Check::Due => {
                self.awaits_check = true;
                if !self.view.suspended {
                    self.push(
                        &acceptance::task(self.view.spec),
                        None,
                        Evaluated::default(),
                        None,
                    );
                }
            }
            Check::Running(child) => {
                self.awaits_check = true;
                self.run_again(&[child]);
            }
            Check::Done(verdicts) => self.plan.acceptance = Some(verdicts),
        }
    }

    /// A failure is handled when a task that waits for it `when: Failed` has succeeded.
    fn is_handled(&self, task: &str) -> bool {
        self.graph.dependants(task).any(|(handler, when)| {
            when == When::Failed && self.plan.ends.get(handler).copied().flatten() == Some(TaskEnd::Succeeded)
        })
    }
}
