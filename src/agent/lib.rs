//! The agent loop as pure steps: no clock, no file system, no channel.
//!
//! An [`Agent`] is the fold of its journal: [`Agent::open`] replays the entries of earlier attempts, [`Agent::next`] says
//! what is to be done, and whoever does it tells the agent by [`Agent::answered`] or [`Agent::acted`]. Each gives the
//! entry to append to the journal before the next step is acted upon. Equal entries make equal agents, so that a restart
//! at any point goes on where the journal ends.

mod agent;
mod arguments;
mod calls;
mod context;
mod delegate;
mod entry;
mod finish;
mod guard;
mod output;
mod plan;
mod prompt;
mod review;
mod setup;
mod skill;
mod state;
mod step;
mod stored;
#[cfg(test)]
mod tests;
mod text;
mod todos;
mod tools;
mod transcript;

pub use agent::Agent;
pub use entry::{Acted, Asked, Entry, Outcome};
pub use setup::Setup;
pub use step::{Act, ActKind, Answer, ContextMode, End, Failure, Finished, Step};
pub use transcript::{MAX_TRANSCRIPT, Said, Speaker, Transcript, TranscriptError};
