//! Ends that came over the channel: what they mean ([`plan`]) and how they are stored ([`store`]).

mod plan;
mod report;
mod store;

pub(crate) use plan::Key;
pub(crate) use report::Report;
pub(crate) use store::{Stored, store};
