//! The custom resources of AgentRun, and every text that stands in objects and on volumes.
//!
//! Group `agentrun.dev`, version `v1alpha1`; all namespaced, all in the category `agentrun-all`
//! (`agentrun` itself would shadow the singular name: `kubectl get agentrun NAME` asked for all six kinds).

#![allow(
    clippy::duplicated_attributes,
    reason = "two print columns of one type look like a repetition to it"
)]

mod agent_run;
mod agent_run_status;
mod agent_spec;
mod common;
mod crd;
mod duration;
mod enums;
mod model;
mod quantity;
mod rules;
mod sandbox_pool;
mod sandbox_spec;
mod skill;
mod sub_task;
mod task;
mod thread;
mod user_data;
mod work;

pub mod names;

pub use agent_run::*;
pub use agent_run_status::*;
pub use agent_spec::*;
pub use common::*;
pub use crd::*;
pub use duration::*;
pub use enums::*;
pub use model::*;
pub use names::reasons::*;
pub use quantity::*;
pub use sandbox_pool::*;
pub use sandbox_spec::*;
pub use skill::*;
pub use sub_task::*;
pub use task::*;
pub use thread::*;
pub use user_data::*;
pub use work::*;

/// API group of every resource.
pub const GROUP: &str = "agentrun.dev";
/// The version of every resource.
pub const VERSION: &str = "v1alpha1";
