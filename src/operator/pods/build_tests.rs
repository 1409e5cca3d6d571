use super::super::fixtures::{input, platform, sandbox};
use super::super::{FileClaim, Injection, Platform, ResolvedSandbox, Skill, SkillSource};
use super::*;
use agentrun_api::{EgressRule, EnvVar, SecretItem, SecretUse};
use agentrun_protocol::environment::{self, SandboxFacts};
use agentrun_protocol::probe::ProbeTargets;
use k8s_openapi::api::core::v1::{Container, Volume};
use std::path::Path;

fn item(key: &str, path: Option<&str>, env: Option<&str>) -> SecretItem {
    SecretItem {
        key: key.to_owned(),
        path: path.map(str::to_owned),
        env: env.map(str::to_owned),
    }
}

/// A sandbox that uses every field.
fn full_sandbox() -> ResolvedSandbox {
    ResolvedSandbox {
        runtime_class: Some("gvisor".to_owned()),
        host_users: Some(false),
        egress: vec![EgressRule {
            name: "db".to_owned(),
            cidr: "192.0.2.5/32".to_owned(),
            port: 5432,
            protocol: None,
        }],
        env: vec![EnvVar {
            name: "TZ".to_owned(),
            value: "UTC".to_owned(),
        }],
        secrets: vec![
            SecretUse {
                name: "whole".to_owned(),
                items: vec![],
                mount_path: None,
            },
            SecretUse {
                name: "mixed".to_owned(),
                items: vec![
                    item("a", Some("file-a"), None),
                    item("b", None, Some("B_TOKEN")),
                    item("c", None, None),
                ],
                mount_path: Some("/run/secrets/of-mine/".to_owned()),
            },
            SecretUse {
                name: "env-only".to_owned(),
                items: vec![item("d", None, Some("D_TOKEN"))],
                mount_path: None,
            },
        ],
        keep_on_failure: Duration::from_mins(15),
        ..sandbox()
    }
}

fn full(injection: Injection) -> Pod {
    let (sandbox, platform) = (full_sandbox(), platform(injection));
    let skill = |name: &str, source| Skill {
        name: name.to_owned(),
        source,
    };
    let claim = |claim: &str, sub_path: &str| SkillSource::Claim {
        claim: claim.to_owned(),
        sub_path: sub_path.to_owned(),
    };
    let file_claim = |name: &str, claim: &str, sub_path: &str| FileClaim {
        name: name.to_owned(),
        claim: claim.to_owned(),
        sub_path: sub_path.to_owned(),
    };
    build_pod(&PodInput {
        skills: vec![
            skill("over-channel", SkillSource::Channel),
            skill(
                "from-image",
                SkillSource::Image {
                    reference: "registry.example.com/skill:1".to_owned(),
                },
            ),
            skill("from-claim", claim("library", "skills/x")),
        ],
        file_claims: vec![
            file_claim("data", "library", ""),
            file_claim("own", "ud-claim", "users/default/threads/earlier/user-data"),
        ],
        ..input(&sandbox, &platform)
    })
}

fn plain() -> Pod {
    build_pod(&input(&sandbox(), &platform(Injection::Image)))
}

fn pods() -> Vec<Pod> {
    vec![plain(), full(Injection::Image), full(Injection::Init)]
}

fn spec_of(pod: &Pod) -> &PodSpec {
    pod.spec.as_ref().unwrap()
}

fn containers_of(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = spec_of(pod);
    spec.containers
        .iter()
        .chain(spec.init_containers.iter().flatten())
}

fn container<'a>(pod: &'a Pod, name: &str) -> &'a Container {
    containers_of(pod)
        .find(|container| container.name == name)
        .unwrap()
}

fn facts(pod: &Pod) -> SandboxFacts {
    let env = container(pod, "runtime").env.as_ref().unwrap();
    let text = env
        .iter()
        .find(|variable| variable.name == environment::SANDBOX)
        .unwrap();
    serde_json::from_str(text.value.as_ref().unwrap()).unwrap()
}

