//! The hostile programs of `e2e/hostile` in real sandboxes: what came of each, and of everything around them.

use crate::framework::{MINUTE, World, command, is_over, named, python, quoted, until};
use crate::isolation;
use agentrun_api::SubTaskStatus;
use agentrun_hostile::{ESCAPED, Form, Program, programs};
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

const NODE_PROBE: &str = include_str!("probes/node.py");
const UPLOADS: &str = "/mnt/user-data/uploads";
/// The user of sandboxes, by the operator's default.
const SANDBOX_USER: i64 = 65532;
/// Programs of one run, one after the other in the same sandbox as long as it lives.
const IN_ONE_RUN: usize = 9;
/// The most that one run may take: all of them share one node, which their bombs keep busy.
const BOUND: Duration = Duration::from_mins(7);
/// A function that may write user data; and where it found the modules that it imported.
const NEXT: &str = "def run(input):\n    import json, random, tempfile\n    return [module.__file__ for module in (json, random, tempfile)]\n";
/// Of what one program plants in `outputs`, none may become an artifact.
const PLANTED: [&str; 8] = [
    "pipe.json",
    "socket.json",
    "passwd.txt",
    "environ.txt",
    "token.txt",
    "state/",
    "root/",
    "up/",
];

// F041 to F045, F051, F053, F056, F067, F069, F080 to F082, F105 to F107, F109
pub async fn no_program_finds_a_way_out_and_the_node_stays_well(world: World) {
    let peer = isolation::peer(&world).await;
    let targets = targets(&isolation::closed(&world, &peer).await);
    world
        .start(
            "neighbour",
            &format!(
                "tasks:\n- name: work\n  {}\n  timeout: 10m\n",
                python("time.sleep(600)")
            ),
        )
        .await;
    let neighbour = world.running_pod("neighbour", "work").await;
    world.create_all(&skill()).await;
    let before = surroundings(&world).await;

    let all = programs().expect("programs that can be read");
    let of_node: Vec<Program> = all
        .into_iter()
        .filter(|program| program.has(Form::Node))
        .collect();
    let (with_egress, without): (Vec<_>, Vec<_>) = of_node.into_iter().partition(|program| program.egress);
    let batches: Vec<&[Program]> = without
        .chunks(IN_ONE_RUN)
        .chain([with_egress.as_slice()])
        .collect();
    let runs = batches
        .iter()
        .zip(0..)
        .map(|(batch, number)| run(&world, number, batch, &targets));
    let mistakes: Vec<String> = join_all(runs).await.into_iter().flatten().collect();
    assert!(
        mistakes.is_empty(),
        "{} of them:\n{}",
        mistakes.len(),
        mistakes.join("\n---\n")
    );

    let pod: Pod = world
        .api()
        .get(&neighbour.name_any())
        .await
        .expect("the neighbour's Pod");
    assert_eq!(pod.uid(), neighbour.uid(), "the neighbour's Pod is another one");
    assert_eq!(life_of(&pod), life_of(&neighbour), "the neighbour");
    assert_eq!(
        surroundings(&world).await,
        before,
        "nodes and Pods of the cluster"
    );
    let after = world
        .finish(
            "after",
            &format!("tasks:\n- name: work\n  {}\n", python("put('well')")),
        )
        .await;
    assert_eq!(after.succeeded().tasks.output("work"), json!("well"));
    nothing_is_left_on_the_node(&world).await;
}

/// Host and port of everything that must be closed.
fn targets(closed: &Value) -> Value {
    let by_name = closed["tcp"].as_object().expect("addresses by name");
    by_name.values().cloned().collect()
}

