//! What keeps work from starting: it is named, waited for as long as that makes sense, and no longer.

use crate::framework::{MINUTE, World, sh};
use agentrun_api::RunPhase;
use agentrun_api::names::conditions;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ResourceQuota};
use kube::api::DeleteParams;

fn hello() -> String {
    format!("- name: hello\n  {}\n", sh("echo hello"))
}

/// Waits until a run says that it misses something with this reason and name.
async fn misses(world: &World, run: &str, reason: &str, name: &str) {
    world
        .when(run, MINUTE, &format!("{reason} naming {name}"), |status| {
            status.conditions.iter().any(|condition| {
                condition.type_ == conditions::ADMITTED
                    && condition.status == "False"
                    && condition.reason == reason
                    && condition.message.contains(name)
            })
        })
        .await;
}

// F022, F031, F037
pub async fn what_is_missing_is_named_and_waited_for(world: World) {
    let task = sh("cat /mnt/user-data/uploads/a.txt");
    let runs = [
        (
            "skill",
            "tasks:\n- name: hello\n  function: {skill: late, name: hello}\n  input: {}\n".to_owned(),
        ),
        (
            "pool",
            format!("sandbox: {{pool: late-pool}}\ntasks:\n{}", hello()),
        ),
        (
            "secret",
            format!(
                "sandbox: {{secrets: [{{name: late-secret, items: [{{key: a, env: A}}]}}]}}\ntasks:\n{}",
                hello()
            ),
        ),
        (
            "file",
            format!(
                "files: [{{path: a.txt, configMapKeyRef: {{name: late-map, key: a}}}}]\ntasks:\n- name: hello\n  {task}\n"
            ),
        ),
    ];
    for (name, spec) in &runs {
        world.start(name, spec).await;
    }
    misses(&world, "skill", "SkillNotFound", "late").await;
    misses(&world, "pool", "PoolNotFound", "late-pool").await;
    misses(&world, "secret", "SecretNotFound", "late-secret").await;
    misses(&world, "file", "ConfigMapNotFound", "late-map").await;
    let skill = "apiVersion: agentrun.dev/v1alpha1\nkind: Skill\nmetadata: {name: late}\nspec:\n  inline:\n    files:\n    \
        - {path: SKILL.md, content: \"---\\nname: late\\ndescription: Comes late.\\n---\\n\"}\n    \
        - {path: functions.yaml, content: \"functions: [{name: hello, max_memory_mb: 64, timeout_sec: 20}]\"}\n    \
        - {path: functions/hello.sh, content: \"#!/bin/sh\\necho 1\\n\"}\n---\n";
    let pool = format!(
        "apiVersion: agentrun.dev/v1alpha1\nkind: SandboxPool\nmetadata: {{name: late-pool}}\n\
         spec: {{template: {{image: {}}}}}\n---\n",
        world.image
    );
    let others = "apiVersion: v1\nkind: Secret\nmetadata: {name: late-secret}\nstringData: {a: b}\n---\n\
        apiVersion: v1\nkind: ConfigMap\nmetadata: {name: late-map}\ndata: {a: from the map}\n";
    world.create_all(&(skill.to_owned() + &pool + others)).await;
    for (name, _) in &runs {
        world.finished(name).await.succeeded();
    }
}

// F014
pub async fn what_never_appears_ends_the_run_at_its_start_timeout(world: World) {
    let spec = format!(
        "limits: {{startTimeout: 5s}}\nsandbox: {{pool: nowhere}}\ntasks:\n{}",
        hello()
    );
    let ended = world.finish("waiting", &spec).await;
    assert_eq!(ended.end(), "Failed/StartTimeout");
    let said = format!("{:?}", ended.status().conditions);
    assert!(said.contains("nowhere"), "{said}");
    assert!(ended.tasks.0.is_empty());
}

