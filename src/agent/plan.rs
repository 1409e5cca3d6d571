//! The plan that a model of role `planner` makes before an agent begins.

use crate::Agent;
use crate::context::MAX_READ;
use crate::output;
use crate::prompt;
use crate::state::Phase;
use crate::step::Answer;
use crate::text::{listed, shorten};
use crate::todos::Todo;
use crate::transcript::user;
use agentrun_core::agents::plan::{self, PlanStep};
use agentrun_core::text::one_line;
use agentrun_protocol::chat::{Message, ModelRequest, Role};
use serde::Deserialize;
use std::fmt::Write as _;

/// How often a planner may repair what is no plan. After that the agent begins without one.
const MAX_REPAIRS: u32 = 2;

/// Where the planning of an agent stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Planning {
    /// What was wrong with the plan before, and that plan.
    refused: Option<(String, String)>,
    repairs: u32,
}

#[derive(Deserialize)]
struct Plan {
    steps: Vec<PlanStep>,
}

impl Agent {
    /// What asks the planner.
    pub(crate) fn plan_request(&self, planning: &Planning) -> ModelRequest {
        let mut text = prompt::task(&self.state);
        if let Some((plan, problem)) = &planning.refused {
            let _ = write!(
                text,
                "\n\nYour plan was refused: {problem}\n<refused>\n{plan}\n</refused>\nMake a whole one."
            );
        }
        ModelRequest {
            role: Role::Planner,
            model: None,
            messages: vec![
                Message::System {
                    text: self.plan_instructions(),
                },
                user(text),
            ],
            tools: Vec::new(),
            output_schema: Some(plan::schema()),
        }
    }

    fn plan_instructions(&self) -> String {
        let mut text = format!(
            "You plan the work of another agent, which has the tools {}. Divide its task into few steps that can be \
             checked; say of each only what it needs: steps that do not need each other are done at the same time. \
             Plan for at most {} delegations. Answer with one JSON document and nothing else, valid against this JSON \
             Schema:\n{}",
            listed(self.setup.terms.tools.iter().map(String::as_str)),
            self.setup
                .terms
                .delegation
                .as_ref()
                .map_or(0, |delegation| delegation.max_per_run),
            plan::schema(),
        );
        for kind in self
            .setup
            .terms
            .delegation
            .iter()
            .flat_map(|delegation| &delegation.agents)
        {
            let _ = write!(
                text,
                "\nagent {}: {}",
                kind.name,
                one_line(&kind.description, 1_024)
            );
        }
        text
    }

    /// Takes what the planner answered; none when it could not.
    pub(crate) fn take_plan(&mut self, mut planning: Planning, answer: Option<&str>) {
        self.state.phase = Phase::Turn;
        match answer.map(|answer| self.read_plan(answer)) {
            Some(Ok(steps)) => self.follow(&steps),
            Some(Err(problem)) if planning.repairs < MAX_REPAIRS => {
                let plan = shorten(answer.unwrap_or_default(), MAX_READ);
                planning.refused = Some((plan, one_line(&problem, 1_000)));
                planning.repairs += 1;
                self.state.phase = Phase::Planning(planning);
                return;
            }
            Some(Err(_)) | None => {}
        }
        self.before_turn();
    }

    fn read_plan(&self, answer: &str) -> Result<Vec<PlanStep>, String> {
        let Answer::Json { value, .. } = output::read(&plan::schema(), answer)? else {
            return Err("it is no JSON document".to_owned());
        };
        let plan: Plan = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let delegation = self.setup.terms.delegation.iter();
        let agents: Vec<&str> = delegation
            .flat_map(|delegation| &delegation.agents)
            .map(|kind| kind.name.as_str())
            .collect();
        plan::ordered(plan.steps, &agents).map_err(|error| error.to_string())
    }

    fn follow(&mut self, steps: &[PlanStep]) {
        let lines: Vec<String> = steps.iter().map(line).collect();
        self.state.advise(&format!(
            "This is the plan for your task, made beforehand:\n- {}\nFollow it. Steps for an agent are delegated, in one \
             turn where none waits for the other. Where what you find speaks against a step, do what serves the task, and \
             say so in your answer.",
            lines.join("\n- ")
        ));
        self.state.todos = lines.into_iter().map(Todo::open).collect();
    }
}

fn line(step: &PlanStep) -> String {
    let mut text = format!("{}: {}", step.name, one_line(&step.description, 200));
    if let Some(agent) = &step.agent {
        let _ = write!(text, " [agent {agent}]");
    }
    if !step.depends_on.is_empty() {
        let _ = write!(text, " (after {})", step.depends_on.join(", "));
    }
    text
}