/// Runs some programs, each after the one before it, and says what went wrong.
async fn run(world: &World, number: usize, batch: &[Program], targets: &Value) -> Vec<String> {
    let name = format!("batch-{number}");
    world.start(&name, &spec(batch, targets)).await;
    world.when(&name, BOUND, "its end", is_over).await;
    let ended = world.finished(&name).await;
    let mut mistakes: Vec<String> = batch
        .iter()
        .filter_map(|program| {
            let task = task_name(program);
            let status = ended.tasks.get(&task);
            let verdict = program.judge(Form::Node, &ended.tasks.end(&task), &output(status));
            verdict.and_then(|()| artifacts_are_files(program, status)).err()
        })
        .collect();
    let last = ended.tasks.end("uploads");
    if last != "Success/Completed" {
        mistakes.push(format!("uploads of {name} are not as they were: {last}"));
    }
    let next = ended.tasks.get("next");
    let modules = next
        .output
        .as_ref()
        .map(|output| output.0.to_string())
        .unwrap_or_default();
    if !modules.contains("json") || modules.contains("user-data") || output(next).contains(ESCAPED) {
        mistakes.push(format!(
            "the function after {name} was reached by what was planted: {next:#?}"
        ));
    }
    mistakes
}

/// A skill with that function.
fn skill() -> String {
    format!(
        "apiVersion: agentrun.dev/v1alpha1\nkind: Skill\nmetadata: {{name: check}}\nspec:\n  inline:\n    files:\n    \
         - {{path: SKILL.md, content: {}}}\n    - {{path: functions.yaml, content: {}}}\n    \
         - {{path: functions/next.py, content: {}}}\n",
        quoted("---\nname: check\ndescription: What the next one sees.\n---\n"),
        quoted("functions: [{name: next, max_memory_mb: 64, timeout_sec: 20, files: write}]\n"),
        quoted(NEXT),
    )
}

fn task_name(program: &Program) -> String {
    format!("p{}", program.name)
}

fn spec(batch: &[Program], targets: &Value) -> String {
    let mut spec = String::from("userData: {size: 256Mi}\nsandbox:\n  resources: {memory: 256Mi}\n");
    if batch.iter().any(|program| program.egress) {
        spec += "  egress: [{name: nowhere, cidr: 192.0.2.9/32, port: 9}]\n";
        let _ = writeln!(
            spec,
            "  env: [{{name: HOSTILE_TARGETS, value: {}}}]",
            quoted(&targets.to_string())
        );
    }
    spec += "files:\n- {path: canary, content: unchanged}\n";
    for program in batch {
        let _ = writeln!(
            spec,
            "- {{path: {}, content: {}}}",
            program.file,
            quoted(&program.text)
        );
    }
    spec += "tasks:\n";
    let mut before = String::new();
    for program in batch {
        let file = format!("{UPLOADS}/{}", program.file);
        let (name, argv) = (task_name(program), command(&[program.interpreter, &file]));
        let timeout = program.timeout.as_secs();
        let _ = writeln!(spec, "- name: {name}\n  {argv}\n  timeout: {timeout}s\n{before}");
        before = format!("  dependsOn: [{{task: {name}, when: Finished}}]\n");
    }
    let check = format!(
        "import os, pathlib\n\
         names = set(os.listdir('{UPLOADS}'))\n\
         assert pathlib.Path('{UPLOADS}/canary').read_text() == 'unchanged'\n\
         assert len(names) == {}, names\n",
        batch.len() + 1
    );
    // Isolated: a command that imports from the workspace gets what lies there.
    let check = command(&["python3", "-I", "-c", &check]);
    let _ = writeln!(spec, "- name: uploads\n  {check}\n{before}");
    let _ = writeln!(
        spec,
        "- name: next\n  function: {{skill: check, name: next}}\n  input: {{}}\n{before}"
    );
    spec
}

fn output(status: &SubTaskStatus) -> String {
    let tails = [&status.stdout_tail, &status.stderr_tail, &status.message];
    let mut text: Vec<&str> = tails.into_iter().flatten().map(String::as_str).collect();
    if let Some(output) = &status.output {
        // Where there is no other output, it is the tail of stdout.
        text.extend(output.0["stdout_tail"].as_str());
    }
    text.join("\n")
}

fn artifacts_are_files(program: &Program, status: &SubTaskStatus) -> Result<(), String> {
    let artifacts = serde_json::to_string(&status.artifacts).unwrap_or_default();
    match PLANTED.iter().find(|planted| artifacts.contains(**planted)) {
        Some(planted) => Err(format!("{}: {planted} is an artifact: {artifacts}", program.name)),
        None => Ok(()),
    }
}

