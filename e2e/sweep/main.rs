//! The operator against a real API server that has no node: whatever happens to the operator, runs come to the same end.
//!
//! README.md says how to run these tests and what they prove.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod api;
mod conflicts;
mod crashes;
mod deletions;
mod end;
mod operator;
mod paging;
mod quiet;
mod scenario;
mod watches;
