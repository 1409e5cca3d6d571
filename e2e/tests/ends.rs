//! How work ends when it does not end well: each end has its outcome, its reason, and comes soon.

use crate::framework::{World, python, quoted, sh};
use agentrun_api::SubTaskStatus;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::DeleteParams;
use std::fmt::Write as _;
use std::time::Duration;

/// From the assignment of an attempt to its end.
fn took(status: &SubTaskStatus) -> Duration {
    let attempt = status.attempts.last().expect("an attempt");
    let (started, finished) = (attempt.started.as_ref(), attempt.finished.as_ref());
    let time = finished
        .expect("an end")
        .0
        .duration_since(started.expect("a start").0);
    Duration::try_from(time).expect("an end after the start")
}

fn tail(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}

// F029, F051
pub async fn an_exit_code_and_a_signal_are_errors_that_say_so(world: World) {
    let spec = format!(
        "tasks:\n- name: code\n  {}\n- name: kill\n  {}\n- name: crash\n  {}\n- name: absent\n  {}\n",
        sh("echo almost; echo no luck >&2; exit 3"),
        sh("kill -9 $$"),
        sh("kill -SEGV $$"),
        "command: {argv: [/no/such/program]}",
    );
    let ended = world.finish("ends", &spec).await;
    assert_eq!(ended.end(), "Failed/TaskFailed");
    let code = ended.task_ended("code", "Error/ExitCode");
    assert_eq!(code.exit_code, Some(3));
    assert!(tail(code.stderr_tail.as_ref()).contains("no luck"));
    assert!(tail(code.stdout_tail.as_ref()).contains("almost"));
    ended.task_ended("kill", "Error/Signal9");
    let crash = ended.task_ended("crash", "Error/ExitCode");
    assert!(tail(crash.message.as_ref()).contains("11"), "{crash:#?}");
    let absent = ended.task_ended("absent", "Error/InterpreterNotFound");
    assert!(
        tail(absent.message.as_ref()).contains("/no/such/program"),
        "{absent:#?}"
    );
}

// F046, F058
pub async fn a_timeout_keeps_the_last_output(world: World) {
    let spec = format!(
        "tasks:\n- name: slow\n  {}\n  timeout: 2s\n",
        sh("trap '' TERM; echo half way; (sleep 300 &) ; sleep 300; echo never"),
    );
    let ended = world.finish("slow", &spec).await;
    let slow = ended.task_ended("slow", "Timeout/DeadlineExceeded");
    assert_eq!(tail(slow.stdout_tail.as_ref()), "half way\n");
    let run = slow
        .timing
        .as_ref()
        .and_then(|timing| timing.run_ms)
        .expect("a run time");
    assert!(
        (1_900..10_000).contains(&run),
        "2 s and a short grace, not {run} ms"
    );
}

// F060, F061, F062, F065, F066
pub async fn anything_but_one_json_document_is_a_parse_error(world: World) {
    let cases = [
        ("warned", "echo 'warning: old'; echo '{\"a\": 1}'"),
        ("twice", "echo '{\"a\": 1}'; echo '{\"a\": 2}'"),
        ("fenced", "printf '```json\\n{\"a\": 1}\\n```\\n'"),
        ("nan", "echo '{\"a\": NaN}'"),
        ("cut", "printf '{\"a\": [1, 2'"),
        ("silent", "true"),
        ("good", "cat >/dev/null; echo log >&2; echo '{\"a\": 1}'"),
    ];
    let mut files = String::new();
    let mut functions = String::from("functions:\n");
    let mut spec = String::from("limits: {maxParallel: 4}\ntasks:\n");
    for (name, code) in cases {
        let code = quoted(&format!("#!/bin/sh\n{code}\n"));
        let _ = writeln!(files, "    - {{path: functions/{name}.sh, content: {code}}}");
        let _ = writeln!(
            functions,
            "- {{name: {name}, max_memory_mb: 64, timeout_sec: 20}}"
        );
        let _ = writeln!(
            spec,
            "- name: {name}\n  function: {{skill: talk, name: {name}}}\n  input: {{}}"
        );
    }
    let skill = format!(
        "apiVersion: agentrun.dev/v1alpha1\nkind: Skill\nmetadata: {{name: talk}}\nspec:\n  inline:\n    files:\n    \
         - {{path: SKILL.md, content: {}}}\n    - {{path: functions.yaml, content: {}}}\n{files}",
        quoted("---\nname: talk\ndescription: Ways to talk.\n---\n"),
        quoted(&functions),
    );
    world.create_all(&skill).await;
    let ended = world.finish("talk", &spec).await;
    for name in ["warned", "fenced", "nan", "cut"] {
        let status = ended.task_ended(name, "ParseError/InvalidOutput");
        assert!(status.output.is_none() && status.message.is_some(), "{status:#?}");
    }
    ended.task_ended("twice", "ParseError/TrailingOutput");
    ended.task_ended("silent", "ParseError/NoOutput");
    ended.task_ended("good", "Success/Completed");
    assert_eq!(ended.tasks.output("good"), serde_json::json!({"a": 1}));
}

