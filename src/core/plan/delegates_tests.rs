use super::*;
use agentrun_api::{Attempt, RunRef, SubTaskRef, SubTaskSpec, SubTaskStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

fn spec(value: Value) -> AgentRunSpec {
    serde_json::from_value(value).unwrap()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A sub-task of the run `r`, made at this second; the UID is the name.
fn child(name: &str, role: SubTaskRole, parent: Option<&str>, second: i64) -> SubTask {
    let mut child = SubTask::new(
        name,
        SubTaskSpec {
            run_ref: RunRef {
                name: "r".into(),
                uid: "u".into(),
            },
            parent_ref: parent.map(|parent| SubTaskRef {
                name: parent.into(),
                uid: parent.into(),
            }),
            task: if role == SubTaskRole::Lead { "lead" } else { "bash" }.into(),
            role,
            agent: Some(agentrun_api::AgentWork::default()),
            ..SubTaskSpec::default()
        },
    );
    child.metadata.uid = Some(name.into());
    child.metadata.creation_timestamp = Some(Time(at(second)));
    child
}

fn lead() -> SubTask {
    let mut lead = child("lead", SubTaskRole::Lead, None, 0);
    lead.metadata.name = Some(names::subtask_name("r", "lead", "u", None, None));
    started(lead)
}

fn delegate(name: &str, second: i64) -> SubTask {
    child(name, SubTaskRole::Delegate, Some("lead"), second)
}

fn started(mut child: SubTask) -> SubTask {
    child.status = Some(SubTaskStatus {
        attempts: vec![Attempt::default()],
        ..SubTaskStatus::default()
    });
    child
}

fn ended(child: SubTask, outcome: Outcome, reason: &str) -> SubTask {
    let mut child = child;
    let status = child.status.get_or_insert_default();
    status.outcome = Some(outcome);
    status.reason = Some(reason.into());
    child
}

fn standings(run: &AgentRunSpec, children: &[SubTask]) -> Vec<(String, &'static str)> {
    let refs: Vec<_> = children.iter().collect();
    let delegates = Delegates::of(run, &refs);
    let unstarted = delegates
        .all()
        .iter()
        .filter(|child| is_live(child) && !has_started(child));
    unstarted
        .map(|child| {
            let word = match delegates.standing(child, &BTreeSet::new()) {
                Standing::MayStart => "starts",
                Standing::Waits(_) => "waits",
                Standing::Refused(_) => "refused",
            };
            (child.metadata.name.clone().unwrap(), word)
        })
        .collect()
}

fn words<'a>(found: &'a [(String, &'static str)]) -> Vec<(&'a str, &'static str)> {
    found.iter().map(|(name, word)| (name.as_str(), *word)).collect()
}

// F102, F103
#[test]
fn the_first_by_time_then_by_name_are_admitted_and_the_rest_is_refused() {
    let run = spec(json!({"goal": "x", "delegation": {"maxPerRun": 2}}));
    let children = [lead(), delegate("late", 9), delegate("b", 1), delegate("a", 1)];
    let found = standings(&run, &children);
    assert_eq!(
        words(&found),
        [("a", "starts"), ("b", "starts"), ("late", "refused")]
    );
}

#[test]
fn what_has_started_stays_admitted_whatever_is_seen_later() {
    let run = spec(json!({"goal": "x", "delegation": {"maxPerRun": 2}}));
    let children = [
        lead(),
        started(delegate("b", 5)),
        ended(started(delegate("c", 6)), Outcome::Success, "Completed"),
        delegate("early", 1),
    ];
    assert_eq!(words(&standings(&run, &children)), [("early", "refused")]);
    let refs: Vec<_> = children.iter().collect();
    let status = Delegates::of(&run, &refs).status().unwrap();
    assert_eq!((status.used, status.refused), (2, 0));
}

#[test]
fn a_refusal_takes_no_place_in_the_quota() {
    let run = spec(json!({"goal": "x", "delegation": {"maxPerRun": 1}}));
    let refused = ended(delegate("a", 1), Outcome::Skipped, "QuotaExceeded");
    let children = [lead(), refused, delegate("b", 2)];
    assert_eq!(words(&standings(&run, &children)), [("b", "starts")]);
}

#[test]
fn a_lead_that_waits_takes_no_place_so_that_its_delegates_can_run_one_by_one() {
    let run = spec(json!({"goal": "x", "limits": {"maxParallel": 1}}));
    let waiting = [lead(), delegate("a", 1), delegate("b", 2)];
    assert_eq!(
        words(&standings(&run, &waiting)),
        [("a", "starts"), ("b", "waits")]
    );
    let running = [lead(), started(delegate("a", 1)), delegate("b", 2)];
    assert_eq!(words(&standings(&run, &running)), [("b", "waits")]);
    let first = ended(started(delegate("a", 1)), Outcome::Error, "ExitCode");
    assert_eq!(
        words(&standings(&run, &[lead(), first, delegate("b", 2)])),
        [("b", "starts")]
    );
}

#[test]
fn depth_comes_from_the_chain_of_parents() {
    let run = spec(json!({"goal": "x", "delegation": {"maxDepth": 1}}));
    let grandchild = child("deep", SubTaskRole::Delegate, Some("a"), 2);
    let children = [lead(), started(delegate("a", 1)), grandchild];
    assert_eq!(words(&standings(&run, &children)), [("deep", "refused")]);
    let deeper = spec(json!({"goal": "x", "delegation": {"maxDepth": 2}}));
    assert_eq!(words(&standings(&deeper, &children)), [("deep", "starts")]);
}

#[test]
fn a_sub_task_that_was_made_by_hand_counts_at_depth_one() {
    let run = spec(json!({"goal": "x", "delegation": {"maxPerRun": 1}}));
    let by_hand = child("mine", SubTaskRole::Task, None, 1);
    let children = [lead(), by_hand, delegate("a", 2)];
    assert_eq!(
        words(&standings(&run, &children)),
        [("mine", "starts"), ("a", "refused")]
    );
    let refs: Vec<_> = children.iter().collect();
    assert_eq!(Delegates::of(&run, &refs).depth(&children[1]), Some(1));
    let none = spec(json!({"goal": "x", "delegation": {"maxDepth": 0}}));
    assert_eq!(words(&standings(&none, &children))[0], ("mine", "refused"));
}

#[test]
fn delegates_are_orphans_when_their_parent_has_ended_or_is_being_stopped() {
    let run = spec(json!({"goal": "x"}));
    let orphans = |parent: Option<SubTask>| {
        let delegates = [
            delegate("a", 1),
            ended(delegate("b", 1), Outcome::Success, "Completed"),
        ];
        let children: Vec<_> = parent.iter().chain(&delegates).collect();
        Delegates::of(&run, &children).orphans()
    };
    assert!(orphans(Some(lead())).is_empty());
    assert_eq!(orphans(Some(ended(lead(), Outcome::Success, "Completed"))), ["a"]);
    let mut deleted = lead();
    deleted.metadata.deletion_timestamp = Some(Time(at(3)));
    assert_eq!(orphans(Some(deleted)), ["a"]);
    let mut marked = lead();
    marked.metadata.annotations = Some([(labels::STOP.to_owned(), "x".to_owned())].into());
    assert_eq!(orphans(Some(marked)), ["a"]);
    assert_eq!(orphans(None), ["a"]);
}
