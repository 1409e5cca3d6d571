//! The files of skills that travel over the channel: written in the Skill itself or in a ConfigMap.

use crate::board::Name;
use crate::bounds;
use agentrun_api::{Skill, SkillSpec};
use agentrun_protocol::work::{FileRef, SkillFile, SkillFiles};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Lower-case hexadecimal SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// A file of a skill: its path and its bytes.
pub(crate) type Content<'a> = (String, Cow<'a, [u8]>);

/// Whether the skill's files travel over the channel; others are mounts.
pub(crate) fn travels(spec: &SkillSpec) -> bool {
    spec.inline.is_some() || spec.config_map.is_some()
}

/// The ConfigMap that holds the skill's files.
pub(crate) fn config_map_of(skill: &Skill) -> Option<Name> {
    let source = skill.spec.config_map.as_ref()?;
    Some(Name {
        namespace: skill.namespace().unwrap_or_default(),
        name: source.name.clone(),
    })
}

/// The files of a skill that travels, in the order of their paths. Keys that are not there are left out: the digest of
/// the skill tells that something is missing.
pub(crate) fn contents<'a>(skill: &'a Skill, config_map: Option<&'a ConfigMap>) -> Vec<Content<'a>> {
    let mut contents: Vec<Content<'a>> = Vec::new();
    if let Some(inline) = &skill.spec.inline {
        let files = inline.files.iter();
        contents.extend(files.map(|file| (file.path.clone(), Cow::Borrowed(file.content.as_bytes()))));
    }
    if let (Some(source), Some(config_map)) = (&skill.spec.config_map, config_map) {
        if source.items.is_empty() {
            let keys = keys(config_map);
            contents.extend(keys.filter_map(|key| Some((key.clone(), value(config_map, key)?))));
        } else {
            let items = source.items.iter();
            contents
                .extend(items.filter_map(|item| Some((item.path.clone(), value(config_map, &item.key)?))));
        }
    }
    contents.sort_by(|one, two| one.0.cmp(&two.0));
    contents
}

fn keys(config_map: &ConfigMap) -> impl Iterator<Item = &String> {
    let text = config_map.data.iter().flat_map(|data| data.keys());
    text.chain(config_map.binary_data.iter().flat_map(|data| data.keys()))
}

/// The value of a key, text or binary.
pub(crate) fn value<'a>(config_map: &'a ConfigMap, key: &str) -> Option<Cow<'a, [u8]>> {
    let text = config_map.data.as_ref().and_then(|data| data.get(key));
    let binary = || config_map.binary_data.as_ref().and_then(|data| data.get(key));
    text.map(|text| Cow::Borrowed(text.as_bytes()))
        .or_else(|| Some(Cow::Borrowed(&binary()?.0[..])))
}

/// The list of files that an assignment carries.
pub(crate) fn folder(name: &str, digest: &str, contents: &[Content<'_>]) -> SkillFiles {
    let file = |(path, bytes): &Content<'_>| SkillFile {
        file: FileRef {
            path: path.clone(),
            bytes: bytes.len() as u64,
            sha256: sha256(bytes),
        },
        executable: is_executable(bytes),
    };
    SkillFiles {
        name: name.to_owned(),
        digest: digest.to_owned(),
        files: contents.iter().map(file).collect(),
    }
}

/// Neither ConfigMaps nor Skills carry modes: a program is what begins like one.
fn is_executable(bytes: &[u8]) -> bool {
    bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF")
}

/// File lists by skill and digest, so that a known skill costs no read.
#[derive(Debug, Default)]
pub(crate) struct SkillFolders {
    known: Mutex<HashMap<(Name, String), Arc<SkillFiles>>>,
}

impl SkillFolders {
    /// The list for this digest, if it is known.
    pub(crate) fn get(&self, skill: &Name, digest: &str) -> Option<Arc<SkillFiles>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(skill.clone(), digest.to_owned())).cloned()
    }

    /// Remembers a list. When there are too many, all are forgotten.
    pub(crate) fn put(&self, skill: Name, files: Arc<SkillFiles>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= bounds::SKILL_FOLDERS {
            known.clear();
        }
        known.insert((skill, files.digest.clone()), files);
    }
}

#[cfg(test)]
#[path = "skills_tests.rs"]
mod tests;
