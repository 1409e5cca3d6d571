//! The sandbox Pod of one attempt. Security fields are the same whatever the template says.

use super::input::PodInput;
use super::{containers, volumes};
use agentrun_api::names::labels;
use agentrun_api::names::objects::SANDBOX_SERVICE_ACCOUNT;
use k8s_openapi::api::core::v1::{
    Affinity, Pod, PodAffinity, PodAffinityTerm, PodDNSConfig, PodSecurityContext, PodSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use std::collections::BTreeMap;
use std::time::Duration;

/// Annotation: name of the SubTask that the Pod was made for, for people.
pub const SUBTASK: &str = "agentrun.dev/subtask";

/// What a Pod may live beyond start, work and keeping: time to post the result.
const SLACK: Duration = Duration::from_mins(2);
/// Seconds between SIGTERM and SIGKILL: the runtime cancels and posts within them.
const GRACE_SECONDS: i64 = 10;

/// Builds the Pod.
pub fn build_pod(input: &PodInput<'_>) -> Pod {
    Pod {
        metadata: metadata(input),
        spec: Some(spec(input)),
        status: None,
    }
}

fn metadata(input: &PodInput<'_>) -> ObjectMeta {
    let pairs = |pairs: &[(&str, &str)]| {
        let owned = pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Some(owned.collect::<BTreeMap<_, _>>())
    };
    ObjectMeta {
        name: Some(input.name.clone()),
        namespace: Some(input.namespace.clone()),
        labels: pairs(&[
            (labels::MANAGED_BY, labels::MANAGED_BY_VALUE),
            (labels::RUN_UID, &input.run_uid),
            (labels::SUBTASK_UID, &input.subtask_uid),
            (labels::MADE_FOR, &input.subtask_uid),
            (labels::CLAIM, &input.claim.uid),
            (
                labels::EGRESS,
                &crate::policies::egress_hash(&input.sandbox.egress),
            ),
        ]),
        annotations: pairs(&[
            (labels::ATTEMPT, &input.attempt.to_string()),
            (SUBTASK, &input.subtask_name),
        ]),
        owner_references: Some(vec![OwnerReference {
            api_version: format!("{}/{}", agentrun_api::GROUP, agentrun_api::VERSION),
            kind: "AgentRun".to_owned(),
            name: input.run_name.clone(),
            uid: input.run_uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(false),
        }]),
        ..ObjectMeta::default()
    }
}

fn spec(input: &PodInput<'_>) -> PodSpec {
    PodSpec {
        active_deadline_seconds: Some(active_deadline(input)),
        affinity: (!input.claim.rwx).then(|| beside_the_claim(&input.claim.uid)),
        automount_service_account_token: Some(false),
        containers: vec![containers::runtime(input), containers::sandbox(input)],
        dns_config: Some(no_dns()),
        dns_policy: Some("None".to_owned()),
        enable_service_links: Some(false),
        host_users: input.sandbox.host_users,
        init_containers: containers::installer(input).map(|installer| vec![installer]),
        restart_policy: Some("Never".to_owned()),
        runtime_class_name: input.sandbox.runtime_class.clone(),
        security_context: Some(pod_security(input.platform.sandbox_uid)),
        service_account_name: Some(SANDBOX_SERVICE_ACCOUNT.to_owned()),
        share_process_namespace: Some(false),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        volumes: Some(volumes::volumes(input)),
        ..PodSpec::default()
    }
}

/// `None` without a nameserver is refused; this one answers to nobody.
pub(super) fn no_dns() -> PodDNSConfig {
    PodDNSConfig {
        nameservers: Some(vec!["127.0.0.1".to_owned()]),
        ..PodDNSConfig::default()
    }
}

pub(super) fn pod_security(uid: i64) -> PodSecurityContext {
    PodSecurityContext {
        fs_group: Some(uid),
        fs_group_change_policy: Some("OnRootMismatch".to_owned()),
        run_as_group: Some(uid),
        run_as_non_root: Some(true),
        run_as_user: Some(uid),
        seccomp_profile: Some(containers::seccomp()),
        ..PodSecurityContext::default()
    }
}

fn active_deadline(input: &PodInput<'_>) -> i64 {
    let life = input.timeouts.start + input.timeouts.attempt + input.sandbox.keep_on_failure + SLACK;
    i64::try_from(life.as_secs()).unwrap_or(i64::MAX)
}

/// Pods of a claim that one node holds go to that node. The scheduler lets the first one go anywhere, and a required
/// node name would dead-lock on a cordoned node.
fn beside_the_claim(claim_uid: &str) -> Affinity {
    let term = PodAffinityTerm {
        label_selector: Some(LabelSelector {
            match_labels: Some(BTreeMap::from([(labels::CLAIM.to_owned(), claim_uid.to_owned())])),
            match_expressions: None,
        }),
        topology_key: "kubernetes.io/hostname".to_owned(),
        ..PodAffinityTerm::default()
    };
    Affinity {
        pod_affinity: Some(PodAffinity {
            required_during_scheduling_ignored_during_execution: Some(vec![term]),
            preferred_during_scheduling_ignored_during_execution: None,
        }),
        ..Affinity::default()
    }
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
