//! Inputs that the Pod tests start from.

use super::{Claim, Injection, Platform, PodInput, ResolvedSandbox, Timeouts};
use crate::policies::Denied;
use agentrun_protocol::probe::ProbeTargets;
use std::time::Duration;

pub(crate) fn platform(injection: Injection) -> Platform {
    Platform {
        runtime_image: "registry.example.com/runtime@sha256:aa".to_owned(),
        runtime_digest: "sha256:aa".to_owned(),
        injection,
        sandbox_uid: 65532,
        gateway_address: "10.96.0.7:8443".to_owned(),
        gateway_ca: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned(),
        probe_targets: ProbeTargets {
            required: true,
            closed: vec!["10.96.0.1:443".parse().unwrap()],
            closed_if_there: vec![
                "169.254.169.254:80".parse().unwrap(),
                "192.0.2.1:443".parse().unwrap(),
            ],
        },
        denied: Denied::new(["10.96.0.1".parse().unwrap()], &[]),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        isolation_required: true,
    }
}

pub(crate) fn sandbox() -> ResolvedSandbox {
    ResolvedSandbox {
        image: "registry.example.com/python:3.13".to_owned(),
        cpu_millis: 2000,
        memory_bytes: 2 << 30,
        runtime_class: None,
        host_users: None,
        egress: vec![],
        env: vec![],
        secrets: vec![],
        landlock_required: true,
        keep_on_failure: Duration::ZERO,
    }
}

pub(crate) fn input<'a>(sandbox: &'a ResolvedSandbox, platform: &'a Platform) -> PodInput<'a> {
    PodInput {
        name: "grade-parse-abcdefghij-1".to_owned(),
        namespace: "school".to_owned(),
        run_name: "grade".to_owned(),
        run_uid: "11111111-1111-1111-1111-111111111111".to_owned(),
        subtask_name: "grade-parse-abcdefghij".to_owned(),
        subtask_uid: "22222222-2222-2222-2222-222222222222".to_owned(),
        attempt: 1,
        claim: Claim {
            name: "ud-claim".to_owned(),
            uid: "33333333-3333-3333-3333-333333333333".to_owned(),
            rwx: false,
            class: "standard".to_owned(),
        },
        folder: "users/default/threads/t1".to_owned(),
        sandbox,
        skills: vec![],
        file_claims: vec![],
        read_only: false,
        timeouts: Timeouts {
            start: Duration::from_mins(10),
            attempt: Duration::from_mins(30),
        },
        platform,
    }
}
