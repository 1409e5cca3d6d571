//! Secrets that a task names: kubelet-filled variables and tmpfs files of the `sandbox` container alone.

use super::volumes::{CHANNEL, EXECUTOR, mount};
use agentrun_api::names::paths::{SKILLS, USER_DATA};
use agentrun_api::{SecretItem, SecretUse};
use agentrun_protocol::executor::SecretPlaces;
use k8s_openapi::api::core::v1::{
    EnvVar, EnvVarSource, KeyToPath, SecretKeySelector, SecretVolumeSource, Volume, VolumeMount,
};

/// Folder of a Secret whose `mountPath` is not given.
const DEFAULT_FOLDER: &str = "/run/secrets";
/// Folders that a Secret may not be mounted at, above or below: ours, and those of the system.
const RESERVED: [&str; 8] = [
    USER_DATA, SKILLS, CHANNEL, EXECUTOR, "/tmp", "/proc", "/sys", "/dev",
];

/// A Secret cannot be mounted where it was asked for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The folder is not its own.
    #[error(
        "secrets[{name}].mountPath: {path:?} lies at, above or below {reserved}, choose a folder of its own such as {DEFAULT_FOLDER}/{name}"
    )]
    ReservedPath {
        /// Name of the Secret.
        name: String,
        /// What was asked for.
        path: String,
        /// What it collides with.
        reserved: &'static str,
    },
    /// The path is not absolute and plain.
    #[error("secrets[{name}].mountPath: {path:?} is no absolute path without empty parts, `.`, `..` and `:`")]
    UnclearPath {
        /// Name of the Secret.
        name: String,
        /// What was asked for.
        path: String,
    },
    /// Two Secrets ask for folders that hide each other.
    #[error(
        "secrets[{name}].mountPath: {path:?} overlaps the folder of secrets[{other}], give each a folder of its own"
    )]
    Overlap {
        /// Name of the Secret.
        name: String,
        /// What was asked for.
        path: String,
        /// Name of the other Secret.
        other: String,
    },
}

/// Checks where Secrets are to be mounted.
pub(super) fn check(secrets: &[SecretUse]) -> Result<(), SecretError> {
    for (index, secret) in secrets.iter().enumerate() {
        check_path(secret)?;
        let path = folder(secret);
        let earlier = secrets[..index]
            .iter()
            .filter(|other| is_mounted(other) && is_mounted(secret));
        for other in earlier {
            let other_path = folder(other);
            if within(&path, &other_path) || within(&other_path, &path) {
                return Err(SecretError::Overlap {
                    name: secret.name.clone(),
                    path,
                    other: other.name.clone(),
                });
            }
        }
    }
    Ok(())
}

fn check_path(secret: &SecretUse) -> Result<(), SecretError> {
    if !is_mounted(secret) {
        return Ok(());
    }
    let (name, path) = (secret.name.clone(), folder(secret));
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(':');
    if path
        .strip_prefix('/')
        .is_none_or(|rest| !rest.split('/').all(plain))
    {
        return Err(SecretError::UnclearPath { name, path });
    }
    match RESERVED
        .into_iter()
        .find(|reserved| within(&path, reserved) || within(reserved, &path))
    {
        Some(reserved) => Err(SecretError::ReservedPath { name, path, reserved }),
        None => Ok(()),
    }
}

/// Whether `path` is `folder` or below it, by parts.
fn within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) fn env(secrets: &[SecretUse]) -> Vec<EnvVar> {
    let of_item = |secret: &SecretUse, item: &SecretItem| {
        let key = SecretKeySelector {
            name: secret.name.clone(),
            key: item.key.clone(),
            optional: Some(false),
        };
        item.env.clone().map(|name| EnvVar {
            name,
            value: None,
            value_from: Some(EnvVarSource {
                secret_key_ref: Some(key),
                ..EnvVarSource::default()
            }),
        })
    };
    secrets
        .iter()
        .flat_map(|secret| secret.items.iter().filter_map(move |item| of_item(secret, item)))
        .collect()
}

/// Where the values will be.
pub(super) fn places(secrets: &[SecretUse]) -> SecretPlaces {
    let items = secrets.iter().flat_map(|secret| &secret.items);
    SecretPlaces {
        env: items.filter_map(|item| item.env.clone()).collect(),
        folders: secrets
            .iter()
            .filter(|secret| is_mounted(secret))
            .map(folder)
            .collect(),
    }
}

pub(super) fn volumes(secrets: &[SecretUse]) -> Vec<Volume> {
    let mounted = secrets
        .iter()
        .enumerate()
        .filter(|(_, secret)| is_mounted(secret));
    mounted.map(|(index, secret)| volume(index, secret)).collect()
}

pub(super) fn mounts(secrets: &[SecretUse]) -> Vec<VolumeMount> {
    let mounted = secrets
        .iter()
        .enumerate()
        .filter(|(_, secret)| is_mounted(secret));
    mounted
        .map(|(index, secret)| mount(&volume_name(index), &folder(secret), true))
        .collect()
}

/// A Secret without items is mounted whole; one whose items all are variables is not mounted.
fn is_mounted(secret: &SecretUse) -> bool {
    secret.items.is_empty() || files(secret).next().is_some()
}

fn files(secret: &SecretUse) -> impl Iterator<Item = &SecretItem> {
    secret
        .items
        .iter()
        .filter(|item| item.path.is_some() || item.env.is_none())
}

fn folder(secret: &SecretUse) -> String {
    let path = secret
        .mount_path
        .clone()
        .unwrap_or_else(|| format!("{DEFAULT_FOLDER}/{}", secret.name));
    path.strip_suffix('/').map(str::to_owned).unwrap_or(path)
}

fn volume_name(index: usize) -> String {
    format!("secret-{index}")
}

fn volume(index: usize, secret: &SecretUse) -> Volume {
    let items: Vec<KeyToPath> = files(secret)
        .map(|item| KeyToPath {
            key: item.key.clone(),
            path: item.path.clone().unwrap_or_else(|| item.key.clone()),
            mode: None,
        })
        .collect();
    Volume {
        name: volume_name(index),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.name.clone()),
            items: (!items.is_empty()).then_some(items),
            default_mode: Some(0o440),
            optional: Some(false),
        }),
        ..Volume::default()
    }
}
