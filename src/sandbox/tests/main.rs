//! The real binary against a runtime of the test's own.
//!
//! Where this runs as root the executor gets a pid namespace of its own, as in a container: there it is
//! PID 1, and a `kill -9 -1` cannot reach the machine.

// Helpers of tests are tests too, but the lints only know functions marked as such.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod confinement;
#[allow(dead_code, reason = "the hostile programs use the rest of it")]
mod harness;
mod life;
mod limits;
mod streams;
mod tools;
mod tree;
