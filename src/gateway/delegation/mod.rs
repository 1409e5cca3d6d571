//! Delegations: what an agent asks for ([`ask`]) becomes a SubTask that the operator lets start, and what becomes of it
//! is told to the agent ([`told`], [`end`]). Nothing is kept that is not in the objects: after a restart the runtime says
//! its delegations again, and finds the same SubTasks by their names.

mod ask;
mod end;
mod told;

pub(crate) use ask::{Answer, ask};
pub(crate) use told::Told;

#[cfg(test)]
mod tests;