// F073
#[test]
fn no_mount_has_its_source_where_user_code_can_exchange_it() {
    for pod in pods() {
        let mounts = |name: &str| container(&pod, name).volume_mounts.clone().unwrap_or_default();
        let all = [mounts("runtime"), mounts("sandbox")].concat();
        for writable in mounts("sandbox")
            .iter()
            .filter(|mount| mount.read_only != Some(true))
        {
            let folder = writable.sub_path.clone().unwrap_or_default();
            let exchangeable = all.iter().find(|mount| {
                let source = mount.sub_path.clone().unwrap_or_default();
                let below = Path::new(&source).strip_prefix(&folder);
                mount.name == writable.name && below.is_ok_and(|rest| rest.components().next().is_some())
            });
            assert_eq!(exchangeable, None, "user code can write {folder:?}");
        }
    }
}

#[test]
fn a_plain_pod_reads_as_the_design_says() {
    insta::assert_yaml_snapshot!(plain());
}

#[test]
fn a_pod_with_everything_reads_as_the_design_says() {
    insta::assert_yaml_snapshot!(full(Injection::Image));
}

#[test]
fn without_image_volumes_an_init_container_copies_the_executor() {
    let pod = full(Injection::Init);
    insta::assert_yaml_snapshot!(spec_of(&pod).init_containers);
    let executor = spec_of(&pod)
        .volumes
        .as_ref()
        .unwrap()
        .iter()
        .find(|volume| volume.name == "executor")
        .unwrap();
    assert!(executor.empty_dir.is_some() && executor.image.is_none());
}

// F100, F081
#[test]
fn every_container_and_every_empty_dir_is_bounded() {
    for pod in pods() {
        for container in containers_of(&pod) {
            let resources = container.resources.as_ref().unwrap();
            for list in [&resources.requests, &resources.limits] {
                let keys: Vec<_> = list.as_ref().unwrap().keys().cloned().collect();
                assert_eq!(keys, ["cpu", "ephemeral-storage", "memory"], "{}", container.name);
            }
        }
        let unbounded = |volume: &&Volume| {
            volume
                .empty_dir
                .as_ref()
                .is_some_and(|dir| dir.size_limit.is_none())
        };
        assert_eq!(spec_of(&pod).volumes.iter().flatten().find(unbounded), None);
    }
}

// F074, F075, F106, F110
#[test]
fn no_template_loosens_a_security_field() {
    for pod in pods() {
        let spec = spec_of(&pod);
        assert!(
            spec.volumes
                .iter()
                .flatten()
                .all(|volume| volume.host_path.is_none())
        );
        assert_eq!(
            (spec.host_network, spec.host_pid, spec.host_ipc),
            (None, None, None)
        );
        assert_eq!(spec.automount_service_account_token, Some(false));
        assert_eq!(spec.share_process_namespace, Some(false));
        assert_eq!(spec.enable_service_links, Some(false));
        assert_eq!(spec.node_name, None);
        assert_eq!(spec.priority_class_name, None);
        assert_eq!(spec.preemption_policy, None);
        assert_eq!(spec.restart_policy.as_deref(), Some("Never"));
        assert_eq!(spec.dns_policy.as_deref(), Some("None"));
        assert_eq!(
            spec.dns_config.as_ref().unwrap().nameservers.as_ref().unwrap(),
            &["127.0.0.1"]
        );
        let security = spec.security_context.as_ref().unwrap();
        assert_eq!(security.run_as_non_root, Some(true));
        assert_eq!(
            (security.run_as_user, security.run_as_group, security.fs_group),
            (Some(65532), Some(65532), Some(65532))
        );
        assert_eq!(security.fs_group_change_policy.as_deref(), Some("OnRootMismatch"));
        assert_eq!(security.seccomp_profile.as_ref().unwrap().type_, "RuntimeDefault");
        for container in containers_of(&pod) {
            let security = container.security_context.as_ref().unwrap();
            assert_eq!(security.allow_privilege_escalation, Some(false));
            assert_eq!(security.read_only_root_filesystem, Some(true));
            assert_eq!(security.run_as_non_root, Some(true));
            assert_eq!(security.run_as_user, None);
            assert_eq!(
                security.capabilities.as_ref().unwrap().drop.as_ref().unwrap(),
                &["ALL"]
            );
            assert_eq!(security.capabilities.as_ref().unwrap().add, None);
            assert!(container.ports.is_none() && container.lifecycle.is_none());
        }
    }
}

