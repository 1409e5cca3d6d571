//! The HTTP side of the control plane: the channel that the runtimes talk to.
//!
//! A runtime opens one stream ([`channel`]) and proves which Pod it is ([`auth`]). Watches ([`watcher`]) keep a
//! [`board`] of what every Pod is to work on and wake the streams that an event is about. A stream compares the board
//! with what its runtime was told: it assigns ([`prepare`], [`assignment`]), cancels, serves contents by digest
//! ([`contents`]), asks models ([`models`]), makes what an agent delegates ([`delegation`]) and stores ends ([`ends`]).
//! Nothing is kept here that is not also in an object or in the runtime, so a restart loses nothing. The public HTTP API
//! is [`api`].

mod agents;
mod api;
mod assignment;
mod auth;
mod backoff;
mod board;
mod bounds;
mod canary;
mod channel;
mod contents;
mod delegation;
mod ends;
mod error;
#[cfg(test)]
mod fixtures;
mod gateway;
mod health;
mod inspection;
mod limits;
mod listen;
mod metrics;
mod models;
mod objects;
mod ops;
mod placement;
mod prepare;
mod server;
mod settings;
mod skills;
mod streams;
mod text;
mod tls;
mod watcher;

#[cfg(test)]
mod channel_tests;
#[cfg(test)]
mod runtime_tests;

pub use api::ApiSettings;
pub use error::{CertificateError, GatewayError};
pub use settings::Settings;

use agentrun_api::{AgentRun, Model, SandboxPool, Skill, SubTask};
use auth::TokenReviewer;
use gateway::Gateway;
use models::{Models, Patience};
use std::future::Future;
use std::sync::Arc;
use tls::Certificate;
use tokio::task::JoinSet;

/// Runs a gateway until `shutdown` completes, with the Kubernetes API of the Pod or of `KUBECONFIG`.
///
/// At the end no connection is accepted any more, streams are closed so that their runtimes connect elsewhere, and
/// writes that are under way get ten seconds.
pub async fn run(settings: Settings, shutdown: impl Future<Output = ()> + Send) -> Result<(), GatewayError> {
    let config = kube::Config::infer()
        .await
        .map_err(|error| GatewayError::Configuration(Box::new(error)))?;
    let client = kube::Client::try_from(config).map_err(|error| GatewayError::Client(Box::new(error)))?;
    run_with(client, settings, shutdown).await
}

/// Runs a gateway until `shutdown` completes, with a client of the caller's.
pub async fn run_with(
    client: kube::Client,
    settings: Settings,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), GatewayError> {
    let models = Models::new(Patience::default(), settings.daily_tokens);
    let gateway = Gateway::new(client.clone(), metrics::Metrics::new()?, models);
    let ops = listen::bind(settings.ops_address).await?;
    let canary = listen::bind(settings.canary_address).await?;
    // Aborted on return: these have nothing to finish.
    let mut background = JoinSet::new();
    background.spawn(ops::serve(ops, Arc::clone(&gateway)));
    background.spawn(canary::serve(canary));
    background.spawn(watcher::follow::<SubTask>(client.clone(), Arc::clone(&gateway)));
    background.spawn(watcher::follow::<AgentRun>(client.clone(), Arc::clone(&gateway)));
    background.spawn(watcher::follow::<Skill>(client.clone(), Arc::clone(&gateway)));
    background.spawn(watcher::follow::<Model>(client.clone(), Arc::clone(&gateway)));
    background.spawn(watcher::follow::<SandboxPool>(
        client.clone(),
        Arc::clone(&gateway),
    ));
    background.spawn(models::look_after(Arc::clone(&gateway)));
    if let Some(public) = api::open(settings.api, client.clone(), Arc::clone(&gateway)).await? {
        gateway.tasks.spawn(public);
    }
    tokio::pin!(shutdown);
    let certificate = tokio::select! {
        certificate = Certificate::wait_for(settings.tls_dir) => certificate,
        () = shutdown.as_mut() => return Ok(()),
    };
    gateway.health.certificate_loaded();
    let tls = Arc::new(tls::server_config(Arc::clone(&certificate))?);
    background.spawn(certificate.keep_fresh());
    let listener = listen::bind(settings.channel_address).await?;
    tracing::info!(address = %settings.channel_address, "channel is open");
    let reviewer = Arc::new(TokenReviewer::new(client));
    let serving = server::serve(
        listener,
        tls,
        settings.max_connections,
        reviewer,
        Arc::clone(&gateway),
    );
    let accepting = tokio::spawn(serving);
    shutdown.await;
    tracing::info!("shutting down");
    gateway.health.stopping();
    gateway.stop.cancel();
    let _ = accepting.await;
    gateway.tasks.close();
    if tokio::time::timeout(bounds::SHUTDOWN, gateway.tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!("some streams or writes did not end in time");
    }
    Ok(())
}
