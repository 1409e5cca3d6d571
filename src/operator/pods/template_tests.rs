use super::*;
use agentrun_api::{IsolationSpec, SecretItem};

fn spec(image: Option<&str>) -> SandboxSpec {
    SandboxSpec {
        image: image.map(str::to_owned),
        ..SandboxSpec::default()
    }
}

fn pool(image: &str) -> SandboxTemplate {
    SandboxTemplate {
        image: Some(image.to_owned()),
        ..SandboxTemplate::default()
    }
}

fn memory(text: &str) -> Resources {
    Resources {
        memory: Some(text.into()),
        cpu: None,
    }
}

fn layers<'a>() -> Layers<'a> {
    Layers {
        default_image: "default",
        ..Layers::default()
    }
}

#[test]
fn the_image_comes_from_the_highest_layer_that_names_one() {
    let (task, agent, run, pool) = (
        spec(Some("task")),
        spec(Some("agent")),
        spec(Some("run")),
        pool("pool"),
    );
    let function = FunctionNeeds {
        image: Some("function"),
        memory_bytes: 0,
    };
    let mut layers = Layers {
        task: Some(&task),
        function: Some(function),
        agent: Some(&agent),
        run: Some(&run),
        pool: Some(&pool),
        ..layers()
    };
    let image = |layers: &Layers<'_>| resolve(layers).unwrap().image;
    assert_eq!(image(&layers), "task");
    layers.task = None;
    assert_eq!(image(&layers), "function");
    layers.function = None;
    assert_eq!(image(&layers), "agent");
    layers.agent = None;
    assert_eq!(image(&layers), "run");
    layers.run = None;
    assert_eq!(image(&layers), "pool");
    layers.pool = None;
    assert_eq!(image(&layers), "default");
}

#[test]
fn below_a_layer_that_names_a_pool_only_the_pool_shapes_the_sandbox() {
    let task = SandboxSpec {
        pool: Some("node".to_owned()),
        ..SandboxSpec::default()
    };
    let env = EnvVar {
        name: "TZ".to_owned(),
        value: "UTC".to_owned(),
    };
    let run = SandboxSpec {
        runtime_class_name: Some("gvisor".to_owned()),
        resources: Some(memory("8Gi")),
        env: Some(vec![env.clone()]),
        ..spec(Some("run"))
    };
    let pool = pool("pool");
    let layers = Layers {
        task: Some(&task),
        run: Some(&run),
        pool: Some(&pool),
        ..layers()
    };
    assert_eq!(pool_name(&layers), Some("node"));
    let resolved = resolve(&layers).unwrap();
    assert_eq!(
        (&*resolved.image, resolved.runtime_class, resolved.memory_bytes),
        ("pool", None, DEFAULT_MEMORY)
    );
    assert_eq!(resolved.env, [env]);
}

#[test]
fn runtime_class_and_user_namespace_of_a_pool_reach_its_sandboxes() {
    let pool = SandboxTemplate {
        runtime_class_name: Some("gvisor".to_owned()),
        host_users: Some(false),
        ..pool("pool")
    };
    let layers = Layers {
        pool: Some(&pool),
        ..layers()
    };
    let resolved = resolve(&layers).unwrap();
    assert_eq!(resolved.runtime_class.as_deref(), Some("gvisor"));
    assert_eq!(resolved.host_users, Some(false));
}

// F108
#[test]
fn an_empty_egress_list_closes_what_a_lower_layer_opened() {
    let rule = EgressRule {
        name: "db".to_owned(),
        cidr: "192.0.2.5/32".to_owned(),
        port: 1,
        protocol: None,
    };
    let task = SandboxSpec {
        egress: Some(vec![]),
        ..SandboxSpec::default()
    };
    let run = SandboxSpec {
        egress: Some(vec![rule.clone()]),
        ..SandboxSpec::default()
    };
    let of_run = Layers {
        run: Some(&run),
        ..layers()
    };
    assert_eq!(resolve(&of_run).unwrap().egress, [rule]);
    assert_eq!(
        resolve(&Layers {
            task: Some(&task),
            ..of_run
        })
        .unwrap()
        .egress,
        []
    );
}

