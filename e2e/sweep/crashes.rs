//! The operator dies after each of its writes, or does not learn what came of it.

use crate::operator::Life;
use crate::scenario::{Case, Data, for_each, undisturbed};
use agentrun_testkit::faults::{Action, Fault, Faults, Matcher, Which};

/// A run that was disturbed takes some writes more or less.
const MORE: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undisturbed_diamond_comes_to_its_end_with_one_pod_for_each_attempt() {
    let (end, writes) = undisturbed().await;
    end.assert_well();
    eprintln!("the operator makes {writes} writes");
    assert!((20..90).contains(writes), "{writes} writes");
}

// F084, F085, F086
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_after_any_write_leads_to_the_same_end_and_to_one_pod_for_each_attempt() {
    let (_, writes) = undisturbed().await;
    for_each(1..=writes + MORE, |write| async move {
        let case = Case::new("crash", Data::Thread).await;
        let faults = Faults::new([Fault::new(Matcher::writes(), Which::Nth(write), Action::Stop)]);
        let first = Life::start(&case.namespace, &faults);
        let over = tokio::select! {
            () = faults.stopped() => None,
            end = case.end() => Some(end),
        };
        first.crash().await;
        let second = Life::start(&case.namespace, &Faults::none());
        let end = match over {
            Some(end) => end,
            None => case.end().await,
        };
        second.end().await;
        end.assert_is(&undisturbed().await.0, &format!("crash after write {write}"));
        case.namespace.give_back().await;
    })
    .await;
}

/// The operator lives on and tries again: it must find what it has made already.
// F085, F086
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_to_any_write_leads_to_the_same_end_and_to_one_pod_for_each_attempt() {
    let (_, writes) = undisturbed().await;
    for_each(1..=writes + MORE, |write| async move {
        let case = Case::new("lost", Data::Thread).await;
        let lost = Fault::new(Matcher::writes(), Which::Nth(write), Action::LoseAnswer);
        let life = Life::start(&case.namespace, &Faults::new([lost]));
        let end = case.end().await;
        life.end().await;
        end.assert_is(&undisturbed().await.0, &format!("lost answer to write {write}"));
        case.namespace.give_back().await;
    })
    .await;
}

/// Every n-th write is refused before it happens, or breaks, for several n.
// F007
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_sprinkled_over_all_writes_lead_to_the_same_end() {
    let statuses = [409_u16, 429, 500, 504];
    for_each(0..statuses.len() * 2, |number| async move {
        let status = [409_u16, 429, 500, 504][number / 2];
        let every = [3, 4][number % 2];
        let case = Case::new("refused", Data::Thread).await;
        let refuse = Action::Answer(http::StatusCode::from_u16(status).expect("a status"));
        let faults = Faults::new([
            Fault::new(Matcher::writes(), Which::Every(every), refuse),
            Fault::new(Matcher::reads(), Which::Every(7), Action::Break),
        ]);
        let life = Life::start(&case.namespace, &faults);
        let end = case.end().await;
        life.end().await;
        end.assert_is(
            &undisturbed().await.0,
            &format!("{status} to every write no. {every}"),
        );
        case.namespace.give_back().await;
    })
    .await;
}
