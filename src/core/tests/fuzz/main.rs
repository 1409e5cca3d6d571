//! Mutates good inputs and gives them to whatever reads the bytes of strangers. Nothing may panic, hang, or say something
//! that is not so.
//!
//! A run is short and always the same; `FUZZ_SECONDS=600 FUZZ_SEED=7` make a long one of other inputs:
//! `FUZZ_SECONDS=600 cargo test --release --package agentrun-core --test fuzz`.

// clippy.toml allows these in test functions; here the helpers are tests too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)]

mod mutate;
mod targets;

use mutate::Mutator;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// No input of at most 64 KiB may take longer, on a busy machine and without optimisation.
const SLOW: Duration = Duration::from_secs(10);

/// Gives mutations of `seeds` to `target` until the time is over.
fn fuzz(seeds: &[&[u8]], target: impl Fn(&[u8])) {
    let number = |name: &str, default: u64| {
        let set = std::env::var(name).ok();
        set.map_or(default, |text| text.parse().expect(name))
    };
    let until = Instant::now() + Duration::from_secs(number("FUZZ_SECONDS", 1));
    let mut mutator = Mutator::new(number("FUZZ_SEED", 1), seeds);
    for seed in seeds {
        run(seed, &target);
    }
    let mut inputs = 0_u64;
    while Instant::now() < until {
        run(&mutator.next(), &target);
        inputs += 1;
    }
    println!("{inputs} inputs");
    assert!(inputs > 0);
}

fn run(input: &[u8], target: &impl Fn(&[u8])) {
    let begin = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
    if let Err(panic) = outcome {
        eprintln!("input: {}", input.escape_ascii());
        resume_unwind(panic);
    }
    assert!(begin.elapsed() < SLOW, "slow: {}", input.escape_ascii());
}
