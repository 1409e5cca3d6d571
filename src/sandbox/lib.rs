//! The executor of the untrusted container, the resolver of virtual paths, and the tools that use it.
//!
//! PID 1 ([`serve`]) holds the one connection to the runtime and does nothing but route frames: each
//! call gets a supervisor process ([`supervise`]) that starts the program under limits, watches its
//! process tree, forwards its output and proves at the end that nothing of it is left. Both are
//! single-threaded loops around `poll(2)`, with bounded buffers and without a way to the network.
//!
//! The supervisor is a child of PID 1 and of nobody else: when a call manages to kill it, PID 1 kills
//! everything and says so. Code between `fork` and `exec` ([`launch`]) runs in a copy of that
//! single-threaded process, so ordinary Rust is safe there.

mod calls;
mod capture;
mod confine;
mod connect;
mod environment;
mod explain;
mod install;
mod job;
mod launch;
mod memory;
mod mounts;
mod options;
mod output_file;
mod peer;
mod privileges;
mod program;
pub mod resolve;
mod scratch;
mod seccomp;
mod secrets;
mod serve;
mod shell;
mod spool;
mod supervise;
#[allow(unsafe_code)] // the one module with system calls that no crate wraps
mod sys;
mod tool_process;
mod tool_shell;
pub mod tools;
mod tree;
mod usage;
mod work;

pub use options::{Areas, Command, SessionFrom, Settings, Tool, USAGE, UsageError, parse};

use std::io::Write;
use std::process::ExitCode;

/// Runs one subcommand to its end.
pub fn run(command: Command) -> ExitCode {
    match command {
        Command::Serve(settings) => serve::serve(settings),
        Command::Install(folder) => install::install(&folder),
        Command::Supervise => supervise::supervise(),
        Command::Tool(tool) => tool_process::run(&tool),
        Command::Shell(areas) => shell::run(&areas),
        Command::Tools => tool_process::print_definitions(),
    }
}

/// Writes a line to stderr, the log of the container. A log that cannot be written is nobody's problem.
pub fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "agentrun-sandbox: {message}");
}

/// Whole milliseconds, as messages count them.
fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What `poll` takes; rounded up, so that a deadline has passed when it wakes.
fn timespec(duration: std::time::Duration) -> rustix::time::Timespec {
    rustix::time::Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
