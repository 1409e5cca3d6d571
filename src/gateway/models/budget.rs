//! What runs have used, and whether they may go on.
//!
//! What a sub-task has used is the largest of three figures: its status, what its agent said with its newest call, and
//! what was answered here. Answers that are under way count by the size of their requests.

use agentrun_api::{AgentRun, SubTask};
use agentrun_core::agents::money;
use agentrun_protocol::agent::Spent;
use agentrun_protocol::chat::{ModelFailure, ModelFailureCode};
use jiff::civil::Date;
use kube::ResourceExt as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Tokens of a run whose `limits.tokens` says nothing.
pub(crate) const DEFAULT_TOKENS: u64 = 2_000_000;
/// The share of a budget from which on it is told, in tenths.
const WARN: u64 = 7;

/// Tokens, and millionths of a currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(super) tokens: u64,
    pub(super) micros: u64,
}

impl Amount {
    fn most(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            micros: self.micros.max(other.micros),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micros: self.micros.saturating_add(other.micros),
        }
    }

    /// What an agent says that it has used.
    pub(super) fn of(spent: &Spent) -> Self {
        Self {
            tokens: spent
                .tokens
                .values()
                .fold(0, |sum, tokens| sum.saturating_add(*tokens)),
            micros: spent.cost_micros,
        }
    }
}

/// What the statuses of sub-tasks say, by run.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    by_run: HashMap<String, HashMap<String, Amount>>,
    run_of: HashMap<String, String>,
}

impl Recorded {
    /// Takes a sub-task as it is now.
    pub(crate) fn put(&mut self, uid: &str, subtask: &SubTask) {
        let usage = subtask.status.as_ref().and_then(|status| status.usage.as_ref());
        let tokens = usage.and_then(|usage| u64::try_from(usage.tokens?).ok());
        let Some(tokens) = tokens.filter(|tokens| *tokens > 0) else {
            return self.remove(uid);
        };
        let cost = usage
            .and_then(|usage| usage.cost.as_deref())
            .and_then(money::parse);
        let amount = Amount {
            tokens,
            micros: cost.unwrap_or(0),
        };
        let run = &subtask.spec.run_ref.uid;
        self.run_of.insert(uid.to_owned(), run.clone());
        self.by_run
            .entry(run.clone())
            .or_default()
            .insert(uid.to_owned(), amount);
    }

    /// Forgets a sub-task.
    pub(crate) fn remove(&mut self, uid: &str) {
        let Some(run) = self.run_of.remove(uid) else {
            return;
        };
        if let Some(subtasks) = self.by_run.get_mut(&run) {
            subtasks.remove(uid);
            if subtasks.is_empty() {
                self.by_run.remove(&run);
            }
        }
    }

    /// The sub-tasks of a run that have used something.
    pub(crate) fn of_run(&self, run: &str) -> HashMap<String, Amount> {
        self.by_run.get(run).cloned().unwrap_or_default()
    }
}

/// What goes on in this gateway.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// Tokens that a namespace may use a day.
    daily: Option<u64>,
    books: Mutex<Books>,
}

#[derive(Debug, Default)]
struct Books {
    runs: HashMap<String, Account>,
    /// The day, and what was answered on it by namespace.
    today: Date,
    by_namespace: HashMap<String, u64>,
}

#[derive(Debug, Default)]
struct Account {
    by_subtask: HashMap<String, Amount>,
    under_way: u64,
    warned: bool,
}

/// One call to be let through.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) run: &'a AgentRun,
    /// The day in UTC.
    pub(super) today: Date,
    /// UID of the sub-task that asks.
    pub(super) subtask: &'a str,
    /// What its agent says that it has used.
    pub(super) told: Amount,
    /// What the statuses of the run's sub-tasks say.
    pub(super) recorded: HashMap<String, Amount>,
    /// Tokens that the call will take at least.
    pub(super) asks: u64,
}

impl Ledger {
    /// One that allows a namespace so many tokens a day.
    pub(super) fn new(daily: Option<u64>) -> Self {
        Self {
            daily,
            books: Mutex::default(),
        }
    }

