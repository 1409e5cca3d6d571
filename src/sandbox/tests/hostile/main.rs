//! Every hostile program of `e2e/hostile` that makes sense on this machine, each as a test of its own.
//!
//! They run below the real executor, in a pid namespace and as a user of their own, and are bounded twice: by
//! what is tested, and by limits around the executor that hold if that fails. This needs root.

// Helpers of tests are tests too, but the lints only know functions marked as such.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "the other tests of this crate use the rest of it")]
#[path = "../harness.rs"]
mod harness;
mod place;
mod trial;

use agentrun_hostile::{Form, programs};
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = programs().expect("programs that can be read");
    let local = programs.into_iter().filter(|program| program.has(Form::Local));
    let trials = local.zip(0..).map(|(program, number)| {
        let ignored = !harness::is_root();
        Trial::test(program.name.clone(), move || trial::run(&program, number)).with_ignored_flag(ignored)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
