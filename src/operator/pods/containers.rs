//! The containers of the sandbox Pod.

use super::input::{Injection, PodInput};
use super::{secrets, volumes};
use crate::policies::permits;
use agentrun_protocol::environment::{self, SandboxFacts};
use agentrun_protocol::executor::ExpectedMount;
use agentrun_protocol::probe::ProbeTargets;
use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, ResourceRequirements, SeccompProfile, SecurityContext, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Name of the trusted container.
pub(super) const RUNTIME: &str = "runtime";
/// Name of the untrusted container.
pub(super) const SANDBOX: &str = "sandbox";
/// Name of the init container of [`Injection::Init`].
pub(super) const INSTALLER: &str = "install";

/// What one container asks for and may have, in the API server's notation.
struct Bounds {
    cpu: (String, String),
    memory: (String, String),
    storage: (String, String),
}

/// The runtime is small and waits most of the time; its requests and memory are part of the design. Its disk holds the skills
/// that came over the channel and its own log.
pub(super) const RUNTIME_CPU: (&str, &str) = ("10m", "500m");
pub(super) const RUNTIME_MEMORY: (&str, &str) = ("32Mi", "64Mi");
pub(super) const RUNTIME_STORAGE: (&str, &str) = ("16Mi", "128Mi");
/// The untrusted container writes nothing to the node's disk but its log: its root is read-only, `/tmp` is memory.
const SANDBOX_STORAGE: (&str, &str) = ("16Mi", "128Mi");
/// What the sandbox asks for, unless its limit is lower.
const SANDBOX_CPU_REQUEST_MILLIS: u64 = 100;
const SANDBOX_MEMORY_REQUEST: u64 = 256 << 20;

/// The trusted container.
pub(super) fn runtime(input: &PodInput<'_>) -> Container {
    Container {
        name: RUNTIME.to_owned(),
        image: Some(input.platform.runtime_image.clone()),
        image_pull_policy: input.platform.image_pull_policy.clone(),
        command: Some(vec!["/agentrun-runtime".to_owned()]),
        env: Some(runtime_env(input)),
        resources: Some(fixed(RUNTIME_CPU, RUNTIME_MEMORY, RUNTIME_STORAGE)),
        security_context: Some(security()),
        // Its last words name what is wrong with the installation; user code never runs here.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(volumes::runtime_mounts(input)),
        ..Container::default()
    }
}

/// The untrusted container: the user's image with our executor as its first process.
pub(super) fn sandbox(input: &PodInput<'_>) -> Container {
    let env = secrets::env(&input.sandbox.secrets);
    Container {
        name: SANDBOX.to_owned(),
        image: Some(input.sandbox.image.clone()),
        image_pull_policy: input.platform.image_pull_policy.clone(),
        command: Some(vec![format!("{}/agentrun-sandbox", volumes::EXECUTOR)]),
        env: (!env.is_empty()).then_some(env),
        resources: Some(sandbox_bounds(input).into()),
        security_context: Some(security()),
        volume_mounts: Some(volumes::sandbox_mounts(input)),
        ..Container::default()
    }
}

/// Copies the executor where images cannot be mounted.
pub(super) fn installer(input: &PodInput<'_>) -> Option<Container> {
    if input.platform.injection == Injection::Image {
        return None;
    }
    let command = ["/agentrun-sandbox", "install", volumes::EXECUTOR].map(str::to_owned);
    Some(Container {
        name: INSTALLER.to_owned(),
        image: Some(input.platform.runtime_image.clone()),
        image_pull_policy: input.platform.image_pull_policy.clone(),
        command: Some(command.to_vec()),
        resources: Some(fixed(RUNTIME_CPU, RUNTIME_MEMORY, RUNTIME_STORAGE)),
        security_context: Some(security()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(volumes::installer_mounts()),
        ..Container::default()
    })
}

/// What Pod Security `restricted` asks of every container, and a read-only root besides.
pub(super) fn security() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            add: None,
            drop: Some(vec!["ALL".to_owned()]),
        }),
        privileged: Some(false),
        read_only_root_filesystem: Some(true),
        run_as_non_root: Some(true),
        seccomp_profile: Some(seccomp()),
        ..SecurityContext::default()
    }
}

