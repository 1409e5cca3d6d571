//! The public API, called by a Pod of the cluster with a token of its own.

use crate::framework::{MINUTE, World, named, quoted, restricted_container, restricted_pod, until};
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::LogParams;
use serde_json::{Value, json};

const CALLER: &str = include_str!("probes/caller.py");
const SERVICE: &str = "agentrun-api";
const AUDIENCE: &str = "agentrun-api";
/// Two functions: one that doubles, one that fails.
const FUNCTIONS: &str = "functions:\n- {name: double, max_memory_mb: 64, timeout_sec: 20}\n- {name: fail, max_memory_mb: 64, timeout_sec: 20}\n";

pub async fn a_caller_makes_follows_and_calls_what_its_token_allows(world: World) {
    world.create_all(&skill()).await;
    let other = world.another().await;
    let told = call(&world, &other).await;

    let (made, again) = (&told["made"][0], &told["made"][1]);
    assert_eq!(made[0], 202, "{made}");
    assert_eq!(made[1]["task_id"], again[1]["task_id"], "made twice");
    assert_eq!(told["otherBody"][0], 409, "{}", told["otherBody"]);

    let events = told["events"].as_array().expect("events");
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap_or("?"))
        .collect();
    assert_eq!(kinds.first(), Some(&"plan"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"done"), "{kinds:?}");
    assert!(kinds.contains(&"artifact"), "{kinds:?}");
    let statuses: Vec<_> = events
        .iter()
        .filter_map(|event| event["status"].as_str())
        .collect();
    for status in ["task_started", "task_running", "task_completed"] {
        assert!(statuses.contains(&status), "{statuses:?}");
    }
    assert_eq!(
        told["resumed"], told["after"],
        "what a reader hears who comes back"
    );
    assert_eq!(told["task"][1]["status"], "Succeeded", "{}", told["task"]);

    let checks = told["checks"].as_array().expect("answers");
    assert_eq!(checks[0], json!([200, {"success": true, "data": 42}]));
    assert_eq!(
        (&checks[1][0], &checks[1][1]["success"]),
        (&json!(500), &json!(false)),
        "{}",
        checks[1]
    );
    assert_eq!(checks[2], json!([200, {"success": true, "data": 8}]));

    let refused = &told["refused"];
    assert_eq!(
        (&refused["audience"], &refused["forged"]),
        (&json!(401), &json!(401))
    );
    assert_eq!(refused["namespace"], 403);
    assert_eq!(refused["mistake"][0], 422, "{}", refused["mistake"]);
    other.remove().await.expect("its namespace goes");
}

fn skill() -> String {
    let files = [
        ("SKILL.md", "---\nname: checks\ndescription: Checks.\n---\n"),
        ("functions.yaml", FUNCTIONS),
        ("functions/double.py", "def run(input):\n    return input * 2\n"),
        (
            "functions/fail.py",
            "def run(input):\n    raise ValueError('no')\n",
        ),
    ];
    let files =
        files.map(|(path, content)| format!("    - {{path: {path}, content: {}}}\n", quoted(content)));
    format!(
        "apiVersion: agentrun.dev/v1alpha1\nkind: Skill\nmetadata: {{name: checks}}\nspec:\n  inline:\n    files:\n{}",
        files.concat()
    )
}

/// Runs the caller, which has the rights of `edit` in the test's namespace, and gives what it printed.
async fn call(world: &World, other: &World) -> Value {
    let services: Api<Service> = Api::namespaced(world.client.clone(), &world.system);
    let service = services.get(SERVICE).await.expect("the Service of the API");
    let address = service.spec.and_then(|spec| spec.cluster_ip).expect("an address");
    let url = |namespace: &str| format!("http://{address}:8080/api/namespaces/{namespace}");
    let token = |audience: Option<&str>, path: &str| {
        let mut token = json!({"path": path, "expirationSeconds": 600});
        if let Some(audience) = audience {
            token["audience"] = audience.into();
        }
        json!({ "serviceAccountToken": token })
    };
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "caller"}}),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "caller"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"kind": "ServiceAccount", "name": "caller", "namespace": world.namespace}],
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "caller"},
            "spec": {
                "serviceAccountName": "caller", "automountServiceAccountToken": false, "restartPolicy": "Never",
                "securityContext": restricted_pod(),
                "containers": [{
                    "name": "caller", "image": world.image, "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-c", CALLER],
                    "env": [
                        {"name": "API", "value": url(&world.namespace)},
                        {"name": "OTHER", "value": url(&other.namespace)},
                    ],
                    "securityContext": restricted_container(),
                    "volumeMounts": [{"name": "tokens", "mountPath": "/tokens", "readOnly": true}],
                }],
                "volumes": [{"name": "tokens", "projected": {"sources": [
                    token(Some(AUDIENCE), "right"), token(None, "audience"),
                ]}}],
            },
        }),
    ];
    world
        .create_all(&objects.map(|object| object.to_string()).join("\n---\n"))
        .await;
    let phase = until(
        &world.api::<Pod>(),
        named("caller"),
        3 * MINUTE,
        "the caller is through",
        |seen| {
            let phase = seen.get("caller")?.status.as_ref()?.phase.clone()?;
            ["Succeeded", "Failed"].contains(&phase.as_str()).then_some(phase)
        },
    )
    .await;
    let log = world
        .api::<Pod>()
        .logs("caller", &LogParams::default())
        .await
        .expect("its log");
    assert_eq!(phase, "Succeeded", "{log}");
    serde_json::from_str(&log).unwrap_or_else(|error| panic!("{error} in the caller's log: {log}"))
}