/// Conditions of the nodes, and identity and restarts of all Pods but those of this test.
async fn surroundings(world: &World) -> BTreeMap<String, Vec<String>> {
    let nodes = Api::<Node>::all(world.client.clone())
        .list(&ListParams::default())
        .await
        .expect("nodes");
    let pods = Api::<Pod>::all(world.client.clone())
        .list(&ListParams::default())
        .await
        .expect("Pods");
    let of_system = pods.items.iter().filter(|pod| {
        let namespace = pod.namespace().unwrap_or_default();
        namespace == world.system || namespace.starts_with("kube-")
    });
    let conditions = |node: &Node| {
        let conditions = node
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions
            .map(|condition| format!("{}={}", condition.type_, condition.status))
            .collect()
    };
    let nodes = nodes.items.iter().map(|node| (node.name_any(), conditions(node)));
    nodes
        .chain(of_system.map(|pod| (pod.name_any(), life_of(pod))))
        .collect()
}

/// Identity of a Pod and its containers.
fn life_of(pod: &Pod) -> Vec<String> {
    let statuses = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let containers = statuses.map(|status| {
        let id = status.container_id.as_deref().unwrap_or_default();
        format!("{} {id} restarted {} times", status.name, status.restart_count)
    });
    pod.uid().into_iter().chain(containers).collect()
}

/// Deletes what ran, and looks from outside for processes and files.
async fn nothing_is_left_on_the_node(world: &World) {
    let runs: Api<agentrun_api::AgentRun> = world.api();
    let deleted = runs
        .delete_collection(&DeleteParams::background(), &ListParams::default())
        .await;
    deleted.expect("the runs of the test");
    world
        .gone::<Pod>("every sandbox is gone", |name| name != "peer")
        .await;
    let all = Api::<Pod>::all(world.client.clone())
        .list(&ListParams::default())
        .await
        .expect("Pods");
    let alive: Vec<String> = all.items.iter().filter_map(kube::ResourceExt::uid).collect();

    let outside = world.another().await;
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    Api::<Namespace>::all(world.client.clone())
        .patch(&outside.namespace, &PatchParams::default(), &Patch::Merge(labels))
        .await
        .expect("a namespace that allows to look at the node");
    let found = look(&outside, &alive).await;
    outside.remove().await.expect("its namespace goes");
    assert!(
        found["seen"].as_i64().is_some_and(|seen| seen > 10),
        "the probe saw nothing: {found}"
    );
    assert_eq!(found["processes"], json!([]), "left on the node");
    assert_eq!(found["files"], json!([]), "left on the node");
}

async fn look(outside: &World, alive: &[String]) -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "look"},
        "spec": {
            "hostPID": true, "restartPolicy": "Never", "automountServiceAccountToken": false,
            "containers": [{
                "name": "look", "image": outside.image, "imagePullPolicy": "IfNotPresent",
                "command": ["python3", "-c", NODE_PROBE],
                "env": [
                    {"name": "PODS", "value": json!(alive).to_string()},
                    {"name": "SANDBOX_USER", "value": SANDBOX_USER.to_string()},
                    {"name": "SELF", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
                ],
                "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": true},
                "volumeMounts": [{"name": "node", "mountPath": "/node", "readOnly": true}],
            }],
            "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
        },
    });
    outside.create_all(&pod.to_string()).await;
    until(
        &outside.api::<Pod>(),
        named("look"),
        MINUTE,
        "the probe has looked",
        |seen| {
            let phase = seen.get("look")?.status.as_ref()?.phase.as_deref();
            (phase == Some("Succeeded")).then_some(())
        },
    )
    .await;
    let log = outside
        .api::<Pod>()
        .logs("look", &LogParams::default())
        .await
        .expect("its log");
    serde_json::from_str(&log).unwrap_or_else(|error| panic!("{error} in the probe's log: {log}"))
}
