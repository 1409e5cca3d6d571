//! What an agent is made of besides its prompt: its type, tools, role and model, and what it may delegate.

pub mod caps;
pub mod delegate;
pub mod models;
pub mod money;
pub mod plan;
pub mod role;
pub mod tools;
pub mod types;

#[cfg(test)]
mod tests;
