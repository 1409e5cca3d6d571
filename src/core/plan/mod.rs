//! Decides what a run and a sub-task do next. Time is an argument; nothing here reads or writes.

pub mod acceptance;
pub mod agents;
pub mod delegates;
pub mod graph;
pub mod lead;
pub mod outcome;
pub mod output;
pub mod parsed;
pub mod progress;
pub mod rerun;
pub mod resolve;
pub mod run;
pub mod subtask;
pub mod unsupported;
pub mod validate;

#[cfg(test)]
mod tests;
