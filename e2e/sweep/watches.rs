//! What the operator sees of the cluster comes late, twice, or not at all.

use crate::operator::Life;
use crate::scenario::{Case, Data, for_each, undisturbed};
use agentrun_testkit::faults::{Action, Fault, Faults, Matcher, Which};
use std::time::Duration;

/// Kinds that a run's way depends on.
const KINDS: [&str; 4] = ["agentruns", "subtasks", "pods", "threads"];

async fn ends_the_same(name: String, faults: Vec<Fault>) {
    let case = Case::new("watch", Data::Thread).await;
    let life = Life::start(&case.namespace, &Faults::new(faults));
    let end = case.end().await;
    assert_eq!(
        life.faults(),
        Vec::<String>::new(),
        "{name}: the health check complains"
    );
    life.end().await;
    end.assert_is(&undisturbed().await.0, &name);
    case.namespace.give_back().await;
}

// F084
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_caches_lead_to_the_same_end_and_to_no_second_pod() {
    for_each(0..KINDS.len() + 2, |number| async move {
        // One kind alone is worse than all: then what is seen does not fit together.
        let watches = KINDS
            .get(number)
            .map_or_else(Matcher::watches, |kind| Matcher::watches().of(kind));
        let delay = Duration::from_millis([1500, 2000][number % 2]);
        let late = Fault::new(watches, Which::All, Action::Delay(delay));
        ends_the_same(format!("late watches, case {number}"), vec![late]).await;
    })
    .await;
}

/// The cache is late and the operator is started anew: nothing but names tells it what it has made.
// F084
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_under_stale_caches_lead_to_the_same_end_and_to_no_second_pod() {
    for_each(1..=4, |number| async move {
        let case = Case::new("stale", Data::Thread).await;
        let late = || {
            let delay = Action::Delay(Duration::from_secs(1));
            Fault::new(Matcher::watches(), Which::All, delay)
        };
        for life in 1..=3 {
            let stop = Fault::new(Matcher::writes(), Which::Nth(number * 2 + life), Action::Stop);
            let faults = Faults::new([stop, late()]);
            let life = Life::start(&case.namespace, &faults);
            faults.stopped().await;
            life.crash().await;
        }
        let life = Life::start(&case.namespace, &Faults::new([late()]));
        let end = case.end().await;
        life.end().await;
        end.assert_is(
            &undisturbed().await.0,
            &format!("crashes under late watches, case {number}"),
        );
        case.namespace.give_back().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_events_lead_to_the_same_end() {
    for_each(0..1, |_| async move {
        let twice = Fault::new(Matcher::watches(), Which::All, Action::Repeat);
        ends_the_same("repeated events".into(), vec![twice]).await;
    })
    .await;
}

// F092, F093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watches_that_break_again_and_again_lead_to_the_same_end() {
    for_each(1..=3, |events| async move {
        let cut = Fault::new(Matcher::watches(), Which::All, Action::CutAfter(events));
        ends_the_same(format!("watches that break after {events} events"), vec![cut]).await;
    })
    .await;
}

/// Events between two lists are never seen; what they said must be found by listing.
// F039, F093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_are_never_seen_lead_to_the_same_end() {
    for_each(0..=KINDS.len(), |number| async move {
        let watches = KINDS
            .get(number)
            .map_or_else(Matcher::watches, |kind| Matcher::watches().of(kind));
        let gap = Action::Gap {
            events: 1,
            hidden: Duration::from_millis(700),
        };
        let gap = Fault::new(watches, Which::All, gap);
        ends_the_same(format!("gaps in watches, case {number}"), vec![gap]).await;
    })
    .await;
}

/// The API server is away for the first lists, and later for a while again.
// F093
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_away_at_the_start_is_waited_for() {
    for_each(0..1, |_| async move {
        let lists = Matcher::reads();
        let faults = (1..=20).map(|nth| Fault::new(lists.clone(), Which::Nth(nth), Action::Break));
        ends_the_same("no API server at the start".into(), faults.collect()).await;
    })
    .await;
}
