use super::*;
use agentrun_api::SubTaskSpec;
use agentrun_api::{Retry, SandboxStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

const POD: &str = "pod-uid";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A sub-task that was made at second 0, with a running attempt and a Pod where a test asks for them.
struct Case {
    spec: SubTaskSpec,
    status: SubTaskStatus,
    pods: Vec<PodView>,
    deleted: Option<Timestamp>,
    has_lease: bool,
    reruns: Option<Reruns>,
    run: RunView,
    marked: Option<(Stop, Timestamp)>,
    blocked: Option<&'static str>,
    keep: Duration,
    backstop: bool,
}

fn live() -> RunView {
    RunView::Live {
        stopped_at: None,
        suspended: false,
        going_since: None,
        deadline: None,
        finished: false,
    }
}

fn fresh() -> Case {
    Case {
        spec: SubTaskSpec::default(),
        status: SubTaskStatus::default(),
        pods: Vec::new(),
        deleted: None,
        has_lease: true,
        reruns: None,
        run: live(),
        marked: None,
        blocked: None,
        keep: Duration::ZERO,
        backstop: true,
    }
}

/// Attempt 1 was assigned at second 1.
fn assigned(state: PodState) -> Case {
    let mut case = fresh();
    case.status.attempts = vec![Attempt {
        number: 1,
        pod_name: Some("pod".into()),
        pod_uid: Some(POD.into()),
        started: Some(MicroTime(at(1))),
        ..Attempt::default()
    }];
    case.pods = vec![pod(1, state)];
    case
}

fn finished(outcome: Outcome, empty: bool) -> Case {
    let mut case = assigned(running());
    case.status.attempts[0].outcome = Some(outcome);
    case.status.attempts[0].finished = Some(MicroTime(at(10)));
    case.status.outcome = Some(outcome);
    case.status.sandbox = Some(SandboxStatus {
        process_tree_empty: Some(empty),
        ..SandboxStatus::default()
    });
    case
}

fn pod(attempt: i32, state: PodState) -> PodView {
    PodView {
        name: "pod".into(),
        uid: POD.into(),
        attempt,
        deleting_since: None,
        state,
    }
}

fn running() -> PodState {
    PodState::Running { since: at(2) }
}

fn lost(settled: bool, nothing_runs: bool) -> PodState {
    PodState::Lost {
        reason: SubTaskReason::OOMKilled,
        message: "memory".into(),
        settled,
        nothing_runs,
    }
}

impl Case {
    fn plan(&self, second: i64) -> SubTaskPlan {
        let view = SubTaskView {
            uid: "uid",
            spec: &self.spec,
            status: &self.status,
            created: at(0),
            deleted: self.deleted,
            has_lease: self.has_lease,
            decided: None,
            marked: self.marked,
            reruns: self.reruns.as_ref(),
            run: self.run,
            pods: &self.pods,
            blocked: self.blocked,
            start_timeout: Duration::from_mins(10),
            timeout: Duration::from_mins(1),
            keep_on_failure: self.keep,
            backstop: self.backstop,
        };
        plan(&view, at(second))
    }

    /// The actions, each by its name and what tells it from others.
    fn actions(&self, second: i64) -> Vec<String> {
        let word = |action: &Action| match action {
            Action::TakeLease => "take lease".to_owned(),
            Action::StartPod { attempt } => format!("start {attempt}"),
            Action::Assign { attempt, .. } => format!("assign {attempt}"),
            Action::NoteEnding { reason, .. } => format!("note {reason}"),
            Action::DeletePod { .. } => "delete".to_owned(),
            Action::EndAttempt {
                outcome,
                reason,
                settlement,
                ..
            } => match settlement {
                Settlement::Final { .. } => format!("end {outcome} {reason}"),
                Settlement::Retry { .. } => format!("end {outcome} {reason}, retry"),
            },
            Action::Settle { settlement, .. } => match settlement {
                Settlement::Final { outcome, .. } => format!("settle {outcome}"),
                Settlement::Retry { .. } => "settle, retry".to_owned(),
            },
            Action::Finish(decided) => format!("finish {} {}", decided.outcome, decided.reason),
            Action::ReleaseLease => "release".to_owned(),
        };
        self.plan(second).actions.iter().map(word).collect()
    }
}

#[test]
fn a_fresh_sub_task_takes_its_lease_before_anything_else_and_then_starts() {
    let mut case = fresh();
    case.has_lease = false;
    assert_eq!(case.actions(0), ["take lease"]);
    case.has_lease = true;
    assert_eq!(case.actions(0), ["start 1"]);
}

#[test]
fn a_pod_that_was_made_before_a_crash_is_assigned_and_not_made_again() {
    // F084
    let mut case = fresh();
    case.pods = vec![pod(1, PodState::Pending { message: None })];
    assert_eq!(case.actions(1), ["assign 1"]);
}

#[test]
fn a_stop_before_the_start_ends_at_once_with_its_own_reason() {
    let deadline = RunView::Live {
        stopped_at: None,
        suspended: false,
        going_since: None,
        deadline: Some(at(3)),
        finished: false,
    };
    let cancelled = RunView::Live {
        stopped_at: Some(at(3)),
        suspended: false,
        going_since: None,
        deadline: None,
        finished: false,
    };
    for (run, expected) in [
        (cancelled, "finish Cancelled Cancelled"),
        (RunView::Gone, "finish Cancelled Cancelled"),
        (deadline, "finish Timeout DeadlineExceeded"),
    ] {
        let case = Case { run, ..fresh() };
        assert_eq!(case.actions(4), [expected]);
    }
    let case = Case {
        marked: Some((Stop::FailedFast, at(3))),
        ..fresh()
    };
    assert_eq!(case.actions(4), ["finish Cancelled RunFailedFast"]);
}

#[test]
fn a_pod_that_nobody_was_assigned_to_goes_with_the_stop() {
    let mut case = Case {
        run: RunView::Gone,
        ..fresh()
    };
    case.pods = vec![pod(1, running())];
    assert_eq!(case.actions(4), ["delete", "finish Cancelled Cancelled"]);
}

#[test]
fn a_suspended_run_starts_nothing_and_says_so() {
    let run = RunView::Live {
        stopped_at: None,
        suspended: true,
        going_since: None,
        deadline: None,
        finished: false,
    };
    let plan = Case { run, ..fresh() }.plan(1);
    assert_eq!(
        (plan.actions.len(), plan.waiting_for.as_deref()),
        (0, Some("the run is suspended"))
    );
}

#[test]
fn what_cannot_start_says_why_and_ends_at_the_start_timeout() {
    // F014, F049
    let case = Case {
        blocked: Some("VolumeQuarantined: …"),
        ..fresh()
    };
    assert_eq!(
        case.plan(599).waiting_for.as_deref(),
        Some("VolumeQuarantined: …")
    );
    assert_eq!(case.plan(599).look_again, Some(at(600)));
    assert_eq!(case.actions(600), ["finish Error StartTimeout"]);
    let waiting = assigned(PodState::Pending {
        message: Some("Unschedulable: no node".into()),
    });
    assert_eq!(
        waiting.plan(5).waiting_for.as_deref(),
        Some("Unschedulable: no node")
    );
    assert_eq!(waiting.actions(601), ["note StartTimeout", "delete"]);
}

#[test]
fn a_running_attempt_is_left_to_its_runtime_until_the_backstop() {
    let case = assigned(running());
    assert!(case.actions(62).is_empty(), "the runtime keeps the deadline");
    assert_eq!(case.actions(92), ["note DeadlineExceeded", "delete"]);
    let early = Case {
        backstop: false,
        ..assigned(running())
    };
    assert!(early.actions(92).is_empty(), "not right after becoming leader");
}

#[test]
fn a_stopped_attempt_gets_its_grace_and_then_loses_its_pod() {
    let run = RunView::Live {
        stopped_at: Some(at(10)),
        suspended: false,
        going_since: None,
        deadline: None,
        finished: false,
    };
    let case = Case {
        run,
        ..assigned(running())
    };
    assert!(case.actions(20).is_empty());
    assert_eq!(case.plan(20).look_again, Some(at(25)));
    assert_eq!(case.actions(25), ["note Cancelled", "delete"]);
    let pending = Case {
        run,
        ..assigned(PodState::Pending { message: None })
    };
    assert_eq!(
        pending.actions(11),
        ["note Cancelled", "delete"],
        "nothing of it runs: no grace"
    );
}

#[test]
fn a_noted_end_is_written_when_the_pod_is_gone_and_not_before() {
    let mut case = assigned(running());
    case.status.attempts[0].reason = Some("RuntimeLost".into());
    assert_eq!(case.actions(20), ["delete"]);
    case.pods[0].deleting_since = Some(at(20));
    assert!(case.actions(21).is_empty());
    case.pods.clear();
    assert_eq!(case.actions(22), ["end Error RuntimeLost, retry"]);
}

#[test]
fn a_lost_container_waits_for_its_last_word_and_for_the_rest_to_stop() {
    assert!(assigned(lost(false, false)).actions(20).is_empty());
    assert_eq!(
        assigned(lost(true, false)).actions(20),
        ["note OOMKilled", "delete"]
    );
    assert_eq!(assigned(lost(true, true)).actions(20), ["end Error OOMKilled"]);
}

#[test]
fn a_vanished_pod_is_lost_and_tried_again_unless_it_was_stopped() {
    let mut case = assigned(running());
    case.pods.clear();
    assert_eq!(case.actions(20), ["end Error PodLost, retry"]);
    case.run = RunView::Gone;
    assert_eq!(case.actions(20), ["end Cancelled Cancelled"]);
}

#[test]
fn an_unconfirmed_deletion_ends_as_a_lost_node_after_a_minute() {
    // F050, F083
    let mut case = assigned(running());
    case.status.attempts[0].reason = Some("Cancelled".into());
    case.pods[0].deleting_since = Some(at(20));
    assert!(case.actions(79).is_empty());
    assert_eq!(case.actions(80), ["end Error NodeLost, retry"]);
}

#[test]
fn the_next_attempt_waits_for_its_time_and_for_the_pod_before() {
    let mut case = finished(Outcome::Error, false);
    case.status.outcome = None;
    case.status.next_attempt_time = Some(MicroTime(at(30)));
    case.spec.retry = Some(Retry {
        attempts: Some(2),
        ..Retry::default()
    });
    assert_eq!(case.actions(11), ["delete"]);
    case.pods[0].deleting_since = Some(at(11));
    assert!(
        case.actions(31).is_empty(),
        "its process tree is not proven empty"
    );
    case.pods.clear();
    assert_eq!(case.plan(12).look_again, Some(at(30)));
    assert_eq!(case.actions(30), ["start 2"]);
}

#[test]
fn cancel_in_back_off_ends_at_once() {
    let mut case = finished(Outcome::Error, true);
    case.status.outcome = None;
    case.status.next_attempt_time = Some(MicroTime(at(300)));
    case.pods.clear();
    case.run = RunView::Live {
        stopped_at: Some(at(12)),
        suspended: true,
        going_since: None,
        deadline: None,
        finished: false,
    };
    assert_eq!(case.actions(12), ["finish Cancelled Cancelled"]);
}

#[test]
fn a_lease_ends_with_the_proof_of_an_empty_tree_or_with_the_pod() {
    assert_eq!(
        finished(Outcome::Success, true).actions(11),
        ["delete", "release"]
    );
    let mut unproven = finished(Outcome::Error, false);
    assert_eq!(unproven.actions(11), ["delete"]);
    unproven.pods.clear();
    assert_eq!(unproven.actions(12), ["release"]);
    unproven.has_lease = false;
    assert_eq!(
        unproven.plan(13),
        SubTaskPlan::default(),
        "a settled object is left alone"
    );
}

#[test]
fn a_failed_sandbox_is_kept_as_long_as_asked_and_says_so() {
    let keep = Duration::from_mins(5);
    let case = Case {
        keep,
        ..finished(Outcome::Error, true)
    };
    assert_eq!(case.actions(20), ["release"]);
    assert!(case.plan(20).waiting_for.unwrap().starts_with("keepOnFailure"));
    assert_eq!(case.plan(20).look_again, Some(at(310)));
    assert_eq!(case.actions(310), ["delete", "release"]);
    let success = Case {
        keep,
        ..finished(Outcome::Success, true)
    };
    assert_eq!(success.actions(20), ["delete", "release"]);
    let gone = Case {
        keep,
        run: RunView::Gone,
        ..finished(Outcome::Error, true)
    };
    assert_eq!(gone.actions(20), ["delete", "release"]);
}

#[test]
fn a_sub_task_deleted_under_a_live_run_keeps_its_name_until_the_run_is_over() {
    let mut case = Case {
        deleted: Some(at(9)),
        ..finished(Outcome::Cancelled, true)
    };
    case.pods.clear();
    assert!(case.actions(11).is_empty());
    case.run = RunView::Live {
        stopped_at: None,
        suspended: false,
        going_since: None,
        deadline: None,
        finished: true,
    };
    assert_eq!(case.actions(12), ["release"]);
    case.run = RunView::Gone;
    assert_eq!(case.actions(12), ["release"]);
}

#[test]
fn a_broken_pod_ends_its_attempt_and_an_invalid_image_is_not_tried_again_by_itself() {
    // F030
    let broken = PodState::Broken {
        reason: SubTaskReason::InvalidImageName,
        message: "image X".into(),
    };
    let mut case = assigned(broken);
    assert_eq!(case.actions(5), ["note InvalidImageName", "delete"]);
    case.status.attempts[0].reason = Some("InvalidImageName".into());
    case.pods.clear();
    assert_eq!(case.actions(6), ["end Error InvalidImageName"]);
}

// F036
#[test]
fn a_run_at_rest_does_not_run_out_of_time_and_ends_what_is_late_when_it_goes_on() {
    let late = |suspended| RunView::Live {
        stopped_at: None,
        suspended,
        going_since: None,
        deadline: Some(at(3)),
        finished: false,
    };
    let mut case = fresh();
    case.run = late(true);
    assert_eq!(case.actions(5), Vec::<String>::new());
    case.run = late(false);
    assert_eq!(case.actions(5), ["finish Timeout DeadlineExceeded"]);
}

#[test]
fn the_time_to_start_begins_anew_when_a_run_at_rest_goes_on() {
    let going = |since| RunView::Live {
        stopped_at: None,
        suspended: false,
        going_since: Some(at(since)),
        deadline: None,
        finished: false,
    };
    let hour = 3600;
    let mut case = fresh();
    case.run = going(hour);
    assert_eq!(case.actions(hour + 1), ["start 1"]);
    case.run = going(0);
    assert_eq!(case.actions(hour + 1), ["finish Error StartTimeout"]);
}

// F030
#[test]
fn a_pod_that_waits_is_looked_at_again_though_no_event_comes() {
    let waits = PodState::Pending {
        message: Some("ImagePullBackOff".into()),
    };
    assert_eq!(assigned(waits).plan(5).look_again, Some(at(5) + PENDING_LOOK));
}

/// Attempt 1 has succeeded, and its criteria are run again.
fn unsettled(reruns: Reruns) -> Case {
    let mut case = finished(Outcome::Success, true);
    case.status.outcome = None;
    case.status.attempts[0].reason = Some(SubTaskReason::Completed.into());
    case.spec.acceptance = vec!["rerun:true".into()];
    case.spec.acceptance_policy = Some(agentrun_api::AcceptancePolicy::Require);
    case.pods = Vec::new();
    case.reruns = Some(reruns);
    case
}

fn done(checked: bool, holds: bool) -> Reruns {
    Reruns::Done(vec![agentrun_api::Verdict {
        criterion: "rerun:true".into(),
        checked,
        holds,
        ..agentrun_api::Verdict::default()
    }])
}

#[test]
fn a_success_is_settled_when_its_criteria_were_run_again_and_starts_nothing_before() {
    let running = Reruns::Running { name: "x".into() };
    for reruns in [
        running,
        Reruns::Due {
            criterion: 0,
            name: "x".into(),
        },
    ] {
        let mut case = unsettled(reruns);
        // Its own Pod goes, and even years later nothing else happens.
        case.pods = vec![pod(1, self::running())];
        assert_eq!(case.actions(20), ["delete"]);
        case.pods = Vec::new();
        assert!(case.actions(1_000_000).is_empty());
        assert!(case.plan(20).waiting_for.is_some());
        assert_eq!(phase_of(&case.status), SubTaskPhase::Running);
    }
    for (checked, holds, attempts, expected) in [
        (true, true, 2, "settle Success"),
        (true, false, 1, "settle Success"),
        (true, false, 2, "settle, retry"),
        (false, false, 2, "settle, retry"),
    ] {
        let mut case = unsettled(done(checked, holds));
        case.spec.retry = Some(Retry {
            attempts: Some(attempts),
            ..Retry::default()
        });
        assert_eq!(case.actions(20), [expected], "{checked} {holds} {attempts}");
    }
}

#[test]
fn a_stop_before_a_success_is_settled_ends_it_as_stopped() {
    for reruns in [Reruns::Running { name: "x".into() }, done(true, true)] {
        let mut case = unsettled(reruns);
        case.run = RunView::Gone;
        assert_eq!(case.actions(20), ["finish Cancelled Cancelled"]);
        case.run = live();
        case.marked = Some((Stop::FailedFast, at(15)));
        assert_eq!(case.actions(20), ["finish Cancelled RunFailedFast"]);
    }
}
