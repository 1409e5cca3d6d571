//! The effects of an agent. Its loop in `agentrun-agent` is pure and says what is to be done; here it is done: models are
//! asked over the channel, tools run in the executor, work is delegated through the gateway. What came of each goes into
//! the journal before anything follows from it, so that a later attempt goes on where the journal ends.

mod acts;
mod desk;
mod halt;
mod journal;
mod open;
mod reading;
mod run;

pub(crate) use halt::Halt;
pub(crate) use open::OpenError;
pub(crate) use run::{Job, Over, run};
