//! Contents that a runtime asks for by digest. Only what its assignment names is served, and only with that digest.

use crate::assignment::below_uploads;
use crate::backoff::Backoff;
use crate::board::Name;
use crate::bounds;
use crate::gateway::Gateway;
use crate::objects::Age;
use crate::skills;
use crate::text::chain;
use agentrun_api::{AgentRun, FileSource};
use agentrun_core::digest::sha256_hex;
use agentrun_protocol::Blob;
use agentrun_protocol::channel::ToRuntime;
use agentrun_protocol::frame::MAX_BLOB;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a content is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file of a run, by its path below `uploads`.
    RunFile {
        /// UID of the run.
        run_uid: String,
        /// Path below `uploads`.
        path: String,
    },
    /// A file of a skill that travels.
    Skill {
        /// The Skill.
        name: Name,
        /// Path below its folder.
        path: String,
    },
}

/// The contents behind the digests of one assignment.
pub(crate) type Allowed = HashMap<String, Source>;

/// Why a content cannot be had.
#[derive(Debug, thiserror::Error)]
enum ContentError {
    #[error("{0}")]
    Missing(String),
    #[error("the API server could not be asked")]
    Unavailable(#[from] Box<kube::Error>),
}

impl From<kube::Error> for ContentError {
    fn from(error: kube::Error) -> Self {
        Self::Unavailable(Box::new(error))
    }
}

/// The content with this digest, or why it is missing. Waits while the API server does not answer.
pub(crate) async fn fetch(gateway: &Gateway, source: &Source, digest: &str) -> Result<Vec<u8>, String> {
    let mut backoff = Backoff::new(bounds::STORE_PAUSE);
    loop {
        match checked(gateway, source, digest).await {
            Ok(bytes) => return Ok(bytes),
            Err(ContentError::Missing(message)) => return Err(message),
            Err(error) => {
                tracing::warn!(error = chain(&error), "content cannot be read, trying again");
                backoff.pause().await;
            }
        }
    }
}

async fn checked(gateway: &Gateway, source: &Source, digest: &str) -> Result<Vec<u8>, ContentError> {
    let recent = read(gateway, source, Age::Recent).await?;
    if sha256_hex(&recent) == digest {
        return Ok(recent);
    }
    let fresh = read(gateway, source, Age::Fresh).await?;
    let found = sha256_hex(&fresh);
    if found == digest {
        return Ok(fresh);
    }
    Err(ContentError::Missing(format!(
        "the content changed: it has digest {found} now"
    )))
}

async fn read(gateway: &Gateway, source: &Source, age: Age) -> Result<Vec<u8>, ContentError> {
    match source {
        Source::RunFile { run_uid, path } => {
            let run = gateway.board().run(run_uid);
            let run = run.ok_or_else(|| missing("the AgentRun is gone or over"))?;
            run_file(gateway, &run, path, age).await
        }
        Source::Skill { name, path } => skill_file(gateway, name, path, age).await,
    }
}

async fn run_file(gateway: &Gateway, run: &AgentRun, path: &str, age: Age) -> Result<Vec<u8>, ContentError> {
    let is_it = |file: &&FileSource| below_uploads(&file.path) == path;
    let file = run.spec.files.iter().find(is_it);
    let file = file.ok_or_else(|| missing(&format!("the AgentRun has no file {path}")))?;
    if let Some(content) = &file.content {
        return Ok(content.clone().into_bytes());
    }
    let Some(key) = &file.config_map_key_ref else {
        return Err(missing(&format!("file {path} does not come over the channel")));
    };
    let name = Name {
        namespace: run.namespace().unwrap_or_default(),
        name: key.name.clone(),
    };
    let config_map = config_map(gateway, &name, age).await?;
    let value = skills::value(&config_map, &key.key);
    value.ok_or_else(|| missing(&format!("ConfigMap {} has no key {}", key.name, key.key)))
}

async fn skill_file(gateway: &Gateway, name: &Name, path: &str, age: Age) -> Result<Vec<u8>, ContentError> {
    let skill = gateway.board().skill(name);
    let skill = skill.ok_or_else(|| missing(&format!("Skill {} is gone", name.name)))?;
    let config_map = match skills::config_map_of(&skill) {
        Some(name) => Some(config_map(gateway, &name, age).await?),
        None => None,
    };
    let content = skills::contents(&skill, config_map.as_deref()).remove(path);
    content.ok_or_else(|| missing(&format!("Skill {} has no file {path}", name.name)))
}

async fn config_map(gateway: &Gateway, name: &Name, age: Age) -> Result<Arc<ConfigMap>, ContentError> {
    let found = gateway.objects.config_map(name, age).await?;
    found.ok_or_else(|| missing(&format!("ConfigMap {} is gone", name.name)))
}

fn missing(message: &str) -> ContentError {
    ContentError::Missing(message.to_owned())
}

/// A content as the messages that carry it: at least one, so that an empty content arrives too.
pub(crate) fn chunks(digest: &str, bytes: &[u8]) -> impl Iterator<Item = ToRuntime> {
    let count = bytes.len().div_ceil(MAX_BLOB).max(1);
    (0..count).map(move |index| {
        let start = index * MAX_BLOB;
        let end = (start + MAX_BLOB).min(bytes.len());
        ToRuntime::Chunk {
            sha256: digest.to_owned(),
            offset: start as u64,
            last: index + 1 == count,
            data: Blob(bytes[start..end].to_vec()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: usize) -> Vec<(u64, usize, bool)> {
        let bytes = vec![7; bytes];
        let size = |message| {
            let ToRuntime::Chunk {
                offset, last, data, ..
            } = message
            else {
                panic!("not a chunk")
            };
            (offset, data.0.len(), last)
        };
        chunks("d", &bytes).map(size).collect()
    }

    #[test]
    fn a_content_travels_in_pieces_and_an_empty_one_in_one() {
        assert_eq!(sizes(0), [(0, 0, true)]);
        assert_eq!(sizes(MAX_BLOB), [(0, MAX_BLOB, true)]);
        assert_eq!(
            sizes(MAX_BLOB + 1),
            [(0, MAX_BLOB, false), (MAX_BLOB as u64, 1, true)]
        );
    }
}
