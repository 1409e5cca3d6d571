//! The messages between runtime and gateway, and between runtime and executor.
//!
//! Both connections carry the same frames (see [`frame`]): a big-endian `u32` length, at most
//! [`frame::MAX_FRAME`], and one JSON object tagged `type`. This room has no logic beyond encoding;
//! what a message means for a run is decided in `agentrun-core`.

pub mod agent;
pub mod blob;
pub mod channel;
pub mod chat;
pub mod environment;
pub mod executor;
pub mod exit;
pub mod frame;
pub mod inspection;
pub mod probe;
pub mod result;
pub mod tool;
pub mod version;
pub mod work;

pub use blob::Blob;