// F030
pub async fn an_image_that_is_not_there_ends_with_its_reason(world: World) {
    let spec = format!(
        "limits: {{startTimeout: 3m}}\ntasks:\n- name: absent\n  {0}\n  sandbox: {{image: \"localhost/not-there:1\"}}\n\
         - name: misnamed\n  {0}\n  sandbox: {{image: \"localhost/Bad_Name:1\"}}\n",
        sh("true")
    );
    let ended = world.finish("images", &spec).await;
    let absent = ended.task_ended("absent", "Error/ImagePullFailed");
    assert!(
        absent
            .message
            .as_ref()
            .is_some_and(|message| message.contains("not-there")),
        "{absent:#?}"
    );
    ended.task_ended("misnamed", "Error/InvalidImageName");
}

// F049
pub async fn a_volume_that_never_binds_ends_at_the_start_timeout(world: World) {
    let spec = format!(
        "limits: {{startTimeout: 15s}}\nuserData: {{storageClassName: no-such-class}}\ntasks:\n{}",
        hello()
    );
    world.start("unbound", &spec).await;
    let waits = world
        .when("unbound", MINUTE, "it says what it waits for", |status| {
            status.waiting_for.as_ref().is_some_and(|text| !text.is_empty())
        })
        .await;
    let ended = world.finished("unbound").await;
    let task = ended.task_ended("hello", "Error/StartTimeout");
    let said = format!(
        "{:?} {:?}",
        task.message,
        waits.status.and_then(|status| status.waiting_for)
    );
    assert!(
        said.contains("PersistentVolumeClaim") || said.contains("claim"),
        "{said}"
    );
}

// F032
pub async fn a_claim_deleted_before_the_start_is_named(world: World) {
    let spec = format!(
        "limits: {{startTimeout: 20s}}\nuserData: {{storageClassName: no-such-class}}\ntasks:\n{}",
        hello()
    );
    world.start("robbed", &spec).await;
    let run = world
        .when("robbed", MINUTE, "a claim", |status| status.claim_name.is_some())
        .await;
    let claim = run
        .status
        .and_then(|status| status.claim_name)
        .expect("just seen");
    let claims = world.api::<PersistentVolumeClaim>();
    claims
        .delete(&claim, &DeleteParams::background())
        .await
        .expect("the claim");
    let ended = world.finished("robbed").await;
    assert_eq!(ended.status().phase.map(RunPhase::as_str), Some("Failed"));
    let said = format!("{:?} {:?}", ended.status().conditions, ended.tasks);
    assert!(said.contains(&claim), "{said}");
}

// F099, F100
pub async fn an_exhausted_quota_is_waited_for(world: World) {
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: small}\nspec:\n  hard:\n    pods: 1\n    \
        requests.cpu: 1\n    limits.cpu: 16\n    requests.memory: 2Gi\n    limits.memory: 16Gi\n    \
        requests.ephemeral-storage: 8Gi\n    limits.ephemeral-storage: 16Gi\n";
    world.create_all(quota).await;
    let spec = format!(
        "tasks:\n- name: first\n  {0}\n- name: second\n  {0}\n",
        sh("sleep 6")
    );
    world.start("two", &spec).await;
    world
        .when_task_any("two", "it waits for quota", |task| {
            let said = task.status.as_ref().and_then(|status| status.waiting_for.clone());
            said.is_some_and(|text| text.contains("quota"))
        })
        .await;
    world.finished("two").await.succeeded();
}

// F099
pub async fn a_volume_that_a_quota_keeps_out_is_waited_for_and_named(world: World) {
    let quota = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: no-claims}\n\
        spec: {hard: {persistentvolumeclaims: 0}}\n";
    world.create_all(quota).await;
    let spec = format!("tasks:\n- name: only\n  {}\n", sh("true"));
    world.start("one", &spec).await;
    world
        .when("one", MINUTE, "it waits for the quota", |status| {
            let said = status.waiting_for.as_deref().unwrap_or_default();
            said.contains("exceeded quota: no-claims")
        })
        .await;
    world.delete::<ResourceQuota>("no-claims").await;
    world.finished("one").await.succeeded();
}