    /// Lets a call through, or says that the budget is used up.
    pub(super) fn enter(self: &Arc<Self>, entry: Entry<'_>) -> Result<Admitted, ModelFailure> {
        let run = entry.run.uid().unwrap_or_default();
        let namespace = entry.run.namespace().unwrap_or_default();
        let mut books = self.lock();
        books.turn_to(entry.today);
        let this_day = books.by_namespace.get(&namespace).copied().unwrap_or(0);
        let account = books.runs.entry(run.clone()).or_default();
        let here = account.by_subtask.entry(entry.subtask.to_owned()).or_default();
        *here = here.most(entry.told);
        let used = account.used(entry.recorded);
        let limits = Limits::of(entry.run);
        let spent_day = self.daily.filter(|daily| this_day >= *daily);
        let spent_day = spent_day.map(|daily| {
            format!(
                "the namespace has used {this_day} of {daily} tokens today: wait for the next day in UTC, or raise the \
                 gateway's `--daily-tokens`"
            )
        });
        if let Some(message) = limits.exceeded(used).or(spent_day) {
            let code = ModelFailureCode::BudgetExceeded;
            return Err(ModelFailure { code, message });
        }
        if limits.is_nearly_used(used) && !std::mem::replace(&mut account.warned, true) {
            tracing::warn!(
                run = entry.run.name_any(),
                run_uid = run,
                tokens = used.tokens,
                cost = money::written(used.micros),
                "seven tenths of the run's budget are used"
            );
        }
        account.under_way = account.under_way.saturating_add(entry.asks);
        Ok(Admitted {
            ledger: Arc::clone(self),
            run,
            namespace,
            subtask: entry.subtask.to_owned(),
            asks: entry.asks,
        })
    }

    /// Forgets the runs that are over.
    pub(super) fn retain(&self, is_live: impl Fn(&str) -> bool) {
        self.lock()
            .runs
            .retain(|run, account| account.under_way > 0 || is_live(run));
    }

    /// How many runs it knows.
    pub(super) fn len(&self) -> usize {
        self.lock().runs.len()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Books {
    fn turn_to(&mut self, today: Date) {
        if self.today != today {
            self.today = today;
            self.by_namespace.clear();
        }
    }
}

impl Account {
    fn used(&self, recorded: HashMap<String, Amount>) -> Amount {
        let mut all = recorded;
        for (subtask, here) in &self.by_subtask {
            let known = all.entry(subtask.clone()).or_default();
            *known = known.most(*here);
        }
        let under_way = Amount {
            tokens: self.under_way,
            micros: 0,
        };
        all.values().fold(under_way, |sum, amount| sum.plus(*amount))
    }
}

/// A call that was let through, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    ledger: Arc<Ledger>,
    run: String,
    namespace: String,
    subtask: String,
    asks: u64,
}

impl Admitted {
    /// Writes down what the answer used.
    pub(super) fn used(&self, amount: Amount) {
        let mut books = self.ledger.lock();
        let day = books.by_namespace.entry(self.namespace.clone()).or_default();
        *day = day.saturating_add(amount.tokens);
        if let Some(account) = books.runs.get_mut(&self.run) {
            let here = account.by_subtask.entry(self.subtask.clone()).or_default();
            *here = here.plus(amount);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(account) = self.ledger.lock().runs.get_mut(&self.run) {
            account.under_way = account.under_way.saturating_sub(self.asks);
        }
    }
}

struct Limits {
    tokens: u64,
    micros: Option<u64>,
}

impl Limits {
    fn of(run: &AgentRun) -> Self {
        let limits = run.spec.limits.as_ref();
        let tokens = limits.and_then(|limits| u64::try_from(limits.tokens?).ok());
        let cost = limits.and_then(|limits| limits.cost.as_deref());
        Self {
            tokens: tokens.unwrap_or(DEFAULT_TOKENS),
            micros: cost.and_then(money::parse),
        }
    }

    fn exceeded(&self, used: Amount) -> Option<String> {
        if used.tokens >= self.tokens {
            let (used, limit) = (used.tokens, self.tokens);
            return Some(format!(
                "the run has used {used} of {limit} tokens: raise `limits.tokens` in a new run, or ask for less"
            ));
        }
        let limit = self.micros.filter(|limit| used.micros >= *limit)?;
        let (used, limit) = (money::written(used.micros), money::written(limit));
        Some(format!(
            "the run has cost {used} of {limit}: raise `limits.cost` in a new run, or ask for less"
        ))
    }