pub(super) fn seccomp() -> SeccompProfile {
    SeccompProfile {
        type_: "RuntimeDefault".to_owned(),
        localhost_profile: None,
    }
}

fn runtime_env(input: &PodInput<'_>) -> Vec<EnvVar> {
    let platform = input.platform;
    let (closed, closed_if_there) = (
        &platform.probe_targets.closed,
        &platform.probe_targets.closed_if_there,
    );
    let probe = ProbeTargets {
        required: platform.isolation_required,
        closed: not_opened(input, closed),
        closed_if_there: not_opened(input, closed_if_there),
    };
    let facts = SandboxFacts {
        mounts: volumes::sandbox_mounts(input).iter().map(expected).collect(),
        landlock_required: input.sandbox.landlock_required,
        secrets: secrets::places(&input.sandbox.secrets),
        image: input.sandbox.image.clone(),
        volume: volume_words(&input.claim.class),
    };
    let variable = |name: &str, value: String| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        value_from: None,
    };
    vec![
        variable(environment::GATEWAY, platform.gateway_address.clone()),
        variable(environment::GATEWAY_CA, platform.gateway_ca.clone()),
        variable(environment::PROBE, json(&probe)),
        variable(environment::SANDBOX, json(&facts)),
        variable(environment::RUNTIME_DIGEST, platform.runtime_digest.clone()),
    ]
}

/// A target that this Pod's own egress opens says nothing about its isolation.
fn not_opened(input: &PodInput<'_>, targets: &[SocketAddr]) -> Vec<SocketAddr> {
    let opened = |target: &&SocketAddr| permits(&input.sandbox.egress, &input.platform.denied, **target);
    targets.iter().filter(|target| !opened(target)).copied().collect()
}

fn expected(mount: &VolumeMount) -> ExpectedMount {
    ExpectedMount {
        path: mount.mount_path.clone(),
        read_only: mount.read_only == Some(true),
    }
}

fn volume_words(class: &str) -> String {
    match class {
        "" => "claim of the default storage class".to_owned(),
        class => format!("claim of storage class {class}"),
    }
}

/// Both types are plain structs with string keys, which always have a JSON form.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn sandbox_bounds(input: &PodInput<'_>) -> Bounds {
    let (cpu, memory) = (input.sandbox.cpu_millis, input.sandbox.memory_bytes);
    Bounds {
        cpu: (
            format!("{}m", cpu.min(SANDBOX_CPU_REQUEST_MILLIS)),
            format!("{cpu}m"),
        ),
        memory: (
            volumes::bytes_text(memory.min(SANDBOX_MEMORY_REQUEST)),
            volumes::bytes_text(memory),
        ),
        storage: (SANDBOX_STORAGE.0.to_owned(), SANDBOX_STORAGE.1.to_owned()),
    }
}

/// Requests and limits of a container of ours.
pub(super) fn fixed(cpu: (&str, &str), memory: (&str, &str), storage: (&str, &str)) -> ResourceRequirements {
    let owned = |(request, limit): (&str, &str)| (request.to_owned(), limit.to_owned());
    Bounds {
        cpu: owned(cpu),
        memory: owned(memory),
        storage: owned(storage),
    }
    .into()
}

impl From<Bounds> for ResourceRequirements {
    fn from(Bounds { cpu, memory, storage }: Bounds) -> Self {
        let list = |cpu, memory, storage| {
            Some(BTreeMap::from([
                ("cpu".to_owned(), Quantity(cpu)),
                ("memory".to_owned(), Quantity(memory)),
                ("ephemeral-storage".to_owned(), Quantity(storage)),
            ]))
        };
        ResourceRequirements {
            claims: None,
            requests: list(cpu.0, memory.0, storage.0),
            limits: list(cpu.1, memory.1, storage.1),
        }
    }
}
