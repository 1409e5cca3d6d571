//! One attempt of an agent from its begin to its end.

use super::desk::Desk;
use super::halt::{Bounds, Halt};
use super::open::{OpenError, open};
use crate::attempt::{Context, Control};
use crate::executor::Ran;
use agentrun_agent::{Answer, End, Failure};
use agentrun_protocol::agent::{AgentFacts, AgentTerms};
use agentrun_protocol::work::Assignment;
use tokio::time::Instant;

/// What an agent is to do.
pub(crate) struct Job<'a> {
    pub(crate) context: &'a Context,
    pub(crate) assignment: &'a Assignment,
    /// The assignment's work.
    pub(crate) terms: &'a AgentTerms,
    pub(crate) deadline: Instant,
}

/// An attempt that is over.
pub(crate) struct Over {
    /// The agent's end, or what came before it.
    pub(crate) end: Result<End, Halt>,
    pub(crate) facts: AgentFacts,
    pub(crate) ran: Ran,
    /// The last that it said.
    pub(crate) text: String,
}

/// Works until the agent is done or something else ends the attempt.
pub(crate) async fn run(job: Job<'_>, control: &Control) -> Result<Over, OpenError> {
    let (state, secrets) = (
        job.context.settings.folders.state.clone(),
        job.context.secrets.clone(),
    );
    let (assignment, terms) = (job.assignment.clone(), job.terms.clone());
    let opened = crate::blocking(move || Ok(open(&state, &assignment, &terms, &secrets))).await??;
    let bounds = Bounds {
        deadline: job.deadline,
        control: control.clone(),
        link: &job.context.link,
    };
    let mut desk = Desk::new(&job, bounds, opened);
    let worked = desk.work().await;
    let ran = desk.toolbox.ran();
    let (end, facts, text, transcript) = match worked {
        Ok(finished) => {
            let text = text_of(&finished.end).unwrap_or_else(|| desk.last_text());
            (Ok(finished.end), finished.facts, text, finished.transcript)
        }
        Err(halt) => {
            let facts = AgentFacts {
                turns: desk.agent.turns(),
                stop_reason: None,
                review: None,
                spent: desk.agent.spent().clone(),
            };
            (Err(halt), facts, desk.last_text(), desk.agent.snapshot())
        }
    };
    let kept = desk.keep_conversation(&transcript).await;
    let end = match kept {
        Err(error) if end.is_ok() => Err(Halt::Evidence(error)),
        _ => end,
    };
    Ok(Over {
        end,
        facts,
        ran,
        text,
    })
}

/// The text of an answer, or of what should have been one.
fn text_of(end: &End) -> Option<String> {
    match end {
        End::Answered(Answer::Text(text) | Answer::Json { text, .. })
        | End::Failed(Failure::Output { text, .. }) => Some(text.clone()),
        End::Failed(_) => None,
    }
}
