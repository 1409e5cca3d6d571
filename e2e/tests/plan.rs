//! What a plan says is what happens.

use crate::framework::{World, python, sh};
use agentrun_api::Outcome;
use serde_json::json;
use std::time::Duration;

pub async fn a_failed_attempt_is_repeated_after_its_pause(world: World) {
    let spec = format!(
        "tasks:\n- name: flaky\n  {}\n  retry: {{attempts: 3, backoff: 2s}}\n- name: picky\n  {}\n  retry: {{attempts: 3, outcomes: [Timeout]}}\n",
        python(
            "p = pathlib.Path('tries'); n = int(p.read_text()) + 1 if p.exists() else 1; p.write_text(str(n))\nif n < 2: sys.exit(7)\nput(n)"
        ),
        sh("exit 1"),
    );
    let ended = world.finish("retry", &spec).await;
    let flaky = ended.task_ended("flaky", "Success/Completed");
    assert_eq!(ended.tasks.output("flaky"), json!(2));
    assert_eq!(flaky.attempts.len(), 2);
    assert_eq!(flaky.attempts[0].outcome, Some(Outcome::Error));
    let pause = flaky.attempts[1]
        .started
        .as_ref()
        .unwrap()
        .0
        .duration_since(flaky.attempts[0].finished.as_ref().unwrap().0);
    let pause = Duration::try_from(pause).expect("the second follows the first");
    assert!(
        pause >= Duration::from_millis(1_500),
        "2 s with jitter, not {pause:?}"
    );
    assert_eq!(ended.task_ended("picky", "Error/ExitCode").attempts.len(), 1);
}

pub async fn some_items_may_fail_and_leave_null(world: World) {
    let work = python("n = json.load(sys.stdin)['n']\nif n == 2: sys.exit(1)\nput(n * 10)");
    let spec = format!(
        "params: {{numbers: [1, 2, 3]}}\ntasks:\n\
         - name: some\n  forEach: {{items: \"${{params.numbers}}\", key: \"${{string(item)}}\", maxFailures: 1}}\n  {work}\n  input: {{n: \"${{item}}\"}}\n\
         - name: none\n  forEach: {{items: \"${{params.numbers.filter(n, n > 9)}}\"}}\n  {work}\n  input: {{n: \"${{item}}\"}}\n\
         - name: sum\n  {}\n  input: {{some: \"${{tasks.some.output}}\", none: \"${{tasks.none.output}}\"}}\n",
        python("put(json.load(sys.stdin))"),
    );
    let ended = world.finish("items", &spec).await;
    ended.succeeded();
    assert_eq!(
        ended.tasks.output("sum"),
        json!({"some": [10, null, 30], "none": []})
    );
    let fan_out = ended
        .status()
        .fan_out
        .iter()
        .find(|fan_out| fan_out.task == "some")
        .expect("its counts");
    assert_eq!((fan_out.total, fan_out.succeeded, fan_out.failed), (3, 2, 1));
    assert_eq!(ended.status().done.as_deref(), Some("4/4"));
}

// F097
pub async fn a_false_condition_skips_and_fails_nothing(world: World) {
    let spec = format!(
        "params: {{wanted: false}}\ntasks:\n- name: maybe\n  if: ${{params.wanted}}\n  {0}\n\
         - name: needs\n  dependsOn: [{{task: maybe}}]\n  {0}\n\
         - name: anyway\n  dependsOn: [{{task: maybe, when: Finished}}]\n  {0}\n",
        sh("true")
    );
    let ended = world.finish("condition", &spec).await;
    ended.succeeded();
    ended.task_ended("maybe", "Skipped/ConditionFalse");
    ended.task_ended("needs", "Skipped/DependencyFailed");
    ended.task_ended("anyway", "Success/Completed");
}

// F098
pub async fn a_failure_stops_the_siblings_when_the_run_fails_fast(world: World) {
    let spec = format!(
        "failurePolicy: FailFast\ntasks:\n- name: breaks\n  {}\n- name: long\n  {}\n\
         - name: later\n  dependsOn: [{{task: long}}]\n  {2}\n- name: cleanup\n  dependsOn: [{{task: breaks, when: Finished}}]\n  {2}\n",
        sh("exit 1"),
        sh("sleep 300"),
        sh("true"),
    );
    let ended = world.finish("fast", &spec).await;
    assert_eq!(ended.end(), "Failed/RunFailedFast");
    ended.task_ended("breaks", "Error/ExitCode");
    ended.task_ended("long", "Cancelled/RunFailedFast");
    assert_eq!(ended.tasks.get("later").outcome, Some(Outcome::Skipped));
    ended.task_ended("cleanup", "Success/Completed");
    assert_eq!(ended.status().leases, Some(0));
}

