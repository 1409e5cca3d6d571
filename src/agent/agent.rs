//! The agent: what is next, and what it becomes by what it is told.

use crate::context;
use crate::entry::{Acted, Asked, Entry};
use crate::guard::Guard;
use crate::plan::Planning;
use crate::prompt;
use crate::setup::Setup;
use crate::skill;
use crate::state::{Phase, Size, Stage, State};
use crate::step::{Act, End, Finished, Step};
use crate::text::{clean, shorten};
use crate::tools;
use crate::transcript::{Speaker, Transcript, user};
use agentrun_protocol::agent::{AgentFacts, Spent};
use agentrun_protocol::chat::{
    Message, ModelAnswer, ModelFailure, ModelFailureCode, ModelRequest, Role, ToolSpec,
};
use std::collections::BTreeMap;

/// Bytes of a call's answer that the next run of a thread gets to see.
const MAX_REMEMBERED: usize = 1_500;

/// In the place of an image.
const REFUSED_IMAGE: &str =
    "\n[the image is not shown any more: the model's endpoint refused the conversation with it]";

/// An agent at work. Equal journals make equal agents.
#[derive(Clone, Debug, PartialEq)]
pub struct Agent {
    pub(crate) setup: Setup,
    pub(crate) state: State,
    /// All its tools, and their bytes; of the setup.
    pub(crate) specs: Vec<ToolSpec>,
    pub(crate) spec_bytes: u64,
}

impl Agent {
    /// Begins an attempt: goes on where `journal`, the entries of all earlier ones, ends. The entry that comes with it is
    /// to be appended before the first step is taken.
    ///
    /// Calls that were under way are made again where that is safe (delegations are one thing however often they are
    /// asked for, reading changes nothing); others are answered as interrupted. An agent that had ended well stays so,
    /// unless a later attempt brings [`Setup::notes`]; one that had failed goes on in a later attempt.
    pub fn open(setup: Setup, journal: impl IntoIterator<Item = Entry>) -> (Agent, Entry) {
        let Some(mut agent) = Agent::replay(journal) else {
            let entry = Entry::Began(Box::new(setup.clone()));
            return (Agent::of(setup), entry);
        };
        // What it began with is in the first entry.
        let again = Setup {
            snapshot: None,
            history: None,
            ..setup
        };
        let entry = Entry::Began(Box::new(again));
        agent.apply(entry.clone());
        (agent, entry)
    }

    /// The agent that a journal makes; `None` for one without a begin.
    pub fn replay(journal: impl IntoIterator<Item = Entry>) -> Option<Agent> {
        let mut agent: Option<Agent> = None;
        for entry in journal {
            match (&mut agent, entry) {
                (Some(agent), entry) => agent.apply(entry),
                (None, Entry::Began(setup)) => agent = Some(Agent::of(*setup)),
                (None, _) => {}
            }
        }
        agent
    }

    /// What is to be done now. Asking changes nothing.
    pub fn next(&self) -> Step {
        match &self.state.phase {
            Phase::Planning(planning) => Step::Ask(Box::new(self.plan_request(planning))),
            Phase::Turn => Step::Ask(Box::new(self.turn_request())),
            Phase::Compacting(from) => Step::Ask(Box::new(self.summary_request(*from))),
            Phase::Reviewing(answer) => Step::Ask(Box::new(self.review_request(answer))),
            Phase::Done(end) => Step::Done(Box::new(self.finished(end.clone()))),
            Phase::Acting { pending, .. } => {
                let act = |call: &crate::state::Pending| match &call.stage {
                    Stage::Waits(kind) => Some(Act {
                        at: call.at,
                        id: call.call.id.clone(),
                        kind: kind.clone(),
                    }),
                    _ => None,
                };
                let acts: Vec<Act> = pending.iter().filter_map(act).collect();
                let long = pending.iter().find_map(|call| match &call.stage {
                    Stage::Long(long) => Some(long),
                    _ => None,
                });
                match long {
                    Some(long) if acts.is_empty() => Step::Ask(Box::new(long.request())),
                    _ => Step::Act(acts),
                }
            }
        }
    }

    /// Takes the answer to [`Step::Ask`].
    pub fn answered(&mut self, answer: Result<ModelAnswer, ModelFailure>) -> Entry {
        let asked = match &self.state.phase {
            Phase::Turn | Phase::Done(_) => Asked::Turn,
            Phase::Acting { .. } => Asked::Result,
            Phase::Compacting(_) => Asked::Summary,
            Phase::Planning(_) => Asked::Plan,
            Phase::Reviewing(_) => Asked::Review,
        };
        self.told(Entry::Answered {
            asked,
            answer: answer.map(Box::new),
        })
    }

