//! The tools of agents by name: those that work on files, and those that the agent's own loop answers.

use agentrun_api::{SubTaskRole, SubTaskSpec};
use agentrun_protocol::tool::ToolName;

/// Delegates work.
pub const TASK: &str = "task";
/// Loads a skill.
pub const SKILL: &str = "skill";
/// Keeps the list of what is to be done.
pub const WRITE_TODOS: &str = "write_todos";

const OF_THE_LOOP: [&str; 3] = [TASK, SKILL, WRITE_TODOS];

/// No agent has a tool of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool {name:?}; there are {}", known())]
pub struct UnknownTool {
    /// The name.
    pub name: String,
}

/// What an agent's tools depend on besides what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Possible {
    /// Delegates of its would not be too deep.
    pub delegation: bool,
    /// It has skills.
    pub skills: bool,
    /// Its model sees.
    pub vision: bool,
}

/// The names of all tools, for people.
fn known() -> String {
    let files = ToolName::ALL.into_iter().map(ToolName::as_str);
    files.chain(OF_THE_LOOP).collect::<Vec<_>>().join(", ")
}

/// The tool of this name or alias, by its own name.
pub fn parse(name: &str) -> Result<&'static str, UnknownTool> {
    if let Some(known) = OF_THE_LOOP.into_iter().find(|known| *known == name) {
        return Ok(known);
    }
    let tool: Result<ToolName, _> = name.parse();
    tool.map(ToolName::as_str).map_err(|_| UnknownTool {
        name: name.chars().take(64).collect(),
    })
}

/// Whether an agent is given the tool to delegate where depth allows: a lead or delegate unless its list of tools leaves
/// it out, an agent of the plan only if its list has it.
pub fn asks_to_delegate(role: SubTaskRole, tools: Option<&[String]>) -> bool {
    match tools {
        Some(tools) => tools.iter().any(|tool| tool == TASK),
        None => role != SubTaskRole::Task,
    }
}

/// The tools of a sub-task's agent. What is of no use to it is left out, and the skills that it was given need the tool
/// that loads them.
pub fn of(spec: &SubTaskSpec, possible: Possible) -> Result<Vec<String>, UnknownTool> {
    let asked = spec.agent.as_ref().and_then(|work| work.agent.tools.as_deref());
    let mut tools: Vec<&'static str> = if let Some(asked) = asked {
        asked.iter().map(|name| parse(name)).collect::<Result<_, _>>()?
    } else {
        let files = ToolName::ALL.into_iter().map(ToolName::as_str);
        let delegating = asks_to_delegate(spec.role, None).then_some(TASK);
        files.chain([WRITE_TODOS]).chain(delegating).collect()
    };
    tools.push(SKILL);
    let is_of_use = |tool: &&str| match *tool {
        TASK => possible.delegation,
        SKILL => possible.skills,
        tool if tool == ToolName::ViewImage.as_str() => possible.vision,
        _ => true,
    };
    let mut kept: Vec<String> = Vec::with_capacity(tools.len());
    for tool in tools.into_iter().filter(is_of_use) {
        if !kept.iter().any(|known| known == tool) {
            kept.push(tool.to_owned());
        }
    }
    Ok(kept)
}
