//! The runtime over loopback: a gateway and an executor made by the test, and the real executor.

// clippy.toml allows these in test functions; here the helpers are tests too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod acceptance;
mod agent;
mod channel;
mod executor;
mod gateway;
mod inspect;
mod life;
mod memory;
mod model;
mod real;
mod schemas;
mod tools;
mod troubles;
mod warm;
mod work;
mod world;
