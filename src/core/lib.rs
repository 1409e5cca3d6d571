//! Pure decisions: plans, settlement, leases, names, expressions; no clock, no client, no file system

pub mod acceptance;
pub mod agents;
pub mod backoff;
pub mod conditions;
pub mod contract;
pub mod digest;
pub mod expr;
pub mod names;
pub mod plan;
pub mod redact;
pub mod schema;
pub mod settle;
pub mod skill;
pub mod survives;
pub mod text;

mod decimal;
mod json_scan;
