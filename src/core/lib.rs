//! Pure decisions: plans, settlement, leases, names, expressions; no clock, no client, no file system

pub mod names;
pub mod survives;

mod decimal;
mod json_scan;
