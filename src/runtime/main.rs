//! Binary `agentrun-runtime`: reads the environment, serves, and says by its exit code how it ended.

use agentrun_protocol::{exit, inspection};
use agentrun_runtime::inspect::{Inspection, inspect};
use agentrun_runtime::serve::serve;
use agentrun_runtime::settings::Settings;
use std::error::Error;
use std::process::ExitCode;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Threads for file work; more only cost memory.
const BLOCKING_THREADS: usize = 4;
const STACK: usize = 512 * 1024;

fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .json()
        .with_writer(std::io::stderr)
        .with_max_level(tracing::Level::INFO)
        .init();
    match run() {
        Ok(code) => ExitCode::from(code),
        Err((code, error)) => {
            tracing::error!(error = &*error, "cannot serve");
            ExitCode::from(code)
        }
    }
}

/// What this process is for.
enum Task {
    Serve(Box<Settings>),
    Inspect(Inspection),
}

fn run() -> Result<u8, (u8, Box<dyn Error>)> {
    let misconfigured = |error: Box<dyn Error>| (exit::MISCONFIGURED, error);
    let variable = |name: &str| std::env::var(name).ok();
    let task = match std::env::args().nth(1).as_deref() {
        Some(inspection::COMMAND) => Inspection::from_environment(variable).map(Task::Inspect),
        _ => Settings::from_environment(variable).map(|settings| Task::Serve(Box::new(settings))),
    };
    let task = task.map_err(|error| misconfigured(error.into()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_stack_size(STACK)
        .build()
        .map_err(|error| misconfigured(error.into()))?;
    let served = runtime.block_on(async {
        let terminate = signal(SignalKind::terminate()).map_err(|error| misconfigured(error.into()))?;
        match task {
            Task::Inspect(inspection) => inspect(inspection, received(terminate))
                .await
                .map_err(|error| misconfigured(error.into())),
            Task::Serve(settings) => serve(*settings, received(terminate))
                .await
                .map_err(|error| (error.exit_code(), error.into())),
        }
    });
    // Hashing for a result that nobody waits for any more must not hold up the exit.
    runtime.shutdown_background();
    served
}

async fn received(mut signal: Signal) {
    signal.recv().await;
}
