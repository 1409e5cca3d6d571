//! A stand-in for an OpenAI-compatible endpoint that answers by a script, well or badly: in any dialect, late, cut, or with
//! an error. Scenarios come from code or from the JSON that `e2e/model-server` reads too.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test's helper says what is wrong by panicking"
)]

mod answer;
mod scenario;
mod server;

pub use answer::{Answer, Call, Dialect};
pub use scenario::{Rule, Scenario, When};
pub use server::{Asked, Scripted};
