//! The Pod that reads a skill which is a mount, as locked down as a sandbox: the runtime's container alone, no user code.

use super::build::{no_dns, pod_security};
use super::containers::{RUNTIME, RUNTIME_CPU, RUNTIME_MEMORY, RUNTIME_STORAGE, fixed, security};
use super::volumes::{TOKEN_DIR, TOKEN_VOLUME, claim, image, mount, sub, token};
use super::{Platform, SkillSource};
use agentrun_api::ReadyReason;
use agentrun_api::names::labels;
use agentrun_api::names::objects::SANDBOX_SERVICE_ACCOUNT;
use agentrun_core::skill::inspect::{Failure, InspectionPod};
use agentrun_protocol::work::AttemptId;
use agentrun_protocol::{environment, inspection};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, EnvVar, Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt as _;
use std::collections::BTreeMap;
use std::time::Duration;

/// Seconds after which the Pod ends, whatever it waits for: an image of 512 MiB is pulled in less.
const DEADLINE_SECONDS: i64 = 300;
/// How long the kubelet may try to pull an image before that is told.
const PULL_GRACE: Duration = Duration::from_secs(20);
const SKILL_VOLUME: &str = "skill";

/// The skill to read.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// Namespace of the Skill.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// Its generation.
    pub generation: i64,
    /// Where its files are; an image or a claim.
    pub source: SkillSource,
}

impl Subject<'_> {
    /// Name of the Pod that reads this generation.
    pub fn pod_name(&self) -> String {
        format!(
            "skill-{}",
            agentrun_core::names::h(20, &[self.uid, &self.generation.to_string()])
        )
    }
}

/// Builds the Pod; nothing for a skill that is no mount.
pub fn inspection_pod(subject: &Subject<'_>, platform: &Platform) -> Option<Pod> {
    let (volume, skill) = match &subject.source {
        SkillSource::Channel => return None,
        SkillSource::Image { reference } => (
            image(SKILL_VOLUME, reference, platform.image_pull_policy.clone()),
            mount(SKILL_VOLUME, inspection::FOLDER, true),
        ),
        SkillSource::Claim {
            claim: name,
            sub_path,
        } => (
            claim(SKILL_VOLUME, name, true),
            sub(mount(SKILL_VOLUME, inspection::FOLDER, true), sub_path.clone()),
        ),
    };
    let container = Container {
        name: RUNTIME.to_owned(),
        image: Some(platform.runtime_image.clone()),
        image_pull_policy: platform.image_pull_policy.clone(),
        command: Some(vec![
            "/agentrun-runtime".to_owned(),
            inspection::COMMAND.to_owned(),
        ]),
        env: Some(variables(subject, platform)),
        resources: Some(fixed(RUNTIME_CPU, RUNTIME_MEMORY, RUNTIME_STORAGE)),
        security_context: Some(security()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        volume_mounts: Some(vec![skill, mount(TOKEN_VOLUME, TOKEN_DIR, true)]),
        ..Container::default()
    };
    Some(Pod {
        metadata: metadata(subject),
        spec: Some(PodSpec {
            active_deadline_seconds: Some(DEADLINE_SECONDS),
            automount_service_account_token: Some(false),
            containers: vec![container],
            dns_config: Some(no_dns()),
            dns_policy: Some("None".to_owned()),
            enable_service_links: Some(false),
            restart_policy: Some("Never".to_owned()),
            security_context: Some(pod_security(platform.sandbox_uid)),
            service_account_name: Some(SANDBOX_SERVICE_ACCOUNT.to_owned()),
            share_process_namespace: Some(false),
            termination_grace_period_seconds: Some(0),
            volumes: Some(vec![volume, token()]),
            ..PodSpec::default()
        }),
        status: None,
    })
}

fn metadata(subject: &Subject<'_>) -> ObjectMeta {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    ObjectMeta {
        name: Some(subject.pod_name()),
        namespace: Some(subject.namespace.to_owned()),
        labels: Some(BTreeMap::from([
            label(labels::MANAGED_BY, labels::MANAGED_BY_VALUE),
            label(labels::SKILL_UID, subject.uid),
            label(labels::EGRESS, &crate::policies::egress_hash(&[])),
        ])),
        annotations: Some(BTreeMap::from([label(labels::SKILL, subject.name)])),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/{}", agentrun_api::GROUP, agentrun_api::VERSION),
            kind: "Skill".to_owned(),
            name: subject.name.to_owned(),
            uid: subject.uid.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]),
        ..ObjectMeta::default()
    }
}

fn variables(subject: &Subject<'_>, platform: &Platform) -> Vec<EnvVar> {
    let id = AttemptId {
        uid: subject.uid.to_owned(),
        attempt: i32::try_from(subject.generation).unwrap_or(i32::MAX),
    };
    let variable = |name: &str, value: String| EnvVar {
        name: name.to_owned(),
        value: Some(value),
        value_from: None,
    };
    vec![
        variable(environment::GATEWAY, platform.gateway_address.clone()),
        variable(environment::GATEWAY_CA, platform.gateway_ca.clone()),
        variable(environment::RUNTIME_DIGEST, platform.runtime_digest.clone()),
        // A plain struct of a string and a number always has a JSON form.
        variable(
            inspection::VARIABLE,
            serde_json::to_string(&id).unwrap_or_default(),
        ),
    ]
}

/// Reads such a Pod.
pub fn read_inspection(pod: &Pod, now: Timestamp) -> InspectionPod {
    let created = pod
        .metadata
        .creation_timestamp
        .as_ref()
        .map_or(now, |time| time.0);
    let status = pod.status.clone().unwrap_or_default();
    InspectionPod {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        created,
        deleting: pod.metadata.deletion_timestamp.is_some(),
        failure: ended(&status).or_else(|| stuck(&status).filter(|_| created + PULL_GRACE <= now)),
    }
}

/// It has ended. Its report may still be on its way into the status, which then says so and comes first.
fn ended(status: &PodStatus) -> Option<Failure> {
    let failed = status.phase.as_deref() == Some("Failed");
    let terminated = containers(status).find_map(|container| container.state.as_ref()?.terminated.as_ref());
    let words = terminated.and_then(|end| end.message.as_deref()).map(str::trim);
    let own = status.message.as_deref().or(status.reason.as_deref());
    failed.then(|| Failure {
        reason: ReadyReason::Pending,
        message: format!(
            "the Pod that reads the skill ended without a report: {}",
            words
                .filter(|words| !words.is_empty())
                .or(own)
                .unwrap_or("its log says why")
        ),
    })
}

/// The kubelet or the scheduler says why it does not start.
fn stuck(status: &PodStatus) -> Option<Failure> {
    let waiting = containers(status).find_map(|container| container.state.as_ref()?.waiting.as_ref());
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref());
    let message = waiting.and_then(|waiting| waiting.message.clone());
    let found = match reason {
        Some("ErrImagePull" | "ImagePullBackOff" | "InvalidImageName" | "ErrImageNeverPull") => {
            (ReadyReason::ImagePullFailed, message)
        }
        Some("CreateContainerConfigError" | "CreateContainerError") => (ReadyReason::Pending, message),
        _ => {
            let mut conditions = status.conditions.iter().flatten();
            let unscheduled = conditions
                .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
            (ReadyReason::Pending, unscheduled.message.clone())
        }
    };
    Some(Failure {
        reason: found.0,
        message: found.1.or_else(|| reason.map(str::to_owned)).unwrap_or_default(),
    })
}

fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.container_statuses.iter().flatten()
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
