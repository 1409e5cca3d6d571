//! What an agent is to its run: the word that chooses its model and under which its tokens are counted.

use agentrun_api::{SubTaskRole, SubTaskSpec};
use agentrun_protocol::chat::Role;

/// The role of a sub-task's agent.
pub fn of(spec: &SubTaskSpec) -> Role {
    match spec.role {
        SubTaskRole::Lead => Role::Lead,
        SubTaskRole::Delegate => of_type(&spec.task),
        SubTaskRole::Task => Role::Executor,
    }
}

/// The role of delegates of a type: the one that the type is named after, else they do work.
pub fn of_type(name: &str) -> Role {
    named(name)
        .filter(|role| *role != Role::Lead)
        .unwrap_or(Role::Executor)
}

/// The role of this name.
pub fn named(name: &str) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.as_str() == name)
}
