//! What an agent asks for when it delegates, and the sub-task that comes of it.

use super::caps::Caps;
use super::{tools, types};
use crate::acceptance::{self, MAX_CRITERIA, MAX_CRITERION};
use crate::names;
use crate::plan::resolve::{DEFAULT_TIMEOUT, over};
use crate::text::one_line;
use agentrun_api::{
    AcceptancePolicy, AgentRunSpec, AgentSpec, AgentType, AgentWork, Context, ContextMode, GoDuration,
    SandboxSpec, SubTask, SubTaskRef, SubTaskRole, SubTaskSpec,
};
use agentrun_protocol::agent::{CallPlace, Delegation};
use agentrun_protocol::work::FileRef;
use std::collections::BTreeSet;

/// The most characters of a prompt, as in the schema.
pub const MAX_PROMPT: usize = 32_768;
/// The most characters of a description, as in the schema.
pub const MAX_DESCRIPTION: usize = 200;

/// Why there will be no sub-task: what was found, what is allowed and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such type.
    #[error("there is no agent type {found:?}; there are {}: name one of them", known.join(", "))]
    UnknownType {
        /// The name.
        found: String,
        /// The types that there are.
        known: Vec<String>,
    },
    /// The delegate would be too deep, or the agent may not delegate.
    #[error("delegates of this agent are not allowed (delegation.maxDepth is {max}): do the work yourself")]
    TooDeep {
        /// The deepest that is allowed.
        max: u32,
    },
    /// There is nothing to do, or too much to read.
    #[error(
        "the prompt has {found} characters, allowed are 1 to {MAX_PROMPT}: put what is long into a file and name it"
    )]
    Prompt {
        /// Its characters.
        found: usize,
    },
    /// More criteria than are checked.
    #[error(
        "there are {found} acceptance criteria, at most {MAX_CRITERIA} are allowed: keep the ones that matter"
    )]
    TooManyCriteria {
        /// How many.
        found: usize,
    },
    /// A criterion is none.
    #[error("acceptance criterion {criterion:?} {problem}")]
    Criterion {
        /// Its beginning.
        criterion: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The conversation to be shared is not where this run keeps them.
    #[error("the snapshot {path:?} does not lie below {below}")]
    Snapshot {
        /// Its path.
        path: String,
        /// Where it should be.
        below: String,
    },
    /// One turn asks for too many.
    #[error(
        "one turn may delegate {max} sub-tasks, this one is surplus and was cut: ask again in a later turn if it is still needed"
    )]
    Surplus {
        /// How many may be asked for.
        max: usize,
    },
    /// The place in the conversation is taken by another one.
    #[error("call {} of turn {} was delegated before with another prompt: ask again", at.call, at.turn)]
    Changed {
        /// The place.
        at: CallPlace,
    },
}

/// The sub-task of a delegation. `depth` is that of the agent that asks.
pub fn subtask_spec(
    run: &AgentRunSpec,
    parent: &SubTask,
    depth: u32,
    ask: &Delegation,
) -> Result<SubTaskSpec, Refusal> {
    let max = Caps::of(run).depth;
    let asker = parent.spec.agent.as_ref().map(|work| &work.agent);
    if depth >= max || !asker.is_some_and(|agent| may_delegate(parent.spec.role, agent)) {
        return Err(Refusal::TooDeep { max });
    }
    let kind = type_of(run, &ask.agent)?;
    let length = ask.prompt.chars().count();
    if length > MAX_PROMPT || ask.prompt.trim().is_empty() {
        return Err(Refusal::Prompt { found: length });
    }
    if let Some(file) = &ask.snapshot {
        check_snapshot(file, &parent.spec.run_ref.uid)?;
    }
    let description = one_line(ask.description.trim(), MAX_DESCRIPTION);
    Ok(SubTaskSpec {
        run_ref: parent.spec.run_ref.clone(),
        parent_ref: Some(SubTaskRef {
            name: parent.metadata.name.clone().unwrap_or_default(),
            uid: parent.metadata.uid.clone().unwrap_or_default(),
        }),
        task: kind.name.clone(),
        role: SubTaskRole::Delegate,
        description: (!description.is_empty()).then_some(description),
        agent: Some(AgentWork {
            prompt: ask.prompt.clone(),
            agent: AgentSpec {
                skills: kind.agent.skills.clone().or_else(|| asker?.skills.clone()),
                ..kind.agent.clone()
            },
        }),
        sandbox: sandbox(run, &kind),
        timeout: Some(
            kind.timeout
                .unwrap_or_else(|| GoDuration(format!("{}s", DEFAULT_TIMEOUT.as_secs()))),
        ),
        context: Some(Context {
            mode: Some(match ask.snapshot {
                Some(_) => ContextMode::Snapshot,
                None => ContextMode::Isolated,
            }),
        }),
        acceptance: criteria(&ask.acceptance)?,
        acceptance_policy: Some(AcceptancePolicy::Report),
        ..SubTaskSpec::default()
    })
}

