//! Types of agents that can be delegated to: the built-in ones, and those of the run.

use agentrun_api::{AgentRunSpec, AgentSpec, AgentType, SubTaskSpec};
use agentrun_protocol::agent::AgentKind;
use agentrun_protocol::tool::ToolName;

/// The type for everything.
pub const GENERAL_PURPOSE: &str = "general-purpose";
/// The type that has nothing but a shell.
pub const BASH: &str = "bash";
/// Turns of an agent when nothing says otherwise (docs/reference.md).
pub const DEFAULT_TURNS: u32 = 150;
/// Turns of a `bash` agent when nothing says otherwise.
const BASH_TURNS: i32 = 60;

fn built_in() -> [AgentType; 2] {
    let of = |name: &str, description: &str, agent: AgentSpec| AgentType {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        agent,
        ..AgentType::default()
    };
    [
        of(
            GENERAL_PURPOSE,
            "Works on a whole sub-task by itself: reads and writes files, runs programs, and reports.",
            AgentSpec::default(),
        ),
        of(
            BASH,
            "Runs commands in a shell and reports what came of them.",
            AgentSpec {
                tools: Some(vec![ToolName::Bash.as_str().to_owned()]),
                max_turns: Some(BASH_TURNS),
                ..AgentSpec::default()
            },
        ),
    ]
}

/// All types of a run: its own in their order, then the built-in ones that it has not replaced.
pub fn of_run(run: &AgentRunSpec) -> Vec<AgentType> {
    let own = run.delegation.as_ref().map_or(&[][..], |spec| &spec.agents);
    let mut built_in: Vec<AgentType> = built_in().into();
    let mut types = Vec::with_capacity(own.len() + built_in.len());
    for own in own {
        match built_in.iter().position(|known| known.name == own.name) {
            Some(place) => types.push(over(own, built_in.remove(place))),
            None => types.push(own.clone()),
        }
    }
    types.append(&mut built_in);
    types
}

/// What a type that replaces a built-in one leaves open stays as it was.
fn over(own: &AgentType, base: AgentType) -> AgentType {
    let mut merged = own.clone();
    merged.description = merged.description.or(base.description);
    merged.agent.tools = merged.agent.tools.or(base.agent.tools);
    merged.agent.max_turns = merged.agent.max_turns.or(base.agent.max_turns);
    merged
}

/// The types as a delegating agent sees them.
pub fn kinds(run: &AgentRunSpec) -> Vec<AgentKind> {
    let kind = |known: AgentType| AgentKind {
        name: known.name,
        description: known.description.unwrap_or_default(),
    };
    of_run(run).into_iter().map(kind).collect()
}

/// Turns of a sub-task's agent.
pub fn turns(spec: &SubTaskSpec) -> u32 {
    let given = spec.agent.as_ref().and_then(|work| work.agent.max_turns);
    given
        .and_then(|turns| u32::try_from(turns).ok())
        .unwrap_or(DEFAULT_TURNS)
}
