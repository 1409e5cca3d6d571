//! What the end of an agent means for its attempt.

use super::Control;
use super::judge::{TAIL, Verdict};
use super::output::{self, Placed};
use super::prepare::{Basis, Prepared};
use super::run::{Attempt, AttemptEnd, millis};
use crate::agent::{self, Halt, Job, OpenError, Over};
use crate::store::evidence::Evidence;
use agentrun_agent::{Answer, End, Failure};
use agentrun_api::SubTaskReason;
use agentrun_core::contract::tail::Capture;
use agentrun_protocol::agent::{AgentTerms, StopReason};
use agentrun_protocol::chat::ModelFailureCode;
use agentrun_protocol::result::{AttemptResult, Ending, Timing, Usage};
use serde_json::json;
use std::io;
use tokio::time::Instant;

impl Attempt {
    /// Has an agent work.
    pub(super) async fn agent(
        &self,
        prepared: Prepared,
        terms: &AgentTerms,
        control: &Control,
    ) -> AttemptEnd {
        let begun = Instant::now();
        let job = Job {
            context: &self.context,
            assignment: &self.assignment,
            terms,
            deadline: self.deadline,
        };
        let over = match agent::run(job, control).await {
            Ok(over) => over,
            Err(OpenError::Volume(error)) => return self.unprepared(&self.volume(error).into()),
            Err(error) => return self.unstarted(Ending::Error, reason_of(&error), &error),
        };
        let timing = Timing {
            start_ms: millis(begun - self.started),
            run_ms: millis(begun.elapsed()),
        };
        let Over {
            end,
            facts,
            ran,
            text,
        } = over;
        let stdout_tail = self.tail(&text);
        let end = match end {
            Err(Halt::Lost(_)) => {
                return AttemptEnd::ExecutorLost {
                    stdout_tail,
                    stderr_tail: String::new(),
                };
            }
            Err(Halt::Evidence(error)) => Err(error),
            end => self.judged(end, facts.stop_reason, prepared.basis).await,
        };
        let result = end.unwrap_or_else(|error| self.unwritable(error));
        AttemptEnd::Result(Box::new(AttemptResult {
            stdout_tail,
            timing,
            usage: Usage {
                peak_memory_bytes: i64::try_from(ran.peak_memory_bytes).unwrap_or(i64::MAX),
                cpu_ms: i64::try_from(ran.cpu_ms).unwrap_or(i64::MAX),
            },
            agent: Some(facts),
            process_tree_empty: ran.tree_empty,
            ..result
        }))
    }

    async fn judged(
        &self,
        end: Result<End, Halt>,
        stopped: Option<StopReason>,
        basis: Basis,
    ) -> io::Result<AttemptResult> {
        let until = Instant::now() + self.context.settings.bounds.collect;
        let (limit_ms, evidence) = (self.assignment.remaining_ms, self.evidence.clone());
        let verdict = crate::blocking(move || judge(end, stopped, limit_ms, &evidence)).await?;
        self.deliver(verdict, None, basis.before, basis.unwritten, until)
            .await
    }

    /// The end of what the agent said, for people.
    fn tail(&self, text: &str) -> String {
        let mut capture = Capture::new(0, TAIL);
        capture.push(self.context.secrets.blot(text).as_bytes());
        capture.tail(TAIL)
    }
}

fn reason_of(error: &OpenError) -> SubTaskReason {
    match error {
        OpenError::Snapshot(_) | OpenError::Transcript(_) => SubTaskReason::InputChanged,
        OpenError::Path(_) | OpenError::Journal(_) => SubTaskReason::StartFailed,
        OpenError::Volume(_) => SubTaskReason::VolumeNotWritable,
    }
}

/// Judges the end of an agent, and puts its output in its place. Blocks.
fn judge(
    end: Result<End, Halt>,
    stopped: Option<StopReason>,
    limit_ms: u64,
    evidence: &Evidence,
) -> io::Result<Verdict> {
    Ok(match end {
        Ok(End::Answered(answer)) => Verdict {
            ending: Ending::Success,
            reason: SubTaskReason::Completed,
            message: stopped.map(told).unwrap_or_default().to_owned(),
            exit_code: None,
            output: Some(place(&answer, evidence)?),
        },
        Ok(End::Failed(failure)) => {
            let (ending, reason) = failed(&failure);
            without_output(ending, reason, failure.to_string())
        }
        Err(Halt::Late) => {
            let message =
                format!("the agent was not done after {limit_ms} ms; give it more time or less to do");
            without_output(Ending::Timeout, SubTaskReason::DeadlineExceeded, message)
        }
        Err(halt) => without_output(Ending::Cancelled, SubTaskReason::Cancelled, halt.to_string()),
    })
}

fn without_output(ending: Ending, reason: SubTaskReason, message: String) -> Verdict {
    Verdict {
        ending,
        reason,
        message,
        exit_code: None,
        output: None,
    }
}

fn place(answer: &Answer, evidence: &Evidence) -> io::Result<Placed> {
    match answer {
        Answer::Json { text, value } => output::place(text.as_bytes(), value, evidence),
        Answer::Text(text) => {
            let value = json!({ "text": text });
            output::place(&serde_json::to_vec(&value)?, &value, evidence)
        }
    }
}

fn told(reason: StopReason) -> &'static str {
    match reason {
        StopReason::TokenCapped => "it had to end before it was done: tokens or money are used up",
        StopReason::TurnCapped => "it had to end before it was done: its turns are used up",
        StopReason::LoopCapped => "it had to end before it was done: it repeated itself without getting on",
    }
}

fn failed(failure: &Failure) -> (Ending, SubTaskReason) {
    let reason = match failure {
        Failure::Output { .. } => return (Ending::ParseError, SubTaskReason::InvalidOutput),
        Failure::Empty => SubTaskReason::ModelBadAnswer,
        Failure::Stopped(StopReason::TokenCapped) => SubTaskReason::BudgetExceeded,
        Failure::Stopped(StopReason::TurnCapped | StopReason::LoopCapped) => SubTaskReason::NoOutput,
        Failure::Model(failure) => match failure.code {
            ModelFailureCode::NoModel => SubTaskReason::NoModel,
            ModelFailureCode::AuthFailed => SubTaskReason::ModelAuthFailed,
            ModelFailureCode::Unreachable | ModelFailureCode::RateLimited => SubTaskReason::ModelUnavailable,
            ModelFailureCode::ContextTooLong => SubTaskReason::ContextTooLong,
            ModelFailureCode::BudgetExceeded => SubTaskReason::BudgetExceeded,
            ModelFailureCode::Refused => SubTaskReason::ModelRefused,
            ModelFailureCode::BadAnswer => SubTaskReason::ModelBadAnswer,
        },
    };
    (Ending::Error, reason)
}