    /// Takes what came of an act of [`Step::Act`].
    pub fn acted(&mut self, acted: Acted) -> Entry {
        self.told(Entry::Acted(acted.bounded()))
    }

    /// What the agent has used so far.
    pub fn spent(&self) -> &Spent {
        &self.state.spent
    }

    /// Turns that the model took, through all attempts.
    pub fn turns(&self) -> u32 {
        self.state.turn
    }

    /// What a delegate of the present turn sees of this conversation: all that was said before the turn's own calls. The
    /// same for all delegates of the turn, and after a restart.
    pub fn snapshot(&self) -> Transcript {
        self.state.transcript(&self.setup.terms.prompt)
    }

    fn told(&mut self, entry: Entry) -> Entry {
        self.apply(entry.clone());
        entry
    }

    fn of(setup: Setup) -> Agent {
        let terms = &setup.terms;
        let mut task = terms.prompt.clone();
        if !setup.notes.is_empty() {
            task = format!("{task}\n\n{}", prompt::notes(&setup.notes));
        }
        let phase = match terms.is_planned {
            true => Phase::Planning(Planning::default()),
            false => Phase::Turn,
        };
        let state = State {
            phase,
            turn: 0,
            turns_before: 0,
            snapshot: setup.snapshot.clone(),
            history: setup.history.clone(),
            task,
            summary: None,
            lines: Vec::new(),
            todos: Vec::new(),
            followed: None,
            suggested: skill::fitting(&terms.skills, &terms.prompt),
            delegations: 0,
            stored: BTreeMap::new(),
            spent: Spent::default(),
            size: Size::default(),
            guard: Guard::default(),
            stop: None,
            empty: 0,
            repairs: 0,
            review: None,
            sent_back: 0,
            partial: String::new(),
            cuts: 0,
            image_bytes: 0,
        };
        let specs = tools::specs(&setup);
        let spec_bytes = context::bytes_of(&specs);
        let mut agent = Agent {
            setup,
            state,
            specs,
            spec_bytes,
        };
        agent.fit();
        agent
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Began(setup) => self.begin_again(*setup),
            Entry::Acted(acted) => self.take_outcome(acted.at, acted.outcome),
            Entry::Answered { asked, answer } => {
                if let Ok(answer) = &answer {
                    self.account(asked, answer);
                }
                self.take_answer(asked, answer);
            }
        }
    }

    fn begin_again(&mut self, setup: Setup) {
        let is_later = setup.attempt > self.setup.attempt;
        let has_new_notes = is_later && !setup.notes.is_empty() && setup.notes != self.setup.notes;
        let reopens = match &self.state.phase {
            Phase::Done(End::Answered(_)) => is_later && !setup.notes.is_empty(),
            Phase::Done(End::Failed(_)) => is_later,
            _ => false,
        };
        if matches!(self.state.phase, Phase::Done(_)) && !reopens {
            return;
        }
        let tells = !setup.notes.is_empty() && (has_new_notes || reopens);
        self.interrupt();
        let notes = prompt::notes(&setup.notes);
        self.specs = tools::specs(&setup);
        self.spec_bytes = context::bytes_of(&self.specs);
        self.setup = setup;
        if reopens {
            let state = &mut self.state;
            state.phase = Phase::Turn;
            state.turns_before = state.turn;
            state.guard = Guard::default();
            state.size = Size {
                counted: None,
                ..Size::default()
            };
            (state.stop, state.empty, state.repairs, state.cuts) = (None, 0, 0, 0);
            state.partial.clear();
        }
        match (tells, reopens) {
            // A message between a call and its answer is no conversation: then it waits for the answers.
            (true, _) if matches!(self.state.phase, Phase::Acting { .. }) => {
                self.state.task = format!("{}\n\n{notes}", self.state.task);
            }
            (true, _) => self.state.push(user(notes)),
            (false, true) => self
                .state
                .advise("The attempt before ended without a result. Go on from here."),
            (false, false) => {}
        }
        if self.state.phase == Phase::Turn {
            self.before_turn();
        }
    }

    fn account(&mut self, asked: Asked, answer: &ModelAnswer) {
        let role = match asked {
            Asked::Turn => self.setup.terms.role,
            Asked::Result | Asked::Summary => Role::Summarizer,
            Asked::Plan => Role::Planner,
            Asked::Review => Role::Reviewer,
        };
        let usage = answer.usage;
        let spent = &mut self.state.spent;
        let tokens = spent.tokens.entry(role.as_str().to_owned()).or_default();
        *tokens = tokens.saturating_add(usage.input).saturating_add(usage.output);
        spent.cost_micros = spent.cost_micros.saturating_add(answer.cost_micros);
    }

    fn take_answer(&mut self, asked: Asked, answer: Result<Box<ModelAnswer>, ModelFailure>) {
        if let Phase::Done(_) = self.state.phase {
            return;
        }
        let answer = match answer {
            Err(failure) if failure.code == ModelFailureCode::BudgetExceeded => return self.cap(failure),
            answer => answer,
        };
        match asked {
            Asked::Turn => match answer {
                Ok(answer) => self.take_turn(&answer),
                Err(failure) if failure.code == ModelFailureCode::ContextTooLong => self.too_long(failure),
                // A damaged image would be refused with all that follows it, in this attempt and in later ones.
                Err(failure)
                    if failure.code == ModelFailureCode::Refused
                        && self.state.forget_images(0, REFUSED_IMAGE) => {}
                Err(failure) => self.fail(failure),
            },
            aside => self.take_aside(aside, answer.ok().map(|answer| answer.text).as_deref()),
        }
    }

    /// Takes what was asked besides the conversation. Without it, the work goes on with less.
    fn take_aside(&mut self, asked: Asked, said: Option<&str>) {
        match (asked, self.state.phase.clone()) {
            (Asked::Result, _) => self.take_short(said),
            (Asked::Plan, Phase::Planning(planning)) => self.take_plan(planning, said),
            (Asked::Review, Phase::Reviewing(submitted)) => self.take_review(submitted, said),
            (Asked::Summary, Phase::Compacting(from)) => self.summarized(from, said),
            _ => {}
        }
    }

    fn take_turn(&mut self, answer: &ModelAnswer) {
        // An attempt of another version may have asked before it shortened.
        if matches!(self.state.phase, Phase::Acting { .. }) {
            return;
        }
        self.state.phase = Phase::Turn;
        self.state.turn += 1;
        self.measure(answer.usage);
        let text = clean(&answer.text);
        if answer.tool_calls.is_empty() || self.is_without_tools() {
            return self.take_text(&text, answer.finish);
        }
        self.state.empty = 0;
        // It goes on with its work instead of its answer.
        self.state.partial.clear();
        self.take_calls(shorten(&text, self.room(2)), &answer.tool_calls, answer.finish);
    }

    fn take_short(&mut self, summary: Option<&str>) {
        if let Phase::Acting { pending, .. } = &mut self.state.phase {
            for call in pending.iter_mut() {
                if let Stage::Long(long) = &call.stage {
                    call.stage = Stage::Over(long.reply(summary));
                    break;
                }
            }
            self.settle();
        }
    }

    /// The request of a turn.
    pub(crate) fn turn_request(&self) -> ModelRequest {
        let state = &self.state;
        let terms = &self.setup.terms;
        let tools = match self.is_without_tools() {
            true => Vec::new(),
            false => self.offered(),
        };
        let mut messages = self.begin();
        messages.extend(state.lines.iter().map(|line| line.message.clone()));
        ModelRequest {
            role: terms.role,
            model: terms.model.clone(),
            messages,
            // Endpoints that hold an answer to a schema cannot call tools meanwhile.
            output_schema: terms.output_schema.clone().filter(|_| tools.is_empty()),
            tools,
        }
    }

    /// The conversation up to the task.
    pub(crate) fn begin(&self) -> Vec<Message> {
        let state = &self.state;
        let mut messages = vec![Message::System {
            text: prompt::system(&self.setup, state),
        }];
        messages.extend(state.snapshot.iter().map(Transcript::background));
        messages.extend(state.history.iter().flat_map(Transcript::messages));
        messages.push(user(prompt::task(state)));
        messages
    }

    fn offered(&self) -> Vec<ToolSpec> {
        let allowed = tools::allowed(&self.setup, self.state.followed.as_deref());
        let is_allowed = |spec: &&ToolSpec| allowed.iter().any(|tool| tool.as_str() == spec.name);
        self.specs.iter().filter(is_allowed).cloned().collect()
    }

    fn finished(&self, end: End) -> Finished {
        let mut transcript = self.state.transcript(&self.setup.terms.prompt);
        for said in transcript.said.iter_mut().filter(|said| said.by == Speaker::Tool) {
            said.text = shorten(&said.text, MAX_REMEMBERED);
        }
        Finished {
            end,
            facts: AgentFacts {
                turns: self.state.turn,
                stop_reason: self.state.stop,
                review: self.state.review.clone(),
                spent: self.state.spent.clone(),
            },
            transcript,
        }
    }
}
