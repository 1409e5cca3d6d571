//! The contract of functions and commands: what they must write, how their end is judged, and what is told of it.
//!
//! Everything here works on bytes that were already collected; who collects them keeps a [`tail::Capture`], whose
//! memory does not grow with what user code writes.

pub mod diagnose;
mod document;
mod envelope;
mod judge;
pub mod tail;

pub use document::{
    ContractError, Document, MAX_DEPTH, Problem, parse_file, parse_output_file, parse_stdout,
};
pub use envelope::{Envelope, EnvelopeError, Status, Usage};
pub use judge::{Call, Delivery, EndedBy, Judgement, Output, judge};
