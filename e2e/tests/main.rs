//! Tests on a real cluster in which AgentRun is installed: `KUBECONFIG=... cargo test -p agentrun-e2e [FILTER]`.
//!
//! Every test has a namespace of its own that enforces Pod Security `restricted`, waits for conditions with
//! deadlines, never for time, and passes only when its namespace goes without help, too. README.md says more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the lints know #[test] functions, and this harness is another"
)]
#![allow(
    unreachable_pub,
    reason = "one binary: nothing of it can be reached from outside"
)]

mod acceptance;
mod agent_kills;
mod agents;
mod bad_input;
mod disruption;
mod ends;
mod framework;
mod gitops;
mod hostile;
mod http_api;
mod isolation;
mod lifecycle;
mod plan;
mod starting;
mod threads;

use framework::{Mode, trials};
use libtest_mimic::Arguments;
use std::process::ExitCode;

/// Tests at once unless `--test-threads` says otherwise. A test mostly waits for a node.
const PARALLEL: usize = 4;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(PARALLEL);
    let mut tests = trials![Mode::Together;
        isolation::a_sandbox_reaches_nothing_and_finds_no_credential,
        isolation::egress_opens_what_it_names_and_nothing_else,
        isolation::a_sandbox_pod_keeps_what_the_design_promises,
        ends::an_exit_code_and_a_signal_are_errors_that_say_so,
        ends::a_timeout_keeps_the_last_output,
        ends::anything_but_one_json_document_is_a_parse_error,
        ends::memory_beyond_the_limit_ends_as_oom_killed_in_seconds,
        ends::a_full_scratch_folder_and_a_large_file_end_with_their_reason,
        ends::killing_every_process_ends_only_the_work_that_did_it,
        ends::a_fork_bomb_ends_alone,
        ends::a_pod_deleted_under_its_work_is_restarted,
        ends::a_disruption_is_an_error_where_restarts_are_refused,
        starting::what_is_missing_is_named_and_waited_for,
        starting::an_image_that_is_not_there_ends_with_its_reason,
        starting::a_volume_that_never_binds_ends_at_the_start_timeout,
        starting::a_claim_deleted_before_the_start_is_named,
        starting::what_never_appears_ends_the_run_at_its_start_timeout,
        starting::an_exhausted_quota_is_waited_for,
        starting::a_volume_that_a_quota_keeps_out_is_waited_for_and_named,
        plan::a_failed_attempt_is_repeated_after_its_pause,
        plan::some_items_may_fail_and_leave_null,
        plan::a_false_condition_skips_and_fails_nothing,
        plan::a_failure_stops_the_siblings_when_the_run_fails_fast,
        plan::outputs_are_inline_only_if_they_survive,
        plan::files_arrive_before_the_first_task,
        plan::environment_and_secrets_reach_only_their_task,
        plan::the_runs_deadline_cuts_its_tasks,
        plan::queue_time_is_told_apart_from_run_time,
        acceptance::criteria_about_files_are_decided_from_what_lies_there,
        acceptance::passed_tests_are_counted_in_the_record_of_the_run,
        acceptance::a_runs_own_criteria_are_checked_after_its_last_task,
        acceptance::a_command_is_run_again_in_a_fresh_sandbox_that_only_reads,
        acceptance::what_is_required_and_not_met_is_tried_again_with_notes,
        agents::a_lead_works_on_its_goal_with_tools_and_delivers,
        agents::a_lead_delegates_and_hears_what_came_of_it,
        agents::a_lead_is_planned_before_and_reviewed_after,
        agents::a_model_that_only_delegates_is_held_to_its_caps,
        agents::delegates_of_delegates_go_as_deep_as_they_may_and_no_deeper,
        agents::a_lead_whose_pod_is_killed_goes_on_where_it_was,
        agents::tokens_that_are_used_up_end_an_agent_with_what_it_has,
        agents::a_goal_without_a_model_waits_and_names_it,
        agent_kills::pods_of_a_lead_and_its_delegate_die_at_each_phase_and_the_end_is_the_same,
        http_api::a_caller_makes_follows_and_calls_what_its_token_allows,
        lifecycle::a_run_can_be_deleted_at_any_moment,
        lifecycle::cancel_works_before_the_start_while_running_and_in_a_pause,
        lifecycle::a_suspended_run_starts_nothing_and_goes_on_later,
        lifecycle::a_finished_run_goes_when_its_time_is_over,
        lifecycle::a_namespace_goes_with_a_live_run_while_others_work,
        lifecycle::a_failed_sandbox_is_kept_and_the_run_says_so,
        lifecycle::objects_already_gone_do_not_hold_a_deletion_up,
        threads::runs_of_a_thread_take_turns_and_share_its_files,
        threads::a_busy_thread_rejects_or_is_taken_over_as_the_run_says,
        threads::a_thread_that_is_not_retained_goes_with_its_last_run,
        threads::a_run_waits_until_the_work_of_a_deleted_one_has_gone,
        bad_input::every_mistake_is_refused_naming_its_field,
        gitops::an_applied_example_shows_no_difference,
    ];
    tests.extend(trials![Mode::Alone;
        hostile::no_program_finds_a_way_out_and_the_node_stays_well,
        agent_kills::operator_and_gateway_die_at_each_phase_and_the_end_is_the_same,
        disruption::the_control_plane_may_stop_and_die_and_every_run_ends_the_same,
    ]);
    libtest_mimic::run(&arguments, tests).exit_code()
}