// F106
#[test]
fn the_platforms_credential_is_in_the_runtime_container_alone() {
    for pod in pods() {
        let has_token = |container: &&Container| {
            container
                .volume_mounts
                .iter()
                .flatten()
                .any(|mount| mount.name == "token")
        };
        let holders: Vec<_> = containers_of(&pod)
            .filter(has_token)
            .map(|container| &*container.name)
            .collect();
        assert_eq!(holders, ["runtime"]);
    }
}

#[test]
fn secrets_are_in_the_sandbox_container_alone() {
    let pod = full(Injection::Init);
    for container in containers_of(&pod).filter(|container| container.name != "sandbox") {
        assert!(
            container
                .volume_mounts
                .iter()
                .flatten()
                .all(|mount| !mount.name.starts_with("secret-"))
        );
        assert!(
            container
                .env
                .iter()
                .flatten()
                .all(|variable| variable.value_from.is_none())
        );
    }
    let env: Vec<_> = container(&pod, "sandbox")
        .env
        .iter()
        .flatten()
        .map(|variable| &*variable.name)
        .collect();
    assert_eq!(env, ["B_TOKEN", "D_TOKEN"]);
}

#[test]
fn the_sandbox_writes_to_workspace_outputs_and_tmp_alone() {
    for pod in pods() {
        let mounts = container(&pod, "sandbox").volume_mounts.as_ref().unwrap();
        let writable: Vec<_> = mounts
            .iter()
            .filter(|mount| mount.read_only != Some(true))
            .map(|mount| &*mount.mount_path)
            .collect();
        assert_eq!(
            writable,
            ["/mnt/user-data/workspace", "/mnt/user-data/outputs", "/tmp"]
        );
        assert!(
            mounts
                .iter()
                .all(|mount| !mount.sub_path.as_deref().unwrap_or_default().ends_with("/state"))
        );
    }
}

#[test]
fn a_sandbox_that_only_reads_writes_to_tmp_alone_and_the_executor_knows_it() {
    let (sandbox, platform) = (sandbox(), platform(Injection::Image));
    let pod = build_pod(&PodInput {
        read_only: true,
        ..input(&sandbox, &platform)
    });
    let mounts = container(&pod, "sandbox").volume_mounts.as_ref().unwrap();
    let writable = mounts.iter().filter(|mount| mount.read_only != Some(true));
    let writable: Vec<_> = writable.map(|mount| &*mount.mount_path).collect();
    assert_eq!(writable, ["/tmp"]);
    let told = facts(&pod).mounts;
    let told: Vec<_> = told.iter().filter(|mount| !mount.read_only).collect();
    assert_eq!(told.len(), 1);
}

#[test]
fn the_executor_is_told_exactly_the_mounts_that_it_has() {
    for pod in pods() {
        let mounts = container(&pod, "sandbox").volume_mounts.as_ref().unwrap();
        let told = facts(&pod).mounts;
        let told: Vec<_> = told.iter().map(|mount| (&*mount.path, mount.read_only)).collect();
        let real: Vec<_> = mounts
            .iter()
            .map(|mount| (&*mount.mount_path, mount.read_only == Some(true)))
            .collect();
        assert_eq!(told, real);
    }
}

#[test]
fn every_mount_has_its_volume_and_every_volume_its_mount() {
    for pod in pods() {
        let mut volumes: Vec<_> = spec_of(&pod)
            .volumes
            .iter()
            .flatten()
            .map(|volume| &*volume.name)
            .collect();
        let mounts = containers_of(&pod).flat_map(|container| container.volume_mounts.iter().flatten());
        let mut mounted: Vec<_> = mounts.map(|mount| &*mount.name).collect();
        volumes.sort_unstable();
        mounted.sort_unstable();
        mounted.dedup();
        assert_eq!(volumes, mounted);
    }
}

