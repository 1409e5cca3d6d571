//! The Pod that finds out whether images can be mounted as volumes: it runs the executor from one.

use super::build::pod_security;
use super::containers::{fixed, security};
use super::volumes::{empty_dir, image, mount};
use crate::settings::PullPolicy;
use agentrun_api::names::labels;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::collections::BTreeMap;

/// Seconds after which the Pod is of no use to anybody, also when its operator is gone.
const DEADLINE_SECONDS: i64 = 120;

/// Builds the probe Pod. It succeeds when the executor, seen through an image volume, has copied itself to `/tmp`.
pub fn probe_pod(name: &str, uid: i64, runtime_image: &str, pull_policy: Option<PullPolicy>) -> Pod {
    let policy = pull_policy.map(|policy| policy.as_str().to_owned());
    let command = ["/probe/agentrun-sandbox", "install", "/tmp"]
        .map(str::to_owned)
        .to_vec();
    let container = Container {
        name: "probe".to_owned(),
        image: Some(runtime_image.to_owned()),
        image_pull_policy: policy.clone(),
        command: Some(command),
        resources: Some(fixed(("10m", "500m"), ("16Mi", "64Mi"), ("1Mi", "16Mi"))),
        security_context: Some(security()),
        volume_mounts: Some(vec![mount("probe", "/probe", true), mount("tmp", "/tmp", false)]),
        ..Container::default()
    };
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([(
                labels::MANAGED_BY.to_owned(),
                labels::MANAGED_BY_VALUE.to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            active_deadline_seconds: Some(DEADLINE_SECONDS),
            automount_service_account_token: Some(false),
            containers: vec![container],
            enable_service_links: Some(false),
            restart_policy: Some("Never".to_owned()),
            security_context: Some(pod_security(uid)),
            termination_grace_period_seconds: Some(0),
            volumes: Some(vec![
                image("probe", runtime_image, policy),
                empty_dir("tmp", "16Mi".to_owned(), true),
            ]),
            ..PodSpec::default()
        }),
        status: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_is_as_locked_down_as_a_sandbox() {
        insta::assert_yaml_snapshot!(probe_pod(
            "agentrun-injection-x",
            65532,
            "runtime@sha256:aa",
            Some(PullPolicy::Never)
        ));
    }
}
