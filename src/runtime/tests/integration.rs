//! The runtime over loopback: a gateway and an executor made by the test, and the real executor.

mod channel;
mod executor;
mod gateway;
mod life;
mod real;
mod work;
mod world;
