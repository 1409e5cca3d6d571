//! The files of skills that travel over the channel: written in the Skill itself or in a ConfigMap.

use crate::board::Name;
use crate::bounds;
use agentrun_api::{Skill, SkillSpec};
use agentrun_core::digest::sha256_hex;
use agentrun_core::skill::is_executable;
use agentrun_protocol::work::{FileRef, SkillFile, SkillFiles};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt as _;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The files of a skill by path.
pub(crate) type Contents = BTreeMap<String, Vec<u8>>;

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

/// The files of a skill that travels. Keys that are not there are left out: the digest of the skill tells that something
/// is missing.
pub(crate) fn contents(skill: &Skill, config_map: Option<&ConfigMap>) -> Contents {
    let inline = skill.spec.inline.iter().flat_map(|inline| &inline.files);
    let mut contents: Contents = inline
        .map(|file| (file.path.clone(), file.content.clone().into_bytes()))
        .collect();
    if let (Some(source), Some(config_map)) = (&skill.spec.config_map, config_map) {
        let items = source.items.iter().map(|item| (&item.key, &item.path));
        let all = keys(config_map)
            .map(|key| (key, key))
            .filter(|_| source.items.is_empty());
        let picked = items.chain(all);
        contents.extend(picked.filter_map(|(key, path)| Some((path.clone(), value(config_map, key)?))));
    }
    contents
}

fn keys(config_map: &ConfigMap) -> impl Iterator<Item = &String> {
    let text = config_map.data.iter().flat_map(|data| data.keys());
    text.chain(config_map.binary_data.iter().flat_map(|data| data.keys()))
}

/// The value of a key, text or binary.
pub(crate) fn value(config_map: &ConfigMap, key: &str) -> Option<Vec<u8>> {
    let text = config_map.data.as_ref().and_then(|data| data.get(key));
    let binary = || config_map.binary_data.as_ref().and_then(|data| data.get(key));
    text.map(|text| text.clone().into_bytes())
        .or_else(|| Some(binary()?.0.clone()))
}

/// The list of files that an assignment carries.
pub(crate) fn folder(name: &str, digest: &str, contents: &Contents) -> SkillFiles {
    let file = |(path, bytes): (&String, &Vec<u8>)| SkillFile {
        file: FileRef {
            path: path.clone(),
            bytes: bytes.len() as u64,
            sha256: sha256_hex(bytes),
        },
        executable: is_executable(bytes),
    };
    SkillFiles {
        name: name.to_owned(),
        digest: digest.to_owned(),
        files: contents.iter().map(file).collect(),
        mounted: false,
    }
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
