//! Turns in which the model calls no tool: answers, and what is none.

use crate::Agent;
use crate::output;
use crate::state::Phase;
use crate::step::{Answer, End, Failure};
use crate::text::shorten;
use agentrun_protocol::agent::StopReason;
use agentrun_protocol::chat::{Finish, Message, ModelFailure, ModelFailureCode};

/// How often an answer that does not fit the output schema may be repaired.
const MAX_REPAIRS: u32 = 2;
/// How often an answer that was cut may be gone on with.
const MAX_CUTS: u32 = 3;
/// The longest answer in bytes (1 MiB).
const MAX_ANSWER: usize = 1 << 20;

impl Agent {
    /// Takes a text without tool calls.
    pub(crate) fn take_text(&mut self, text: &str, finish: Finish) {
        if text.trim().is_empty() {
            return self.take_nothing(finish);
        }
        self.state.empty = 0;
        self.state.push(Message::Assistant {
            text: shorten(text, self.room(3)),
            tool_calls: Vec::new(),
        });
        let whole = std::mem::take(&mut self.state.partial) + text;
        if finish == Finish::Length && self.state.cuts < MAX_CUTS && whole.len() < MAX_ANSWER {
            self.state.cuts += 1;
            self.state.partial = whole;
            self.state.advise(
                "Your answer reached its length limit. Go on exactly where it ends; repeat nothing, begin with no remark.",
            );
            return self.before_turn();
        }
        self.conclude(&whole, finish);
    }

    fn conclude(&mut self, whole: &str, finish: Finish) {
        let whole = &whole[..whole.floor_char_boundary(MAX_ANSWER)];
        let Some(schema) = &self.setup.terms.output_schema else {
            return self.submit(Answer::Text(whole.to_owned()));
        };
        let problem = match output::read(schema, whole) {
            Ok(answer) => return self.submit(answer),
            Err(problem) if finish == Finish::Length => format!("it was cut at the length limit; {problem}"),
            Err(problem) => problem,
        };
        if self.state.repairs == MAX_REPAIRS {
            let text = whole.to_owned();
            return self.end(End::Failed(Failure::Output { problem, text }));
        }
        self.state.repairs += 1;
        self.state.advise(&format!(
            "This is not what was asked for: {problem}. Answer with the one JSON document and nothing else."
        ));
        self.before_turn();
    }

    fn take_nothing(&mut self, finish: Finish) {
        if finish == Finish::ContentFilter {
            return self.end(End::Failed(Failure::Model(ModelFailure {
                code: ModelFailureCode::Refused,
                message:
                    "the endpoint withheld the answer by its content filter: change the task, or the model"
                        .to_owned(),
            })));
        }
        self.state.empty += 1;
        if self.state.empty > 1 {
            return match self.state.stop {
                Some(reason) => self.end_with_last(Failure::Stopped(reason)),
                None => self.end(End::Failed(Failure::Empty)),
            };
        }
        self.state.advise(if self.is_without_tools() {
            "You answered nothing. Write your answer as text now; there are no tools any more."
        } else {
            "You answered nothing. Go on by calling a tool, or, when the task is done, write your answer."
        });
        self.before_turn();
    }

    /// Tokens or money are used up: what was said is all there will be.
    pub(crate) fn cap(&mut self, failure: ModelFailure) {
        self.state.stop = Some(StopReason::TokenCapped);
        if let Phase::Reviewing(answer) = &self.state.phase {
            let answer = answer.clone();
            return self.end(End::Answered(answer));
        }
        self.end_with_last(Failure::Model(failure));
    }

    /// Ends with the last thing that was said, where that is an answer.
    fn end_with_last(&mut self, otherwise: Failure) {
        let said = match self.state.partial.is_empty() {
            true => self.state.last_text().map(str::to_owned),
            false => Some(std::mem::take(&mut self.state.partial)),
        };
        let answer = said.and_then(|text| match &self.setup.terms.output_schema {
            Some(schema) => output::read(schema, &text).ok(),
            None => Some(Answer::Text(text)),
        });
        self.end(match answer {
            Some(answer) => End::Answered(answer),
            None => End::Failed(otherwise),
        });
    }

    /// One last turn without tools.
    pub(crate) fn stop(&mut self, reason: StopReason) {
        self.state.stop = Some(reason);
        let why = match reason {
            StopReason::TurnCapped => "You have used all your turns",
            StopReason::LoopCapped => "You repeat yourself without getting on",
            StopReason::TokenCapped => "Your tokens are used up",
        };
        self.state.advise(&format!(
            "{why}; there are no tools any more. Write your answer now: what you found or made, and what is open."
        ));
    }

    /// The model may only answer.
    pub(crate) fn is_without_tools(&self) -> bool {
        self.state.stop.is_some() || self.state.repairs > 0
    }

    /// Caps turns and length.
    pub(crate) fn before_turn(&mut self) {
        let taken = self.state.turn - self.state.turns_before;
        if self.state.stop.is_none() && taken >= self.setup.terms.max_turns {
            self.stop(StopReason::TurnCapped);
        }
        self.fit();
    }

    pub(crate) fn fail(&mut self, failure: ModelFailure) {
        self.end(End::Failed(Failure::Model(failure)));
    }

    fn end(&mut self, end: End) {
        self.state.phase = Phase::Done(end);
    }
}