#[test]
fn a_function_gets_the_memory_that_it_declares_unless_the_task_lowers_it() {
    let function = FunctionNeeds {
        image: None,
        memory_bytes: 4 << 30,
    };
    let declared = Layers {
        function: Some(function),
        ..layers()
    };
    assert_eq!(resolve(&declared).unwrap().memory_bytes, 4 << 30);
    let small = FunctionNeeds {
        image: None,
        memory_bytes: 1 << 20,
    };
    assert_eq!(
        resolve(&Layers {
            function: Some(small),
            ..layers()
        })
        .unwrap()
        .memory_bytes,
        DEFAULT_MEMORY
    );
    let own = memory("128Mi");
    assert_eq!(
        resolve(&Layers {
            resources: Some(&own),
            ..declared
        })
        .unwrap()
        .memory_bytes,
        128 << 20
    );
}

#[test]
fn resources_are_merged_field_by_field() {
    let task = SandboxSpec {
        resources: Some(memory("1Gi")),
        ..SandboxSpec::default()
    };
    let cpu = Resources {
        cpu: Some("500m".into()),
        memory: Some("9Gi".into()),
    };
    let run = SandboxSpec {
        resources: Some(cpu),
        ..SandboxSpec::default()
    };
    let resolved = resolve(&Layers {
        task: Some(&task),
        run: Some(&run),
        ..layers()
    })
    .unwrap();
    assert_eq!((resolved.memory_bytes, resolved.cpu_millis), (1 << 30, 500));
}

#[test]
fn landlock_is_required_unless_the_pool_says_otherwise() {
    assert!(resolve(&layers()).unwrap().landlock_required);
    let isolation = Some(IsolationSpec {
        landlock: Some(Landlock::BestEffort),
    });
    let pool = SandboxTemplate {
        isolation,
        ..pool("p")
    };
    assert!(
        !resolve(&Layers {
            pool: Some(&pool),
            ..layers()
        })
        .unwrap()
        .landlock_required
    );
}

#[test]
fn mistakes_name_their_field() {
    let error = |resources: Resources, keep: &str| {
        let run = SandboxSpec {
            resources: Some(resources),
            keep_on_failure: Some(keep.into()),
            ..SandboxSpec::default()
        };
        resolve(&Layers {
            run: Some(&run),
            ..layers()
        })
        .unwrap_err()
        .to_string()
    };
    assert!(error(memory("lots"), "1m").starts_with("resources.memory: `lots`"));
    assert!(error(memory("0"), "1m").starts_with("resources.memory: 0"));
    assert!(error(Resources::default(), "soon").starts_with("keepOnFailure: "));
}

fn secret(name: &str, mount_path: Option<&str>) -> SecretUse {
    SecretUse {
        name: name.to_owned(),
        items: vec![],
        mount_path: mount_path.map(str::to_owned),
    }
}

fn with_secrets(secrets: Vec<SecretUse>) -> Result<ResolvedSandbox, TemplateError> {
    let run = SandboxSpec {
        secrets: Some(secrets),
        ..SandboxSpec::default()
    };
    resolve(&Layers {
        run: Some(&run),
        ..layers()
    })
}

#[test]
fn a_secret_never_hides_what_is_ours_or_the_systems() {
    for path in [
        "/mnt",
        "/mnt/user-data/workspace",
        "/mnt/skills/x",
        "/run",
        "/run/agentrun",
        "/opt",
        "/tmp/x",
        "/proc",
        "/dev/shm",
    ] {
        let text = with_secrets(vec![secret("s", Some(path))])
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("secrets[s].mountPath") && text.contains("a folder of its own"),
            "{path}: {text}"
        );
    }
    for path in ["/", "relative", "/a//b", "/a/../b", "/a/./b", "/a:b"] {
        assert!(with_secrets(vec![secret("s", Some(path))]).is_err(), "{path}");
    }
    // Only whole parts count.
    for path in [
        "/mnt/user-data-2",
        "/run/agentrun-mine",
        "/run/secrets/s",
        "/tmpfiles",
    ] {
        assert!(with_secrets(vec![secret("s", Some(path))]).is_ok(), "{path}");
    }
}

#[test]
fn two_secrets_never_share_a_folder() {
    let text = with_secrets(vec![secret("a", Some("/run/s")), secret("b", Some("/run/s/b"))])
        .unwrap_err()
        .to_string();
    assert!(text.contains("overlaps the folder of secrets[a]"), "{text}");
    assert!(with_secrets(vec![secret("a", None), secret("b", None)]).is_ok());
}

#[test]
fn a_secret_of_variables_alone_has_no_folder_to_check() {
    let item = SecretItem {
        key: "k".to_owned(),
        path: None,
        env: Some("K".to_owned()),
    };
    assert!(
        with_secrets(vec![SecretUse {
            items: vec![item],
            ..secret("s", Some("/tmp"))
        }])
        .is_ok()
    );
}
