//! The texts that stand in objects, in environments and on volumes.

pub mod conditions;
pub mod labels;
pub mod objects;
pub mod paths;
pub mod reasons;
