//! The operator: Pod building and reading, network policies, certificates, leader election, and the controllers.

pub mod client;
pub mod controllers;
pub mod events;
pub mod health;
pub mod http;
pub mod leader;
pub mod metrics;
pub mod pods;
pub mod policies;
pub mod settings;

mod serve;

pub use serve::{Operator, StartError, run};
