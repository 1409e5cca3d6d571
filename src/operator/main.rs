//! `agentrun`: operator, gateway, CRD printing and draining in one binary; only dispatches.

use agentrun_operator::drain::{DrainSettings, drain};
use agentrun_operator::settings::Settings;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

mod crds;

/// Runs agents and their sub-tasks in locked-down sandboxes on Kubernetes.
#[derive(Parser)]
#[command(name = "agentrun", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// What is logged, in the syntax of `RUST_LOG`.
    #[arg(long, env = "AGENTRUN_LOG", default_value = "info", global = true)]
    log: String,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the controllers.
    Operator(Box<Settings>),
    /// Serves the channel that sandboxes connect to.
    Gateway(agentrun_gateway::Settings),
    /// Cancels all runs and takes off our finalizers, before an uninstallation.
    Drain(DrainSettings),
    /// Prints the custom resource definitions.
    Crds {
        /// Writes one file per resource into this folder instead.
        #[arg(long)]
        output: Option<PathBuf>,
    },
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_new(&arguments.log).unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    match Box::pin(dispatch(arguments.command)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "ended");
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Operator(settings) => Ok(Box::pin(agentrun_operator::run(*settings, on_signal()?)).await?),
        Command::Gateway(settings) => {
            let shutdown = on_signal()?;
            Ok(agentrun_gateway::run(settings, shutdown.cancelled()).await?)
        }
        Command::Drain(settings) => Ok(drain(&settings).await?),
        Command::Crds { output } => Ok(crds::write(output.as_deref())?),
    }
}

/// Cancelled by the first SIGTERM or SIGINT.
fn on_signal() -> Result<CancellationToken, std::io::Error> {
    let token = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let cancelled = token.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("shutting down");
        cancelled.cancel();
    });
    Ok(token)
}