// F028, F052
pub async fn memory_beyond_the_limit_ends_as_oom_killed_in_seconds(world: World) {
    let spec = format!(
        "sandbox: {{resources: {{memory: 64Mi}}}}\ntasks:\n- name: greedy\n  {}\n  timeout: 120s\n",
        python("data = []\nwhile True: data.append(bytearray(os.urandom(1 << 20)))"),
    );
    let ended = world.finish("greedy", &spec).await;
    let greedy = ended.task_ended("greedy", "Error/OOMKilled");
    assert!(took(greedy) < Duration::from_secs(40), "{:?}", took(greedy));
}

// F080, F081, F082
pub async fn a_full_scratch_folder_and_a_large_file_end_with_their_reason(world: World) {
    let spec = format!(
        "sandbox: {{resources: {{memory: 1Gi}}}}\ntasks:\n- name: scratch\n  {}\n- name: large\n  {}\n",
        python("with open('/tmp/fill', 'wb') as f:\n  while True: f.write(bytes(1 << 20))"),
        python("os.truncate(os.open('large', os.O_CREAT | os.O_RDWR), 4 << 30)"),
    );
    let ended = world.finish("full", &spec).await;
    ended.task_ended("scratch", "Error/NoSpaceLeft");
    ended.task_ended("large", "Error/FileTooLarge");
}

// F042, F043, F045
pub async fn killing_every_process_ends_only_the_work_that_did_it(world: World) {
    let spec = format!(
        "tasks:\n- name: killer\n  {}\n  timeout: 20s\n- name: orphans\n  {}\n- name: after\n  dependsOn: [{{task: killer, when: Finished}}]\n  {}\n",
        python(
            "import subprocess\nchild = subprocess.Popen(['sleep', '600'])\n\
             os.kill(-1, signal.SIGKILL)\nput({'child': child.wait()})"
        ),
        sh("setsid sh -c 'sleep 600' & (setsid sleep 600 &) ; sh -c 'kill -TERM 1' ; echo still here"),
        sh("echo well"),
    );
    let ended = world.finish("killer", &spec).await;
    assert_eq!(ended.tasks.output("killer"), serde_json::json!({"child": -9}));
    ended.task_ended("orphans", "Success/Completed");
    ended.task_ended("after", "Success/Completed");
}

// F044, F109
pub async fn a_fork_bomb_ends_alone(world: World) {
    let spec = format!(
        "tasks:\n- name: bomb\n  {}\n  timeout: 20s\n- name: after\n  dependsOn: [{{task: bomb, when: Finished}}]\n  {}\n",
        python("while True:\n  try: os.fork()\n  except OSError: pass"),
        sh("echo well"),
    );
    let ended = world.finish("bomb", &spec).await;
    // The executor counts, and the kubelet's limit of a Pod may be smaller than what it allows.
    let bomb = ended.tasks.end("bomb");
    let known = ["Error/TooManyProcesses", "Timeout/DeadlineExceeded"];
    assert!(known.contains(&bomb.as_str()), "{:#?}", ended.tasks.get("bomb"));
    ended.task_ended("after", "Success/Completed");
}

/// Work that only ends when it is ended.
fn endless() -> String {
    python("time.sleep(600)")
}

async fn delete_its_pod(world: &World, run: &str) {
    let pod = world.running_pod(run, "work").await;
    let params = DeleteParams::default().grace_period(1);
    world
        .api::<Pod>()
        .delete(&pod.name_any(), &params)
        .await
        .expect("the Pod");
}

// F018, F034
pub async fn a_pod_deleted_under_its_work_is_restarted(world: World) {
    world
        .start("moved", &format!("tasks:\n- name: work\n  {}\n", endless()))
        .await;
    delete_its_pod(&world, "moved").await;
    let begun = world
        .when_task("moved", "work", "a second attempt", |task| {
            task.status
                .as_ref()
                .is_some_and(|status| status.attempts.len() > 1)
        })
        .await;
    let first = &begun.status.expect("a status").attempts[0];
    assert_eq!(first.reason.as_deref(), Some("PodLost"), "{first:?}");
    assert_ne!(first.finished, None, "{first:?}");
}

// F018
pub async fn a_disruption_is_an_error_where_restarts_are_refused(world: World) {
    let spec = format!(
        "tasks:\n- name: work\n  {}\n  retry: {{onDisruption: Fail}}\n",
        endless()
    );
    world.start("fixed", &spec).await;
    delete_its_pod(&world, "fixed").await;
    let ended = world.finished("fixed").await;
    assert_eq!(ended.task_ended("work", "Error/PodLost").attempts.len(), 1);
    assert_eq!(ended.end(), "Failed/TaskFailed");
}
