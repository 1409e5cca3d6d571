//! What tests that need an API server share: a faulty way to it ([`faults`]), a cluster with a fresh namespace for each
//! test ([`cluster`]), stand-ins for kubelet and gateway ([`stage`]), so that runs come to their end without a node,
//! and one for a model's endpoint ([`openai`]).
//!
//! For tests only: outside [`faults`], whatever goes wrong panics with what was found, as an assertion does.

#![allow(
    clippy::missing_panics_doc,
    reason = "everything here panics when a test has failed: that is its use"
)]

pub mod cluster;
pub mod faults;
pub mod openai;
pub mod stage;
