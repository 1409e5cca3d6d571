//! Pod building and Pod reading, side by side and pure: what one writes the other understands.

pub mod build;
pub mod event;
pub mod input;
pub mod inspect;
pub mod probe;
pub mod read;
pub mod template;

#[cfg(test)]
pub(crate) mod fixtures;

mod containers;
mod secrets;
mod volumes;

pub use build::build_pod;
pub use input::{Claim, FileClaim, Injection, Platform, PodInput, Skill, SkillSource, Timeouts};
pub use inspect::{Subject, inspection_pod, read_inspection};
pub use probe::probe_pod;
pub use read::{NodeState, PodFacts, PodState, Waiting, read_pod};
pub use template::{Layers, ResolvedSandbox, resolve};
