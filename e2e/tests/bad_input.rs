//! Manifests with a mistake: each is refused at once, or ends at once, naming the field.

use crate::framework::{MINUTE, World};
use agentrun_api::names::conditions;
use std::fmt::Write as _;

const TASK: &str = "tasks: [{name: a, command: {argv: [\"true\"]}}]";

/// Name, spec, and what the complaint must name.
fn cases() -> Vec<(&'static str, String, &'static str)> {
    let with = |more: &str| format!("{TASK}\n{more}");
    let task = |more: &str| format!("tasks:\n- name: a\n  command: {{argv: [\"true\"]}}\n  {more}");
    vec![
        ("nothing-to-do", "params: {a: 1}".into(), "goal"),
        ("unknown-key", with("tsks: []"), "tsks"),
        ("two-kinds-of-work", task("function: {skill: s, name: f}"), "exactly one"),
        ("no-work", "tasks: [{name: a}]".into(), "exactly one"),
        ("no-program", "tasks: [{name: a, command: {argv: []}}]".into(), "argv"),
        ("bad-name", "tasks: [{name: A_b, command: {argv: [x]}}]".into(), "name"),
        ("same-name", "tasks: [{name: a, command: {argv: [x]}}, {name: a, command: {argv: [x]}}]".into(), "tasks"),
        ("cycle", "tasks: [{name: a, dependsOn: [{task: b}], command: {argv: [x]}}, {name: b, dependsOn: [{task: a}], command: {argv: [x]}}]".into(), "a"),
        ("self", task("dependsOn: [{task: a}]"), "a"),
        ("unknown-dependency", task("dependsOn: [{task: zz}]"), "zz"),
        ("unknown-task-in-expression", task("input: ${tasks.zz.output}"), "zz"),
        ("broken-expression", task("input: ${1 +}"), "input"),
        ("condition-is-text", task("if: yes please"), "if"),
        ("bad-duration", task("timeout: soon"), "timeout"),
        ("no-duration", task("timeout: 0s"), "timeout"),
        ("bad-memory", task("resources: {memory: lots}"), "memory"),
        ("too-little-memory", task("resources: {memory: 1Mi}"), "memory"),
        ("too-many-attempts", task("retry: {attempts: 11}"), "attempts"),
        ("no-parallel", with("limits: {maxParallel: 0}"), "maxParallel"),
        ("path-above", with("files: [{path: ../x, content: a}]"), "path"),
        ("two-sources", with("files: [{path: x, content: a, configMapKeyRef: {name: m, key: k}}]"), "exactly one"),
        ("pool-and-image", with("sandbox: {pool: p, image: i}"), "pool"),
        ("reserved-variable", with("sandbox: {env: [{name: AGENTRUN_OUTPUT, value: x}]}"), "env"),
        ("no-network", with("sandbox: {egress: [{name: e, cidr: example.com, port: 1}]}"), "cidr"),
        ("metadata", with("sandbox: {egress: [{name: e, cidr: 169.254.169.254/32, port: 80}]}"), "egress[e].cidr"), // F105
        ("bad-thread", with("userData: {thread: a/b}"), "thread"),
        ("approvals-later", "goal: x\napproval: {plan: true}".into(), "approval"),
        ("no-such-tool", "goal: x\nlead: {tools: [fly]}".into(), "lead.tools"),
        ("task-of-the-lead", format!("goal: x\n{}", TASK.replace("name: a", "name: lead")), "lead"),
    ]
}

pub async fn every_mistake_is_refused_naming_its_field(world: World) {
    let mut wrong = String::new();
    for (name, spec, names) in cases() {
        let yaml = manifest(name, &spec);
        let said = match world.try_create(&yaml).await {
            Err(error) => error.to_string(),
            Ok(()) => complaint(&world, name).await,
        };
        if !said.contains(names) {
            let _ = writeln!(wrong, "{name}: {names:?} is not named in: {said}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(world.claims().await.is_empty(), "a volume was made for a mistake");
}

fn manifest(name: &str, spec: &str) -> String {
    let body: Vec<_> = spec.lines().map(|line| format!("  {line}")).collect();
    format!(
        "apiVersion: agentrun.dev/v1alpha1\nkind: AgentRun\nmetadata: {{name: {name}}}\nspec:\n{}",
        body.join("\n")
    )
}

/// What the run's conditions say that were written because of a mistake.
async fn complaint(world: &World, name: &str) -> String {
    let run = world
        .when(name, MINUTE, "it complains", |status| {
            status
                .conditions
                .iter()
                .any(|condition| condition.type_ == conditions::ADMITTED && condition.status == "False")
        })
        .await;
    let (made, status) = (run.metadata.creation_timestamp, run.status.unwrap_or_default());
    let said = status.conditions.iter().map(|condition| {
        // Times of conditions have whole seconds, so "within a second" may read as two.
        let after = condition
            .last_transition_time
            .0
            .duration_since(made.as_ref().expect("a time").0);
        format!(
            "{}={}: {} ({} s)",
            condition.type_,
            condition.status,
            condition.message,
            after.as_secs()
        )
    });
    let said: Vec<_> = said.collect();
    let quick = status.conditions.iter().all(|condition| {
        condition
            .last_transition_time
            .0
            .duration_since(made.as_ref().expect("a time").0)
            .as_secs()
            <= 3
    });
    assert!(quick, "{name} complained late: {said:?}");
    said.join("; ")
}
