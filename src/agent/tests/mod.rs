//! Agents with scripted models: no endpoint, no sandbox, only steps.

mod calls;
mod context;
mod delegation;
mod guards;
mod journal;
mod output;
mod planned;
mod random;
mod reviewed;
mod skills;
mod snapshot;

use crate::{Act, ActKind, Acted, Agent, Answer, End, Entry, Finished, Outcome, Setup, Step};
use agentrun_protocol::agent::{
    AgentKind, AgentTerms, DelegateEnd, DelegationState, DelegationTerms, ModelTraits,
};
use agentrun_protocol::chat::{
    Finish, Message, ModelAnswer, ModelFailure, ModelFailureCode, ModelRequest, Role, TokenUsage, ToolCall,
};
use serde_json::{Value, json};

/// So many cases; what fails is not written beside the crate, where the workspace would take it for a member.
fn cases(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config {
        cases,
        failure_persistence: None,
        ..proptest::test_runner::Config::default()
    }
}

/// A lead with all tools, two kinds of delegates and no skill.
fn terms() -> AgentTerms {
    let kind = |name: &str| AgentKind {
        name: name.to_owned(),
        description: format!("what {name} is for"),
    };
    let tools = [
        "bash",
        "ls",
        "read_file",
        "write_file",
        "str_replace",
        "glob",
        "grep",
        "view_image",
        "present_files",
        "task",
        "skill",
        "write_todos",
    ];
    AgentTerms {
        role: Role::Lead,
        prompt: "Count the rows of table.csv".to_owned(),
        instructions: None,
        model: None,
        traits: ModelTraits {
            context_tokens: 32_000,
            vision: false,
        },
        tools: tools.map(str::to_owned).to_vec(),
        skills: Vec::new(),
        max_turns: 20,
        output_schema: None,
        delegation: Some(DelegationTerms {
            max_per_turn: 3,
            max_per_run: 6,
            agents: vec![kind("general-purpose"), kind("bash")],
        }),
        snapshot: None,
        continues: false,
        is_planned: false,
        reviews: None,
    }
}

fn setup() -> Setup {
    Setup::new(terms())
}

/// An agent with its journal, and the one who asks models and acts for it.
struct Bench {
    agent: Agent,
    journal: Vec<Entry>,
}

impl Bench {
    fn new(setup: Setup) -> Bench {
        let (agent, entry) = Agent::open(setup, []);
        Bench {
            agent,
            journal: vec![entry],
        }
    }

    fn of(terms: AgentTerms) -> Bench {
        Bench::new(Setup::new(terms))
    }

    /// As it is stored.
    fn write(&mut self, entry: &Entry) {
        let line = serde_json::to_string(entry).unwrap();
        self.journal.push(serde_json::from_str(&line).unwrap());
    }

    fn request(&self) -> ModelRequest {
        match self.agent.next() {
            Step::Ask(request) => *request,
            other => panic!("expected a request, found {other:?}"),
        }
    }

    fn acts(&self) -> Vec<Act> {
        match self.agent.next() {
            Step::Act(acts) => acts,
            other => panic!("expected acts, found {other:?}"),
        }
    }

    fn finished(&self) -> Finished {
        match self.agent.next() {
            Step::Done(finished) => *finished,
            other => panic!("expected an end, found {other:?}"),
        }
    }

    fn text(&self) -> String {
        match self.finished().end {
            End::Answered(Answer::Text(text)) => text,
            other => panic!("expected a text, found {other:?}"),
        }
    }

    fn answer(&mut self, answer: ModelAnswer) -> &mut Bench {
        self.request();
        let entry = self.agent.answered(Ok(answer));
        self.write(&entry);
        self
    }

    fn fail(&mut self, code: ModelFailureCode) -> &mut Bench {
        self.request();
        let entry = self.agent.answered(Err(ModelFailure {
            code,
            message: "it is so".to_owned(),
        }));
        self.write(&entry);
        self
    }

    fn says(&mut self, text: &str) -> &mut Bench {
        self.answer(says(text))
    }

