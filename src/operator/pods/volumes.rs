//! Volumes of the sandbox Pod, and which container sees what of them.

use super::input::{Injection, PodInput, Skill, SkillSource};
use super::secrets;
use agentrun_api::names::paths::{SKILLS, USER_DATA};
use agentrun_protocol::environment;
use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, ImageVolumeSource, PersistentVolumeClaimVolumeSource, ProjectedVolumeSource,
    ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Where the executor is in the `sandbox` container.
pub(super) const EXECUTOR: &str = "/opt/agentrun";
/// The folder of the socket, in both containers.
pub(super) const CHANNEL: &str = "/run/agentrun";
/// The folder of the projected token, in the `runtime` container alone.
pub(super) const TOKEN_DIR: &str = "/var/run/secrets/agentrun";
/// Seconds that a projected token is valid: the least that the API server grants.
pub(super) const TOKEN_SECONDS: i64 = 600;

/// The socket needs an inode, not bytes.
const CHANNEL_SIZE: &str = "1Mi";
/// A ConfigMap or inline skill is at most about 1 MiB, and a sandbox has at most 64.
const SKILLS_SIZE: &str = "64Mi";
/// Two static binaries of at most 4 MiB, and room to grow.
const EXECUTOR_SIZE: &str = "16Mi";
/// A quarter of the runtime container's memory limit, which it counts against.
const RUNTIME_TMP_SIZE: &str = "16Mi";
/// The largest `/tmp` of the sandbox container, in bytes.
const MAX_TMP: u64 = 512 << 20;

const CLAIM_VOLUME: &str = "user-data";
const CHANNEL_VOLUME: &str = "channel";
const SKILLS_VOLUME: &str = "skills";
pub(super) const TOKEN_VOLUME: &str = "token";
const EXECUTOR_VOLUME: &str = "executor";
const RUNTIME_TMP_VOLUME: &str = "runtime-tmp";
const SANDBOX_TMP_VOLUME: &str = "sandbox-tmp";

/// Every volume of the Pod.
pub(super) fn volumes(input: &PodInput<'_>) -> Vec<Volume> {
    let mut volumes = vec![
        claim(CLAIM_VOLUME, &input.claim.name, false),
        empty_dir(CHANNEL_VOLUME, CHANNEL_SIZE.to_owned(), true),
        empty_dir(SKILLS_VOLUME, SKILLS_SIZE.to_owned(), false),
        token(),
        empty_dir(RUNTIME_TMP_VOLUME, RUNTIME_TMP_SIZE.to_owned(), true),
        empty_dir(SANDBOX_TMP_VOLUME, tmp_size(input.sandbox.memory_bytes), true),
        executor(input),
    ];
    for (index, skill) in input.skills.iter().enumerate() {
        match &skill.source {
            SkillSource::Channel => {}
            SkillSource::Image { reference } => {
                let policy = input.platform.image_pull_policy.clone();
                volumes.push(image(&skill_volume(index), reference, policy));
            }
            SkillSource::Claim { claim: name, .. } => push_claim(&mut volumes, input, name),
        }
    }
    for source in &input.file_claims {
        push_claim(&mut volumes, input, &source.claim);
    }
    volumes.extend(secrets::volumes(&input.sandbox.secrets));
    volumes
}

/// What the trusted container sees.
pub(super) fn runtime_mounts(input: &PodInput<'_>) -> Vec<VolumeMount> {
    let mut mounts = vec![
        user_data(input, "uploads", false),
        user_data(input, "workspace", true),
        user_data(input, "outputs", true),
        sub(
            mount(CLAIM_VOLUME, environment::STATE, false),
            format!("{}/state", input.folder),
        ),
        mount(CHANNEL_VOLUME, CHANNEL, false),
        mount(SKILLS_VOLUME, environment::SKILLS, false),
        mount(TOKEN_VOLUME, TOKEN_DIR, true),
        mount(RUNTIME_TMP_VOLUME, "/tmp", false),
    ];
    // The runtime compares them with the digest that the run was admitted with.
    for (index, skill) in input.skills.iter().enumerate() {
        let path = format!("{}/{}", environment::SKILLS, skill.name);
        mounts.extend(mounted_skill(input, index, skill, &path));
    }
    for source in &input.file_claims {
        let volume = claim_volume(input, &source.claim);
        let path = format!("{}/{}", environment::SOURCES, source.name);
        mounts.push(sub(mount(&volume, &path, true), source.sub_path.clone()));
    }
    mounts
}

