//! Whether this cluster can mount images as volumes: asked once per runtime image, by a Pod that runs the executor from
//! one. The answer is kept, so that a restart does not ask again.

use crate::pods::{Injection, probe_pod};
use crate::settings::Settings;
use agentrun_api::names::labels::OPERATOR;
use agentrun_api::names::objects::INJECTION_CONFIG_MAP;
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Error};
use serde_json::json;
use std::time::Duration;

/// How long a start may wait for the Pod; afterwards this process uses init containers.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the probe Pod said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Works,
    Fails,
    /// Nothing yet: worth another question at the next start.
    Silent,
}

/// Finds out how the executor comes into a user's image.
pub async fn choose(client: &Client, settings: &Settings) -> Injection {
    if let Some(chosen) = settings.executor_injection.chosen() {
        return chosen;
    }
    let chosen = match ask(client, settings).await {
        Ok(chosen) => chosen,
        Err(error) => {
            tracing::warn!(%error, "cannot ask whether images can be volumes, using init containers");
            Injection::Init
        }
    };
    tracing::info!(?chosen, "how the executor comes into a sandbox");
    chosen
}

async fn ask(client: &Client, settings: &Settings) -> Result<Injection, Error> {
    let answers: Api<ConfigMap> = Api::namespaced(client.clone(), &settings.namespace);
    let key = agentrun_core::names::h(20, &[&settings.runtime_image]);
    let known = answers
        .get_opt(INJECTION_CONFIG_MAP)
        .await?
        .and_then(|map| map.data?.remove(&key));
    if let Some(known) = known.as_deref().and_then(read) {
        return Ok(known);
    }
    let answer = probe(client, settings, &format!("agentrun-injection-{key}")).await?;
    let chosen = if answer == Answer::Works {
        Injection::Image
    } else {
        Injection::Init
    };
    if answer != Answer::Silent {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": INJECTION_CONFIG_MAP}, "data": {key: write(chosen)},
        });
        answers
            .patch(
                INJECTION_CONFIG_MAP,
                &PatchParams::apply(OPERATOR).force(),
                &Patch::Apply(&map),
            )
            .await?;
    }
    Ok(chosen)
}

async fn probe(client: &Client, settings: &Settings, name: &str) -> Result<Answer, Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &settings.namespace);
    let pod = probe_pod(
        name,
        settings.sandbox_uid,
        &settings.runtime_image,
        settings.image_pull_policy,
    );
    match pods.create(&PostParams::default(), &pod).await {
        Ok(_) => {}
        // An earlier start left it: its end is an answer too.
        Err(Error::Api(status)) if status.code == 409 => {}
        // Admission refuses the volume.
        Err(Error::Api(status)) if status.code == 422 => return Ok(Answer::Fails),
        Err(error) => return Err(error),
    }
    let answer = tokio::time::timeout(PATIENCE, end_of(&pods, name))
        .await
        .unwrap_or(Answer::Silent);
    pods.delete(name, &DeleteParams::background().grace_period(0))
        .await
        .map(drop)
        .or_else(ignore_404)?;
    Ok(answer)
}

async fn end_of(pods: &Api<Pod>, name: &str) -> Answer {
    let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut changes = watcher(pods.clone(), one)
        .default_backoff()
        .applied_objects()
        .boxed();
    while let Some(change) = changes.next().await {
        let phase = change.ok().and_then(|pod| pod.status?.phase);
        match phase.as_deref() {
            Some("Succeeded") => return Answer::Works,
            Some("Failed") => return Answer::Fails,
            _ => {}
        }
    }
    Answer::Silent
}

fn ignore_404(error: Error) -> Result<(), Error> {
    if matches!(&error, Error::Api(status) if status.code == 404) {
        Ok(())
    } else {
        Err(error)
    }
}

const fn write(injection: Injection) -> &'static str {
    match injection {
        Injection::Image => "image",
        Injection::Init => "init",
    }
}

fn read(text: &str) -> Option<Injection> {
    [Injection::Image, Injection::Init]
        .into_iter()
        .find(|injection| write(*injection) == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_their_text_and_others_are_asked_again() {
        for injection in [Injection::Image, Injection::Init] {
            assert_eq!(read(write(injection)), Some(injection));
        }
        assert_eq!(read("maybe"), None);
    }
}
