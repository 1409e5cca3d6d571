//! The texts that stand in objects and on volumes: condition types, reasons, labels, finalizers, paths.

pub mod conditions;
pub mod labels;
pub mod paths;
pub mod reasons;
