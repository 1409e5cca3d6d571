//! Decides `rerun:COMMAND` from how the command ended in a fresh sandbox.
//!
//! Where that happens is the plan's part (`plan::rerun`); until then such a criterion is open, whatever was said of it.

use super::{Criterion, Finding, parse};
use agentrun_api::{AcceptancePolicy, Outcome, SubTaskReason, SubTaskStatus, Verdict};

/// The command of a criterion that runs one.
pub fn command(criterion: &str) -> Option<String> {
    match parse(criterion) {
        Ok(Criterion::Rerun { command }) => Some(command),
        _ => None,
    }
}

/// Whether nothing that is run again could let a success stand: another criterion does not hold, and all must.
pub fn is_idle(policy: Option<AcceptancePolicy>, verdicts: &[Verdict]) -> bool {
    policy == Some(AcceptancePolicy::Require)
        && verdicts.iter().any(|verdict| verdict.checked && !verdict.holds)
}

/// What is found about a criterion when running it again is idle.
pub fn not_run_again() -> Finding {
    Finding::unverified("not run again: another criterion does not hold")
}

/// Makes every criterion that is to be run again unverified, and says whether any of them really has to be.
pub fn leave_open(policy: Option<AcceptancePolicy>, verdicts: &mut [Verdict]) -> bool {
    for verdict in reruns(verdicts) {
        Finding::unverified("its command is still to be run in a fresh sandbox").put(verdict);
    }
    let idle = is_idle(policy, verdicts);
    let mut open = false;
    for verdict in reruns(verdicts) {
        match idle {
            true => not_run_again().put(verdict),
            false => open = true,
        }
    }
    open
}

fn reruns(verdicts: &mut [Verdict]) -> impl Iterator<Item = &mut Verdict> {
    let is_rerun = |verdict: &&mut Verdict| command(&verdict.criterion).is_some();
    verdicts.iter_mut().filter(is_rerun)
}

/// What the end of the command says; `None` while it has none. Only an exit code decides: a sandbox that was lost or an
/// image without a shell says nothing about the work.
pub fn decide_rerun(status: &SubTaskStatus) -> Option<Finding> {
    let outcome = status.outcome?;
    let reason = status.reason.as_deref().unwrap_or_default();
    // Of what is no exit of its own, these alone come with an exit code: a shell's, whose child was killed.
    let killed = [SubTaskReason::OOMKilled, SubTaskReason::TooManyProcesses];
    let exited = outcome == Outcome::Error && killed.iter().all(|killed| killed.as_str() != reason);
    Some(match (outcome, status.exit_code) {
        // Output that is no JSON is of no interest here.
        (Outcome::Success | Outcome::ParseError, Some(0)) => Finding::holds("exit code 0"),
        (_, Some(code)) if exited && code != 0 => {
            let detail = match last_line(status) {
                Some(line) => format!("exit code {code}: {line}"),
                None => format!("exit code {code}, without output"),
            };
            Finding::fails(&detail)
        }
        _ => {
            let message = status.message.as_deref().unwrap_or_default();
            let separator = if message.is_empty() { "" } else { ": " };
            Finding::unverified(&format!("{outcome}, {reason}{separator}{message}"))
        }
    })
}

/// The last line that it printed, on stderr if there is any: programs say there why they fail.
fn last_line(status: &SubTaskStatus) -> Option<&str> {
    [&status.stderr_tail, &status.stdout_tail]
        .into_iter()
        .flatten()
        .find_map(|tail| tail.lines().map(str::trim).rfind(|line| !line.is_empty()))
}
