//! The tools of an agent.

use crate::setup::Setup;
use crate::text::listed;
use crate::{delegate, skill, todos};
use agentrun_core::agents::tools as names;
use agentrun_protocol::chat::ToolSpec;
use agentrun_protocol::tool::ToolName;
use agentrun_sandbox::tools::definitions;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Of the sandbox.
    Sandbox(ToolName),
    /// Delegates.
    Task,
    /// Loads skills.
    Skill,
    /// Keeps the list of what is to be done.
    Todos,
}

impl Tool {
    /// By its name. Names from elsewhere are understood, since models mix them up.
    pub(crate) fn named(name: &str) -> Option<Tool> {
        let lower = name.trim().to_ascii_lowercase();
        let plain = lower.rsplit(['.', ':', '/']).next().unwrap_or(&lower);
        match plain {
            names::TASK | "delegate" | "agent" => return Some(Tool::Task),
            names::SKILL | "load_skill" | "use_skill" => return Some(Tool::Skill),
            names::WRITE_TODOS | "todowrite" | "todo_write" => return Some(Tool::Todos),
            _ => {}
        }
        let known = match plain {
            "edit" | "replace" => "str_replace",
            "shell" | "sh" => "bash",
            "list" | "list_dir" => "ls",
            "readfile" => "read_file",
            "writefile" => "write_file",
            other => other,
        };
        known.parse().ok().map(Tool::Sandbox)
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Tool::Sandbox(tool) => tool.as_str(),
            Tool::Task => names::TASK,
            Tool::Skill => names::SKILL,
            Tool::Todos => names::WRITE_TODOS,
        }
    }
}

/// The tools that the agent was given.
pub(crate) fn held(setup: &Setup) -> Vec<Tool> {
    let terms = &setup.terms;
    let mut held: Vec<Tool> = Vec::new();
    let named = terms.tools.iter().filter_map(|name| Tool::named(name));
    for tool in named.chain((!terms.skills.is_empty()).then_some(Tool::Skill)) {
        let has_use = match tool {
            Tool::Sandbox(ToolName::ViewImage) => terms.traits.vision,
            Tool::Task => terms
                .delegation
                .as_ref()
                .is_some_and(|terms| !terms.agents.is_empty()),
            Tool::Skill => !terms.skills.is_empty(),
            Tool::Sandbox(_) | Tool::Todos => true,
        };
        if has_use && !held.contains(&tool) {
            held.push(tool);
        }
    }
    held
}

/// Those of them that may be used while the skill `followed` is followed.
pub(crate) fn allowed(setup: &Setup, followed: Option<&str>) -> Vec<Tool> {
    let held = held(setup);
    let card = setup
        .terms
        .skills
        .iter()
        .find(|card| Some(card.name.as_str()) == followed);
    let Some(names) = card.and_then(|card| card.allowed_tools.as_ref()) else {
        return held;
    };
    // Others write `Bash(git:*)`: what is in the brackets is no rule of ours, the tool is.
    let tool_of = |name: &String| Tool::named(name.split('(').next().unwrap_or_default());
    let allowed: Vec<Tool> = names.iter().filter_map(tool_of).collect();
    let stays = |tool: &Tool| matches!(tool, Tool::Skill | Tool::Todos) || allowed.contains(tool);
    held.into_iter().filter(stays).collect()
}

pub(crate) fn names(tools: &[Tool]) -> String {
    listed(tools.iter().map(|tool| tool.as_str()))
}

/// The agent's tools as the model is told of them.
pub(crate) fn specs(setup: &Setup) -> Vec<ToolSpec> {
    let definitions = definitions();
    let spec = |tool: Tool| match tool {
        Tool::Sandbox(name) => definitions
            .iter()
            .find(|known| known.name == name)
            .map(|known| ToolSpec {
                name: name.as_str().to_owned(),
                description: known.description.clone(),
                parameters: known.parameters.clone(),
            }),
        Tool::Task => setup.terms.delegation.as_ref().map(delegate::spec),
        Tool::Skill => Some(skill::spec(&setup.terms.skills)),
        Tool::Todos => Some(todos::spec()),
    };
    held(setup).into_iter().filter_map(spec).collect()
}

/// The fields that a tool takes, for an error.
pub(crate) fn fields(specs: &[ToolSpec], tool: Tool) -> String {
    let Some(spec) = specs.iter().find(|spec| spec.name == tool.as_str()) else {
        return String::new();
    };
    let required = spec.parameters["required"].as_array();
    let is_required = |name: &String| required.is_some_and(|all| all.iter().any(|other| other == name));
    let field = |name: &String| match is_required(name) {
        true => name.clone(),
        false => format!("{name} (optional)"),
    };
    let properties = spec.parameters["properties"].as_object();
    let fields: Vec<String> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| field(name))
        .collect();
    fields.join(", ")
}
