//! The items of a `forEach` task.

use super::make::{error, failed, skipped};
use super::{Gate, MAX_ITEMS, Round, is_live};
use crate::expr::Output;
use crate::plan::outcome::{TaskEnd, allowed_failures, collect, end_of};
use crate::plan::resolve::ItemId;
use crate::plan::subtask::Decided;
use agentrun_api::{Outcome, SubTask, SubTaskReason, TaskTemplate};
use serde_json::Value;
use std::collections::BTreeSet;

impl<'a> Round<'a> {
    pub(super) fn fan_out(&mut self, task: &'a TaskTemplate) -> Option<TaskEnd> {
        // A sub-task without an index stands for the whole task: it never came to items.
        if let Some(child) = self
            .children_of(&task.name)
            .iter()
            .copied()
            .find(|child| child.spec.index.is_none())
        {
            let end = end_of(child)?;
            self.publish(task, end, Output::None, &[child]);
            return Some(end);
        }
        match self.gate(task) {
            Gate::Wait => return None,
            // Once items exist, their own ends decide; a gate can only close by a late fast failure.
            Gate::Never(decided) if self.children_of(&task.name).is_empty() => {
                if !self.view.stopped {
                    self.create_decided(task, None, decided);
                }
                return None;
            }
            Gate::Never(_) | Gate::Open => {}
        }
        let items = match self.items(task) {
            Ok(items) => items,
            Err(decided) => {
                if !self.view.stopped {
                    self.create_decided(task, None, decided);
                }
                return None;
            }
        };
        self.plan.totals.insert(task.name.clone(), items.len());
        self.items_round(task, &items)
    }

    /// The items and their keys.
    fn items(&self, task: &TaskTemplate) -> Result<Vec<(Value, Option<String>)>, Decided> {
        let expressions = self.view.expressions.task(&task.name);
        let items = match &expressions.items {
            Some(items) => items
                .evaluate_items(&self.scope.scope())
                .map_err(|error| failed("forEach.items", &error))?,
            None => Vec::new(),
        };
        if items.len() > MAX_ITEMS {
            let message = format!(
                "forEach.items has {} items, at most {MAX_ITEMS} are allowed",
                items.len()
            );
            return Err(error(SubTaskReason::ExpressionFailed, message));
        }
        let mut seen = BTreeSet::new();
        let mut keyed = Vec::with_capacity(items.len());
        for (index, item) in (0u32..).zip(items) {
            let key = match &expressions.key {
                None => None,
                Some(key) => {
                    let key = key.evaluate_key(&self.scope.item(&item, index));
                    Some(key.map_err(|error| failed("forEach.key", &error))?)
                }
            };
            if key.as_ref().is_some_and(|key| !seen.insert(key.clone())) {
                let message = format!(
                    "forEach.key gives {:?} for two items: keys must differ",
                    key.unwrap_or_default()
                );
                return Err(error(SubTaskReason::ExpressionFailed, message));
            }
            keyed.push((item, key));
        }
        Ok(keyed)
    }

    fn items_round(&mut self, task: &'a TaskTemplate, items: &[(Value, Option<String>)]) -> Option<TaskEnd> {
        let mut by_index: Vec<Option<&'a SubTask>> = vec![None; items.len()];
        for child in self.children_of(&task.name) {
            let index = child.spec.index.and_then(|index| usize::try_from(index).ok());
            if let Some(place) = index.and_then(|index| by_index.get_mut(index)) {
                *place = Some(child);
            }
        }
        let failures = by_index
            .iter()
            .flatten()
            .filter(|child| matches!(end_of(child), Some(TaskEnd::Failed(_))))
            .count();
        let for_each = task.for_each.as_ref();
        let allowed = allowed_failures(for_each.and_then(|each| each.max_failures.as_ref()), items.len());
        if by_index
            .iter()
            .all(|child| child.is_some_and(|child| !is_live(child)))
        {
            let end = if failures > allowed {
                TaskEnd::Failed(Outcome::Error)
            } else {
                TaskEnd::Succeeded
            };
            let children: Vec<_> = by_index.iter().flatten().copied().collect();
            self.publish(task, end, collect(&by_index), &children);
            return Some(end);
        }
        if self.view.stopped {
            return None;
        }
        let limit = for_each
            .and_then(|each| each.max_parallel)
            .and_then(|limit| usize::try_from(limit).ok());
        let live = by_index.iter().flatten().filter(|child| is_live(child)).count();
        let mut free_here = limit.unwrap_or(usize::MAX).saturating_sub(live);
        for (index, (item, key)) in (0u32..).zip(items) {
            if by_index.get(index as usize).is_some_and(Option::is_some) || self.is_full() {
                continue;
            }
            let id = ItemId {
                index,
                key: key.clone(),
            };
            if failures > allowed {
                let message = format!("{failures} items failed, {allowed} may");
                self.create_decided(task, Some(&id), skipped(SubTaskReason::TooManyFailures, message));
                continue;
            }
            if self.failed_fast && !self.is_handler(&task.name) {
                self.create_decided(
                    task,
                    Some(&id),
                    skipped(SubTaskReason::RunFailedFast, "another task failed".into()),
                );
                continue;
            }
            if free_here == 0 {
                continue;
            }
            let expressions = self.view.expressions.task(&task.name);
            let made = Self::evaluate(expressions, &self.scope.item(item, index));
            if self.create(task, Some(&id), made) {
                free_here -= 1;
            }
        }
        None
    }
}
