//! What a sandbox Pod is made from: plain data, nothing left to look up.

use super::ResolvedSandbox;
use crate::policies::Denied;
use agentrun_protocol::probe::ProbeTargets;
use std::time::Duration;

/// One attempt's Pod.
#[derive(Clone, Debug)]
pub struct PodInput<'a> {
    /// Name of the Pod, `agentrun_core::names::pod_name`.
    pub name: String,
    /// Namespace of the run.
    pub namespace: String,
    /// Name of the AgentRun.
    pub run_name: String,
    /// UID of the AgentRun, the Pod's controller owner.
    pub run_uid: String,
    /// Name of the SubTask that the Pod is made for.
    pub subtask_name: String,
    /// Its UID.
    pub subtask_uid: String,
    /// Number of the attempt, from 1.
    pub attempt: i32,
    /// The user-data volume.
    pub claim: Claim,
    /// The thread's folder on the claim, `users/USER/threads/THREAD`, already percent-encoded.
    pub folder: String,
    /// What the sandbox is.
    pub sandbox: &'a ResolvedSandbox,
    /// Skills that it sees.
    pub skills: Vec<Skill>,
    /// Claims that the run's `files` are read from.
    pub file_claims: Vec<FileClaim>,
    /// Its untrusted container may write to no user data.
    pub read_only: bool,
    /// Bounds of its life.
    pub timeouts: Timeouts,
    /// What the installation knows.
    pub platform: &'a Platform,
}

/// A claim that is mounted as user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Name of the PersistentVolumeClaim.
    pub name: String,
    /// Its UID: the label by which Pods of one claim find each other.
    pub uid: String,
    /// Pods of several nodes may mount it.
    pub rwx: bool,
    /// Name of its StorageClass, for messages; empty for the cluster's default.
    pub class: String,
}

/// A further claim, read-only in the `runtime` container at `/mnt/sources/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileClaim {
    /// Folder name below `/mnt/sources`.
    pub name: String,
    /// Name of the PersistentVolumeClaim; the Pod's own claim is allowed.
    pub claim: String,
    /// Folder on it; its root when empty.
    pub sub_path: String,
}

/// A skill as the Pod sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Folder name below `/mnt/skills`.
    pub name: String,
    /// How its files come there.
    pub source: SkillSource,
}

/// How a skill's files come into the sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillSource {
    /// Over the channel, written by `runtime`.
    Channel,
    /// An image, mounted by the kubelet.
    Image {
        /// Reference of the image.
        reference: String,
    },
    /// A claim of the namespace.
    Claim {
        /// Name of the PersistentVolumeClaim.
        claim: String,
        /// Folder on it; its root when empty.
        sub_path: String,
    },
}

/// Bounds of a cold Pod's life; whole seconds count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the creation to the start of the work.
    pub start: Duration,
    /// Of the attempt.
    pub attempt: Duration,
}

/// How the executor comes into the untrusted container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// The runtime's image as a read-only volume.
    Image,
    /// An init container copies it.
    Init,
}

/// What the operator knows about its installation; a change makes another template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// The image with both static binaries.
    pub runtime_image: String,
    /// Its digest, `sha256:…`; the whole reference where it names none.
    pub runtime_digest: String,
    /// How the executor comes into the untrusted container.
    pub injection: Injection,
    /// UID, GID and fsGroup of both containers.
    pub sandbox_uid: i64,
    /// `IP:PORT` of the gateway's channel.
    pub gateway_address: String,
    /// PEM of the authority that signs the gateway's certificate (two during a rotation).
    pub gateway_ca: String,
    /// What the isolation probe tries.
    pub probe_targets: ProbeTargets,
    /// What no egress may open.
    pub denied: Denied,
    /// `imagePullPolicy` of every container; the API server's default when unset.
    pub image_pull_policy: Option<String>,
    /// Work is refused where the network is not isolated.
    pub isolation_required: bool,
}
