//! The operator: Pod building and reading, network policies, certificates, leader election, and the controllers.

pub mod admissions;
pub mod cache;
pub mod client;
pub mod controllers;
pub mod drain;
pub mod error;
pub mod events;
pub mod fixtures;
pub mod health;
pub mod housekeeping;
pub mod http;
pub mod injection;
pub mod leader;
pub mod metrics;
pub mod platform;
pub mod pods;
pub mod policies;
pub mod run;
pub mod settings;
pub mod skill;
pub mod subtask;
pub mod thread;
pub mod tls;
pub mod world;

mod indexes;
mod serve;
mod write;

pub use serve::{Operator, StartError, run};