    fn calls(&mut self, calls: &[(&str, Value)]) -> &mut Bench {
        let texts: Vec<(&str, String)> = calls
            .iter()
            .map(|(name, arguments)| (*name, arguments.to_string()))
            .collect();
        self.answer(calling(&texts))
    }

    fn raw_calls(&mut self, calls: &[(&str, &str)]) -> &mut Bench {
        let texts: Vec<(&str, String)> = calls
            .iter()
            .map(|(name, text)| (*name, (*text).to_owned()))
            .collect();
        self.answer(calling(&texts))
    }

    /// Acts as asked; the last act is done first.
    fn act(&mut self, mut outcome: impl FnMut(&Act) -> Outcome) -> &mut Bench {
        for act in self.acts().into_iter().rev() {
            let outcome = outcome(&act);
            self.done(&act, outcome);
        }
        self
    }

    fn done(&mut self, act: &Act, outcome: Outcome) {
        let entry = self.agent.acted(Acted { at: act.at, outcome });
        self.write(&entry);
    }

    fn act_with(&mut self, text: &str) -> &mut Bench {
        self.act(|_| tool(text))
    }

    /// The answers to the calls of the last turn that had some.
    fn answers(&self) -> Vec<String> {
        let request = self.request();
        let lines = request
            .messages
            .iter()
            .rev()
            .skip_while(|line| !matches!(line, Message::Tool { .. }));
        let mut answers: Vec<String> = lines
            .map_while(|line| match line {
                Message::Tool { text, .. } => Some(text.clone()),
                _ => None,
            })
            .collect();
        answers.reverse();
        answers
    }

    fn last_message(&self) -> String {
        match self.request().messages.pop() {
            Some(Message::User { text, .. } | Message::Tool { text, .. }) => text,
            other => panic!("expected a text, found {other:?}"),
        }
    }

    /// As after a restart in the same attempt.
    fn restart(&mut self, setup: Setup) -> &mut Bench {
        let (agent, entry) = Agent::open(setup, self.journal.clone());
        self.agent = agent;
        self.write(&entry);
        self
    }
}

fn tool(text: &str) -> Outcome {
    Outcome::Tool {
        text: text.to_owned(),
        images: Vec::new(),
    }
}

fn says(text: &str) -> ModelAnswer {
    ModelAnswer {
        text: text.to_owned(),
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage: TokenUsage {
            input: 100,
            output: 10,
            ..TokenUsage::default()
        },
        cost_micros: 5,
        model: "m".to_owned(),
    }
}

fn calling(calls: &[(&str, String)]) -> ModelAnswer {
    let call = |(name, arguments): &(&str, String)| ToolCall {
        id: "same".to_owned(),
        name: (*name).to_owned(),
        arguments: arguments.clone(),
    };
    ModelAnswer {
        tool_calls: calls.iter().map(call).collect(),
        finish: Finish::ToolCalls,
        ..says("")
    }
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

fn delegate(prompt: &str) -> (&'static str, Value) {
    (
        "task",
        json!({"description": "d", "prompt": prompt, "subagent_type": "general-purpose"}),
    )
}

fn ended(name: &str, text: &str) -> Outcome {
    Outcome::Delegate {
        state: DelegationState::Ended(Box::new(end(name, text))),
        stored: None,
    }
}

fn end(name: &str, text: &str) -> DelegateEnd {
    DelegateEnd {
        name: name.to_owned(),
        outcome: "Success".to_owned(),
        reason: "Completed".to_owned(),
        message: String::new(),
        stop_reason: None,
        output: Some(json!({ "text": text })),
        output_ref: None,
        artifacts: Vec::new(),
        acceptance: Vec::new(),
    }
}

fn kind_of(act: &Act) -> &'static str {
    match act.kind {
        ActKind::Tool { tool, .. } => tool.as_str(),
        ActKind::Delegate { .. } => "task",
        ActKind::LoadSkill { .. } => "skill",
        ActKind::ReadStored { .. } => "stored",
    }
}