// F059, F101
pub async fn outputs_are_inline_only_if_they_survive(world: World) {
    let spec = format!(
        "tasks:\n- name: small\n  {}\n- name: large\n  {}\n- name: float\n  {}\n- name: plain\n  {}\n\
         - name: reads\n  inputFrom: {{task: large}}\n  {}\noutput: ${{tasks.small.output}}\n",
        python("put({'text': 'x' * 4097, 'none': None, 'big': 2**53 + 1})"),
        python("put('x' * 20000)"),
        python("pathlib.Path(os.environ['AGENTRUN_OUTPUT']).write_text('{\"n\": 1.0}')"),
        sh("echo only text"),
        python("put(len(json.load(sys.stdin)))"),
    );
    let ended = world.finish("outputs", &spec).await;
    ended.succeeded();
    let small = json!({"text": "x".repeat(4097), "none": null, "big": 9_007_199_254_740_993_i64});
    assert_eq!(ended.tasks.output("small"), small);
    assert_eq!(
        ended.status().output.as_ref().map(|output| &output.0),
        Some(&small)
    );
    let large = ended.tasks.get("large").output_ref.clone().expect("a file");
    assert_eq!(large.bytes, 20_002);
    assert!(ended.tasks.get("large").output.is_none());
    assert_eq!(ended.tasks.output("reads"), json!(20_000));
    let float = ended
        .tasks
        .get("float")
        .output_ref
        .clone()
        .expect("a file: 1.0 would come back as 1");
    assert_eq!(float.bytes, 10);
    assert_eq!(ended.tasks.output("plain"), json!({"stdout_tail": "only text\n"}));
}

pub async fn files_arrive_before_the_first_task(world: World) {
    world
        .create_all(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data}\ndata: {text: from the map}\nbinaryData: {bytes: /wD+}\n",
        )
        .await;
    let spec = format!(
        "files:\n- {{path: deep/inline.txt, content: written here}}\n- {{path: text, configMapKeyRef: {{name: data, key: text}}}}\n\
         - {{path: bytes, configMapKeyRef: {{name: data, key: bytes}}}}\ntasks:\n- name: read\n  {}\n",
        python(
            "u = pathlib.Path('/mnt/user-data/uploads')\nput([(u / 'deep/inline.txt').read_text(), (u / 'text').read_text(), (u / 'bytes').read_bytes().hex()])\npathlib.Path('/mnt/user-data/outputs/made.csv').write_text('a,b')"
        ),
    );
    let ended = world.finish("files", &spec).await;
    ended.succeeded();
    assert_eq!(
        ended.tasks.output("read"),
        json!(["written here", "from the map", "ff00fe"])
    );
    assert_eq!(ended.status().files.len(), 3);
    let artifacts = &ended.tasks.get("read").artifacts;
    assert_eq!(artifacts.len(), 1, "{artifacts:?}");
    assert!(
        artifacts[0].path.ends_with("outputs/made.csv") && artifacts[0].bytes == 3,
        "{artifacts:?}"
    );
}

// F107
pub async fn environment_and_secrets_reach_only_their_task(world: World) {
    world
        .create_all("apiVersion: v1\nkind: Secret\nmetadata: {name: vault}\nstringData: {key: hush-hush, other: file-hush}\n")
        .await;
    let look = python(
        "put({'env': os.environ.get('KEY'), 'mode': os.environ.get('MODE'), 'file': pathlib.Path('/run/secrets/vault/other').exists(), \
         'all': 'hush' in json.dumps(dict(os.environ))})",
    );
    let spec = format!(
        "sandbox: {{env: [{{name: MODE, value: every task}}]}}\ntasks:\n- name: knows\n  {look}\n  sandbox:\n    secrets:\n    \
         - {{name: vault, mountPath: /run/secrets/vault, items: [{{key: key, env: KEY}}, {{key: other, path: other}}]}}\n\
         - name: other\n  {look}\n"
    );
    let ended = world.finish("secrets", &spec).await;
    ended.succeeded();
    assert_eq!(
        ended.tasks.output("knows"),
        json!({"env": "hush-hush", "mode": "every task", "file": true, "all": true})
    );
    assert_eq!(
        ended.tasks.output("other"),
        json!({"env": null, "mode": "every task", "file": false, "all": false})
    );
}

// F033
pub async fn the_runs_deadline_cuts_its_tasks(world: World) {
    let spec = format!(
        "limits: {{timeout: 12s}}\ntasks:\n- name: long\n  {}\n  timeout: 5m\n- name: after\n  dependsOn: [{{task: long, when: Finished}}]\n  {}\n",
        sh("echo began; sleep 300"),
        sh("true"),
    );
    let ended = world.finish("late", &spec).await;
    assert_eq!(ended.end(), "Failed/DeadlineExceeded");
    ended.task_ended("long", "Timeout/DeadlineExceeded");
    let status = ended.status();
    let took = status
        .completion_time
        .as_ref()
        .unwrap()
        .0
        .duration_since(status.start_time.as_ref().unwrap().0);
    assert!((11..45).contains(&took.as_secs()), "{took:?}");
}

// F033
pub async fn queue_time_is_told_apart_from_run_time(world: World) {
    let spec = format!(
        "limits: {{maxParallel: 1}}\ntasks:\n- name: a\n  {0}\n- name: b\n  {0}\n",
        sh("sleep 3")
    );
    let ended = world.finish("queue", &spec).await;
    ended.succeeded();
    let timings: Vec<_> = ["a", "b"]
        .iter()
        .map(|task| ended.tasks.get(task).timing.clone().expect("timing"))
        .collect();
    for timing in &timings {
        let run = timing.run_ms.expect("a run time");
        assert!((2_900..20_000).contains(&run), "{timings:?}");
        assert!(
            timing.start_ms.is_some() && timing.queued_ms.is_some(),
            "{timings:?}"
        );
    }
}