/// The name of that sub-task: the same however often it is asked for.
pub fn name(parent: &SubTask, ask: &Delegation) -> String {
    let uid = parent.metadata.uid.as_deref().unwrap_or_default();
    names::delegate_name(
        &parent.spec.run_ref.name,
        &ask.agent,
        uid,
        ask.at.turn,
        ask.at.call,
    )
}

/// The calls of one turn that are too many: `there` have their sub-task already, `asked` are asked for now.
pub fn surplus(there: &BTreeSet<CallPlace>, asked: &BTreeSet<CallPlace>, max: usize) -> BTreeSet<CallPlace> {
    let turns: BTreeSet<u32> = asked.iter().map(|place| place.turn).collect();
    let of_turn = |turn: u32| {
        let taken = there.iter().filter(|place| place.turn == turn).count();
        let new = asked
            .iter()
            .filter(move |place| place.turn == turn && !there.contains(place));
        new.copied().skip(max.saturating_sub(taken))
    };
    turns.into_iter().flat_map(of_turn).collect()
}

/// How the place of a call is written in an annotation.
pub fn written(at: CallPlace) -> String {
    format!("{}-{}", at.turn, at.call)
}

/// The place of a call as it is written in an annotation.
pub fn read(text: &str) -> Option<CallPlace> {
    let (turn, call) = text.split_once('-')?;
    Some(CallPlace {
        turn: turn.parse().ok()?,
        call: call.parse().ok()?,
    })
}

/// A snapshot lies where this run keeps what only its runtimes write.
pub fn check_snapshot(file: &FileRef, run_uid: &str) -> Result<(), Refusal> {
    let below = format!("state/runs/{run_uid}/");
    let plain =
        |rest: &str| rest.split('/').all(|part| !matches!(part, "" | "." | "..")) && !rest.contains('\0');
    match file.path.strip_prefix(&below) {
        Some(rest) if plain(rest) => Ok(()),
        _ => Err(Refusal::Snapshot {
            path: one_line(&file.path, MAX_DESCRIPTION),
            below,
        }),
    }
}

fn may_delegate(role: SubTaskRole, agent: &AgentSpec) -> bool {
    tools::asks_to_delegate(role, agent.tools.as_deref())
}

fn type_of(run: &AgentRunSpec, name: &str) -> Result<AgentType, Refusal> {
    let types = types::of_run(run);
    let known = types.iter().map(|kind| kind.name.clone()).collect();
    let found = types.into_iter().find(|kind| kind.name == name);
    found.ok_or_else(|| Refusal::UnknownType {
        found: one_line(name, MAX_DESCRIPTION),
        known,
    })
}

fn sandbox(run: &AgentRunSpec, kind: &AgentType) -> Option<SandboxSpec> {
    match (&kind.sandbox, &run.sandbox) {
        (Some(own), Some(base)) => Some(over(own, base)),
        (own, base) => own.as_ref().or(base.as_ref()).cloned(),
    }
}

/// Each once, without empty ones.
fn criteria(asked: &[String]) -> Result<Vec<String>, Refusal> {
    let mut kept: Vec<String> = Vec::new();
    for criterion in asked
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
    {
        let wrong = |problem: String| Refusal::Criterion {
            criterion: one_line(criterion, MAX_DESCRIPTION),
            problem,
        };
        if criterion.chars().count() > MAX_CRITERION {
            return Err(wrong(format!(
                "is longer than {MAX_CRITERION} characters: shorten it"
            )));
        }
        acceptance::parse(criterion).map_err(|error| wrong(error.to_string()))?;
        if !kept.iter().any(|known| known == criterion) {
            kept.push(criterion.to_owned());
        }
    }
    match kept.len() {
        found if found > MAX_CRITERIA => Err(Refusal::TooManyCriteria { found }),
        _ => Ok(kept),
    }
}
