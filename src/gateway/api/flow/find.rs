//! Which function a path means.

use crate::api::problem::{Code, Problem};
use crate::board::{Board, Name};
use agentrun_api::Skill;
use kube::ResourceExt as _;

/// A function of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Function {
    /// Name of the Skill.
    pub(super) skill: String,
    /// Its own name.
    pub(super) name: String,
}

/// The function that is called `name`, in `skill` or in the one skill of the namespace that has it.
pub(super) fn function(
    board: &Board,
    namespace: &str,
    skill: Option<String>,
    name: &str,
) -> Result<Function, Problem> {
    let Some(skill) = skill else {
        return alone(board, namespace, name);
    };
    let wanted = Name {
        namespace: namespace.to_owned(),
        name: skill.clone(),
    };
    let Some(found) = board.skill(&wanted) else {
        let message = format!("there is no skill {skill} in namespace {namespace}");
        return Err(Problem::new(Code::NotFound, message));
    };
    if has(&found, name) {
        return Ok(Function {
            skill,
            name: name.to_owned(),
        });
    }
    let known = names(&found);
    let message = if known.is_empty() {
        format!(
            "skill {skill} has no function, or has not been read yet: `kubectl describe skill {skill}` says why"
        )
    } else {
        format!(
            "skill {skill} has no function {name:?}, it has: {}",
            known.join(", ")
        )
    };
    Err(Problem::new(Code::NotFound, message))
}

fn alone(board: &Board, namespace: &str, name: &str) -> Result<Function, Problem> {
    let skills = board.skills_in(namespace);
    let mut holders: Vec<_> = skills
        .filter(|skill| has(skill, name))
        .map(|skill| skill.name_any())
        .collect();
    holders.sort_unstable();
    match holders.as_slice() {
        [skill] => Ok(Function {
            skill: skill.clone(),
            name: name.to_owned(),
        }),
        [] => {
            let message = format!("no skill of namespace {namespace} has a function {name:?}");
            Err(Problem::new(Code::NotFound, message))
        }
        several => {
            let message = format!(
                "{} skills have a function {name:?}: {}; say which one with flow/SKILL/{name}",
                several.len(),
                several.join(", ")
            );
            Err(Problem::new(Code::Conflict, message))
        }
    }
}

fn has(skill: &Skill, name: &str) -> bool {
    names(skill).contains(&name)
}

fn names(skill: &Skill) -> Vec<&str> {
    let functions = skill.status.iter().flat_map(|status| &status.functions);
    functions.map(|function| function.name.as_str()).collect()
}