/// What the untrusted container sees: the whole list, which the executor compares with its mount table.
pub(super) fn sandbox_mounts(input: &PodInput<'_>) -> Vec<VolumeMount> {
    let mut mounts = vec![
        user_data(input, "uploads", true),
        user_data(input, "workspace", input.read_only),
        user_data(input, "outputs", input.read_only),
        mount(SANDBOX_TMP_VOLUME, "/tmp", false),
        mount(CHANNEL_VOLUME, CHANNEL, true),
        mount(EXECUTOR_VOLUME, EXECUTOR, true),
    ];
    for (index, skill) in input.skills.iter().enumerate() {
        let path = format!("{SKILLS}/{}", skill.name);
        let channel = || sub(mount(SKILLS_VOLUME, &path, true), skill.name.clone());
        mounts.push(mounted_skill(input, index, skill, &path).unwrap_or_else(channel));
    }
    mounts.extend(secrets::mounts(&input.sandbox.secrets));
    mounts
}

/// The mount of a skill that the kubelet brings.
fn mounted_skill(input: &PodInput<'_>, index: usize, skill: &Skill, path: &str) -> Option<VolumeMount> {
    match &skill.source {
        SkillSource::Channel => None,
        SkillSource::Image { .. } => Some(mount(&skill_volume(index), path, true)),
        SkillSource::Claim { claim, sub_path } => Some(sub(
            mount(&claim_volume(input, claim), path, true),
            sub_path.clone(),
        )),
    }
}

/// What the init container that copies the executor sees.
pub(super) fn installer_mounts() -> Vec<VolumeMount> {
    vec![mount(EXECUTOR_VOLUME, EXECUTOR, false)]
}

/// A number of bytes as people write it.
pub(super) fn bytes_text(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    if bytes.is_multiple_of(MEBIBYTE) {
        format!("{}Mi", bytes / MEBIBYTE)
    } else {
        bytes.to_string()
    }
}

/// A tmpfs counts against the memory limit: at most half of it, and never above [`MAX_TMP`].
fn tmp_size(memory_bytes: u64) -> String {
    bytes_text((memory_bytes / 2).min(MAX_TMP))
}

fn executor(input: &PodInput<'_>) -> Volume {
    match input.platform.injection {
        Injection::Image => {
            let policy = input.platform.image_pull_policy.clone();
            image(EXECUTOR_VOLUME, &input.platform.runtime_image, policy)
        }
        Injection::Init => empty_dir(EXECUTOR_VOLUME, EXECUTOR_SIZE.to_owned(), false),
    }
}

fn user_data(input: &PodInput<'_>, part: &str, read_only: bool) -> VolumeMount {
    let path = format!("{USER_DATA}/{part}");
    sub(
        mount(CLAIM_VOLUME, &path, read_only),
        format!("{}/user-data/{part}", input.folder),
    )
}

fn push_claim(volumes: &mut Vec<Volume>, input: &PodInput<'_>, name: &str) {
    let volume = claim_volume(input, name);
    if volumes.iter().all(|known| known.name != volume) {
        volumes.push(claim(&volume, name, true));
    }
}

/// One volume per claim, whoever mounts it: two volumes of one claim in one Pod hang on some drivers.
fn claim_volume(input: &PodInput<'_>, name: &str) -> String {
    if name == input.claim.name {
        return CLAIM_VOLUME.to_owned();
    }
    format!("claim-{}", agentrun_core::names::h(10, &[name]))
}

fn skill_volume(index: usize) -> String {
    format!("skill-{index}")
}

pub(super) fn claim(volume: &str, name: &str, read_only: bool) -> Volume {
    Volume {
        name: volume.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: name.to_owned(),
            read_only: read_only.then_some(true),
        }),
        ..Volume::default()
    }
}

pub(super) fn image(volume: &str, reference: &str, pull_policy: Option<String>) -> Volume {
    Volume {
        name: volume.to_owned(),
        image: Some(ImageVolumeSource {
            pull_policy,
            reference: Some(reference.to_owned()),
        }),
        ..Volume::default()
    }
}

pub(super) fn empty_dir(volume: &str, size: String, in_memory: bool) -> Volume {
    Volume {
        name: volume.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: in_memory.then(|| "Memory".to_owned()),
            size_limit: Some(Quantity(size)),
        }),
        ..Volume::default()
    }
}

pub(super) fn token() -> Volume {
    let token = ServiceAccountTokenProjection {
        audience: Some(agentrun_protocol::channel::AUDIENCE.to_owned()),
        expiration_seconds: Some(TOKEN_SECONDS),
        path: "token".to_owned(),
    };
    Volume {
        name: TOKEN_VOLUME.to_owned(),
        projected: Some(ProjectedVolumeSource {
            default_mode: Some(0o440),
            sources: Some(vec![VolumeProjection {
                service_account_token: Some(token),
                ..VolumeProjection::default()
            }]),
        }),
        ..Volume::default()
    }
}

pub(super) fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        read_only: Some(read_only),
        ..VolumeMount::default()
    }
}

pub(super) fn sub(mount: VolumeMount, path: String) -> VolumeMount {
    VolumeMount {
        sub_path: (!path.is_empty()).then_some(path),
        ..mount
    }
}