#[test]
fn requests_are_never_above_limits_and_tmp_is_part_of_the_memory() {
    let small = ResolvedSandbox {
        cpu_millis: 50,
        memory_bytes: 64 << 20,
        ..sandbox()
    };
    let pod = build_pod(&input(&small, &platform(Injection::Image)));
    let resources = container(&pod, "sandbox").resources.as_ref().unwrap();
    assert_eq!(
        resources.requests,
        resources.limits.clone().map(|mut limits| {
            limits.insert(
                "ephemeral-storage".to_owned(),
                resources.requests.as_ref().unwrap()["ephemeral-storage"].clone(),
            );
            limits
        })
    );
    let tmp = spec_of(&pod)
        .volumes
        .iter()
        .flatten()
        .find(|volume| volume.name == "sandbox-tmp")
        .unwrap();
    let tmp = tmp.empty_dir.as_ref().unwrap();
    assert_eq!(tmp.medium.as_deref(), Some("Memory"));
    assert_eq!(tmp.size_limit.as_ref().unwrap().0, "32Mi");
}

#[test]
fn the_pod_lives_as_long_as_start_work_keeping_and_two_minutes() {
    assert_eq!(spec_of(&plain()).active_deadline_seconds, Some(600 + 1800 + 120));
    assert_eq!(
        spec_of(&full(Injection::Image)).active_deadline_seconds,
        Some(600 + 1800 + 900 + 120)
    );
}

#[test]
fn only_claims_of_one_node_bind_pods_to_each_other() {
    let (sandbox, platform) = (sandbox(), platform(Injection::Image));
    let mut shared = input(&sandbox, &platform);
    shared.claim.rwx = true;
    assert_eq!(spec_of(&build_pod(&shared)).affinity, None);
    assert!(spec_of(&plain()).affinity.is_some());
}

#[test]
fn a_deleted_run_takes_its_pods_along_without_being_held_by_them() {
    let pod = plain();
    let owners = pod.metadata.owner_references.unwrap();
    assert_eq!(owners.len(), 1);
    assert_eq!(
        (owners[0].controller, owners[0].block_owner_deletion),
        (Some(true), Some(false))
    );
    assert_eq!(
        (&*owners[0].kind, &*owners[0].api_version),
        ("AgentRun", "agentrun.dev/v1alpha1")
    );
}

fn probe(sandbox: &ResolvedSandbox, required: bool) -> ProbeTargets {
    let platform = Platform {
        isolation_required: required,
        ..platform(Injection::Image)
    };
    let pod = build_pod(&input(sandbox, &platform));
    let env = container(&pod, "runtime").env.clone().unwrap();
    let text = env
        .into_iter()
        .find(|variable| variable.name == environment::PROBE)
        .unwrap()
        .value
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn isolation_is_required_by_the_installation_alone() {
    assert!(probe(&sandbox(), true).required);
    assert!(!probe(&sandbox(), false).required);
}

#[test]
fn what_the_egress_opens_is_no_target_of_the_probe() {
    let any = EgressRule {
        name: "any".to_owned(),
        cidr: "0.0.0.0/0".to_owned(),
        port: 443,
        protocol: None,
    };
    let targets = probe(
        &ResolvedSandbox {
            egress: vec![any],
            ..sandbox()
        },
        true,
    );
    assert_eq!(targets.closed, ["10.96.0.1:443".parse().unwrap()]);
    assert_eq!(targets.closed_if_there, ["169.254.169.254:80".parse().unwrap()]);
}

#[test]
fn no_container_of_ours_is_terminated_by_words_of_user_code() {
    let pod = full(Injection::Init);
    assert_eq!(container(&pod, "sandbox").termination_message_policy, None);
    assert_eq!(
        container(&pod, "runtime").termination_message_policy.as_deref(),
        Some("FallbackToLogsOnError")
    );
}