    fn is_nearly_used(&self, used: Amount) -> bool {
        let nearly = |used: u64, limit: u64| u128::from(used) * 10 >= u128::from(limit) * u128::from(WARN);
        nearly(used.tokens, self.tokens) || self.micros.is_some_and(|limit| nearly(used.micros, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{RUN, run, subtask};
    use serde_json::json;

    const TODAY: Date = jiff::civil::date(2030, 1, 1);

    fn tokens(tokens: u64) -> Amount {
        Amount { tokens, micros: 0 }
    }

    fn limited(limits: serde_json::Value) -> AgentRun {
        run(|o| o["spec"]["limits"] = limits)
    }

    fn enter(
        ledger: &Arc<Ledger>,
        run: &AgentRun,
        subtask: &str,
        told: Amount,
        recorded: &Recorded,
    ) -> Result<Admitted, ModelFailure> {
        ledger.enter(Entry {
            run,
            today: TODAY,
            subtask,
            told,
            recorded: recorded.of_run(RUN),
            asks: 10,
        })
    }

    fn recorded(uid: &str, used: i64) -> Recorded {
        let mut recorded = Recorded::default();
        let object = subtask(|o| o["status"]["usage"] = json!({"tokens": used, "cost": "0.5"}));
        recorded.put(uid, &object);
        recorded
    }

    #[test]
    fn finished_and_live_sub_tasks_and_calls_under_way_count_together() {
        let ledger = Arc::new(Ledger::default());
        let run = limited(json!({"tokens": 1000}));
        let recorded = recorded("done", 500);
        let first = enter(&ledger, &run, "a", tokens(300), &recorded).unwrap();
        // 500 + 300 + 190 + 10 under way.
        let refused = enter(&ledger, &run, "b", tokens(190), &recorded).unwrap_err();
        assert_eq!(refused.code, ModelFailureCode::BudgetExceeded);
        assert!(
            refused.message.contains("1000 of 1000 tokens"),
            "{}",
            refused.message
        );
        drop(first);
        assert!(enter(&ledger, &run, "b", tokens(190), &recorded).is_ok());
    }

    #[test]
    fn a_sub_task_counts_once_whoever_tells_of_it() {
        let ledger = Arc::new(Ledger::default());
        let run = limited(json!({"tokens": 1000}));
        let recorded = recorded("a", 600);
        let admitted = enter(&ledger, &run, "a", tokens(500), &recorded).unwrap();
        admitted.used(tokens(100));
        drop(admitted);
        // The next call tells what the answer used: it is known already.
        let admitted = enter(&ledger, &run, "a", tokens(600), &recorded).unwrap();
        admitted.used(tokens(399));
        drop(admitted);
        assert!(enter(&ledger, &run, "a", tokens(999), &recorded).is_ok());
        assert!(enter(&ledger, &run, "a", tokens(1000), &recorded).is_err());
    }

    #[test]
    fn money_has_a_limit_of_its_own() {
        let ledger = Arc::new(Ledger::default());
        let run = limited(json!({"cost": "1.50"}));
        let spent = |micros| Amount { tokens: 1, micros };
        let none = Recorded::default();
        assert!(enter(&ledger, &run, "a", spent(999_999), &none).is_ok());
        // Half of one is recorded besides.
        let refused = enter(&ledger, &run, "a", spent(1_000_000), &recorded("b", 1)).unwrap_err();
        assert!(refused.message.contains("1.5 of 1.5"), "{}", refused.message);
    }

    #[test]
    fn without_limits_the_default_holds() {
        let ledger = Arc::new(Ledger::default());
        let run = run(|_| ());
        let none = Recorded::default();
        assert!(enter(&ledger, &run, "a", tokens(DEFAULT_TOKENS - 1), &none).is_ok());
        assert!(enter(&ledger, &run, "a", tokens(DEFAULT_TOKENS), &none).is_err());
    }

    #[test]
    fn a_namespace_has_so_many_tokens_a_day() {
        let ledger = Arc::new(Ledger::new(Some(100)));
        let run = run(|_| ());
        let enter = |today| {
            ledger.enter(Entry {
                run: &run,
                today,
                subtask: "a",
                told: Amount::default(),
                recorded: HashMap::new(),
                asks: 0,
            })
        };
        enter(TODAY).unwrap().used(tokens(99));
        enter(TODAY).unwrap().used(tokens(1));
        let refused = enter(TODAY).unwrap_err();
        assert_eq!(refused.code, ModelFailureCode::BudgetExceeded);
        assert!(
            refused.message.contains("100 of 100 tokens today"),
            "{}",
            refused.message
        );
        assert!(enter(TODAY.tomorrow().unwrap()).is_ok());
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let ledger = Arc::new(Ledger::default());
        let admitted = enter(&ledger, &run(|_| ()), "a", tokens(1), &Recorded::default());
        ledger.retain(|_| false);
        assert_eq!(ledger.len(), 1);
        drop(admitted);
        ledger.retain(|_| false);
        assert_eq!(ledger.len(), 0);
        let mut recorded = recorded("a", 1);
        recorded.remove("a");
        assert!(recorded.by_run.is_empty() && recorded.run_of.is_empty());
    }
}
