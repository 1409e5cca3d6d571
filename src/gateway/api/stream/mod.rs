//! A run's events for its readers (SSE).
//!
//! A [`Feed`](feed::Feed) exists while somebody reads a run. It is read once from the API server, then fed by the
//! gateway's own watches ([`sightings`]), so that readers cost no request. Its events are derived from the objects
//! ([`derive`]) and kept once, in one [`log`] for all readers: a reader is a place in it, and a slow one keeps nothing
//! alive. Ids say how many events came before and which, so that another gateway, or a later feed, either goes on exactly
//! there or tells of a gap.

mod derive;
pub(crate) mod event;
mod feed;
mod feeds;
mod log;
pub(crate) mod reader;
pub(crate) mod sightings;

pub(crate) use feed::not_found;
pub(crate) use feeds::Feeds;
pub(crate) use log::Start;
