//! End to end with the real executor.

use crate::gateway::Peer;
use crate::world::{Runtime, World, command, function};
use agentrun_protocol::channel::{ToGateway, ToRuntime};
use agentrun_protocol::executor::ExpectedMount;
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{Assignment, CacheKey, Input};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

/// A runtime with the real executor.
pub(crate) struct Real {
    pub(crate) world: World,
    peer: Peer,
    executor: Child,
    attempts: i32,
    _runtime: Runtime,
}

/// The executor's binary, built beside this test's.
fn binary() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let profile = test.parent().unwrap().parent().unwrap();
        let built = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "agentrun-sandbox",
                "--bin",
                "agentrun-sandbox",
            ])
            .arg("--target-dir")
            .arg(profile.parent().unwrap())
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status()
            .unwrap();
        assert!(built.success());
        profile.join("agentrun-sandbox")
    })
}

/// This machine's mounts, in place of those that an operator makes.
pub(crate) fn mounts() -> Vec<ExpectedMount> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let points = table.lines().filter_map(|line| line.split(' ').nth(4));
    let of_the_container = |path: &&str| {
        !["/proc/", "/sys/", "/dev/"]
            .iter()
            .any(|own| path.starts_with(own))
    };
    let expected = |path: &str| ExpectedMount {
        path: path.to_owned(),
        read_only: false,
    };
    points.filter(of_the_container).map(expected).collect()
}

impl Real {
    pub(crate) async fn start() -> Real {
        Real::with_secret("API_KEY", "").await
    }

    /// With a variable that the kubelet filled from a Secret.
    async fn with_secret(name: &str, value: &str) -> Real {
        // Before the runtime begins to wait for it: a busy machine takes long to build it.
        binary();
        let mut world = World::new().await;
        world.settings.sandbox.mounts = mounts();
        world.settings.sandbox.secrets.env = vec![name.to_owned()];
        let runtime = world.start();
        let executor = start_executor(&world, (name, value));
        let peer = world.gateway.peer().await;
        Real {
            world,
            peer,
            executor,
            attempts: 0,
            _runtime: runtime,
        }
    }

    async fn run(&mut self, assignment: &Assignment) -> AttemptResult {
        self.peer.assign(assignment).await;
        self.peer.result().await
    }

    /// Runs as the next attempt in this Pod.
    pub(crate) async fn next(&mut self, mut assignment: Assignment) -> AttemptResult {
        self.attempts += 1;
        assignment.id.attempt = self.attempts;
        self.peer.assign(&assignment).await;
        let ToGateway::Result { id, result } = self.peer.next().await else {
            panic!("expected a result");
        };
        assert_eq!(id, assignment.id);
        self.peer.say(ToRuntime::Ack(id)).await;
        *result
    }

    /// Name and state of each process below the executor.
    pub(crate) fn processes(&self) -> Vec<(String, char)> {
        let mut found = Vec::new();
        let mut queue = vec![self.executor.id()];
        while let Some(process) = queue.pop() {
            let path = format!("/proc/{process}");
            let list = std::fs::read_to_string(format!("{path}/task/{process}/children")).unwrap_or_default();
            queue.extend(
                list.split_ascii_whitespace()
                    .map(|word| word.parse::<u32>().unwrap()),
            );
            let name = std::fs::read_to_string(format!("{path}/comm")).unwrap_or_default();
            let stat = std::fs::read_to_string(format!("{path}/stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            found.extend(state.map(|state| (name.trim().to_owned(), state)));
        }
        found
    }

    pub(crate) fn skill(&self, file: &str, text: &str) {
        std::fs::create_dir_all(self.world.path("skills/skill")).unwrap();
        std::fs::write(self.world.path("skills/skill").join(file), text).unwrap();
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        self.executor.kill().ok();
        self.executor.wait().ok();
    }
}

pub(crate) fn start_executor(world: &World, secret: (&str, &str)) -> Child {
    let binary = binary();
    // As root the executor wants a pid namespace of its own, where it may end everyone.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("unshare");
        command
            .args(["--pid", "--fork", "--kill-child", "--mount-proc", "--ipc"])
            .arg(binary);
        command
    } else {
        Command::new(binary)
    };
    command.arg("--socket").arg(world.socket());
    command.arg("--temp").arg(world.path("tmp"));
    command.arg("--user-data").arg(world.path("data"));
    command.env(secret.0, secret.1);
    command.stdin(Stdio::null()).spawn().unwrap()
}

async fn function_result(file: &str, text: &str, input: serde_json::Value) -> AttemptResult {
    let mut real = Real::start().await;
    real.skill("helper.py", "FACTOR = 2\n");
    real.skill("helper.mjs", "export const factor = 2;\n");
    real.skill(file, text);
    let mut assignment = function(file);
    assignment.input = Some(Input::Inline { value: input });
    real.run(&assignment).await
}

#[track_caller]
pub(crate) fn assert_output(result: &AttemptResult, output: serde_json::Value) {
    assert_eq!(
        result.ending,
        Ending::Success,
        "{}\n{}",
        result.message,
        result.stderr_tail
    );
    assert_eq!(result.output, Some(output));
    assert!(result.process_tree_empty);
}

#[tokio::test]
async fn a_command_gets_its_input_in_a_file_and_leaves_output_and_artifacts() {
    let mut real = Real::start().await;
    let outputs = real.world.path("data/outputs");
    let script = format!(
        "cat \"$AGENTRUN_INPUT\" > \"$AGENTRUN_OUTPUT\"; echo a,b > '{}/table.csv'; echo hello; echo oops >&2",
        outputs.display()
    );
    let mut assignment = command(&["sh", "-c", &script]);
    assignment.input = Some(Input::Inline {
        value: json!({"n": 1}),
    });
    let result = real.run(&assignment).await;
    assert_output(&result, json!({"n": 1}));
    assert_eq!(
        (result.stdout_tail.as_str(), result.stderr_tail.as_str()),
        ("hello\n", "oops\n")
    );
    assert_eq!(result.artifacts.len(), 1);
    assert_eq!(result.artifacts[0].path, "/mnt/user-data/outputs/table.csv");
    assert_eq!(result.artifacts[0].media_type, "text/csv");
    assert!(result.usage.peak_memory_bytes > 0);
}

#[tokio::test]
async fn a_python_file_that_defines_run_needs_no_boilerplate() {
    let text = "import helper\nprint('loading')\n\
                def run(input):\n    print('working')\n    return {'n': input['n'] * helper.FACTOR, 't': 'ü'}\n";
    let result = function_result("double.py", text, json!({"n": 21})).await;
    assert_output(&result, json!({"n": 42, "t": "ü"}));
    assert_eq!(result.stderr_tail, "loading\nworking\n");
}

#[tokio::test]
async fn a_python_file_without_run_is_a_plain_program() {
    let text = "import json, sys\nif __name__ == '__main__':\n    print(json.dumps({'got': json.load(sys.stdin)}))\n";
    assert_output(
        &function_result("plain.py", text, json!([1])).await,
        json!({"got": [1]}),
    );
}

#[tokio::test]
async fn an_async_run_in_python_is_awaited() {
    let text = "import asyncio\nasync def run(input):\n    await asyncio.sleep(0)\n    return input\n";
    assert_output(&function_result("later.py", text, json!("x")).await, json!("x"));
}

// F065
#[tokio::test]
async fn nan_is_refused_where_it_is_made() {
    let result = function_result(
        "nan.py",
        "def run(input):\n    return float('nan')\n",
        json!(null),
    )
    .await;
    assert_eq!(result.ending, Ending::Error);
    assert!(
        result.stderr_tail.contains("not JSON compliant"),
        "{}",
        result.stderr_tail
    );
    let result = function_result("nan.js", "exports.run = () => ({ratio: 0 / 0});\n", json!(null)).await;
    assert_eq!(result.ending, Ending::Error);
    assert!(
        result.stderr_tail.contains("run returned NaN at \"ratio\""),
        "{}",
        result.stderr_tail
    );
}

#[tokio::test]
async fn a_module_that_is_missing_is_named() {
    let result = function_result(
        "m.py",
        "import nowhere\ndef run(input):\n    return 1\n",
        json!(null),
    )
    .await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "ModuleNotFound")
    );
}

#[tokio::test]
async fn a_node_file_that_exports_an_async_run_is_awaited_and_ended() {
    let text = "import { factor } from './helper.mjs';\n\
                export async function run(input) {\n  console.log('working');\n  setInterval(() => {}, 1000);\n  \
                return { n: input.n * factor };\n}\n";
    let result = function_result("double.mjs", text, json!({"n": 21})).await;
    assert_output(&result, json!({"n": 42}));
    assert_eq!(result.stderr_tail, "working\n");
}

#[tokio::test]
async fn a_node_file_without_run_is_the_main_program() {
    let text = "const input = JSON.parse(require('fs').readFileSync(0));\n\
                if (require.main === module) console.log(JSON.stringify({ got: input }));\n";
    assert_output(
        &function_result("plain.js", text, json!([1])).await,
        json!({"got": [1]}),
    );
}

#[tokio::test]
async fn a_rejection_in_node_is_an_error_with_its_cause() {
    let text = "exports.run = async () => { throw new Error('no such customer'); };\n";
    let result = function_result("f.js", text, json!(null)).await;
    assert_eq!((result.ending, result.exit_code), (Ending::Error, Some(1)));
    assert!(
        result.stderr_tail.contains("no such customer"),
        "{}",
        result.stderr_tail
    );
}

// F041
#[tokio::test]
async fn a_grandchild_that_keeps_stdout_open_holds_up_nothing() {
    let result = function_result("f.sh", "sleep 300 & echo '{\"a\":1}'\n", json!(null)).await;
    assert_output(&result, json!({"a": 1}));
}

// F046
#[tokio::test]
async fn a_program_that_ignores_sigterm_ends_at_its_deadline() {
    let mut real = Real::start().await;
    let mut assignment = command(&[
        "sh",
        "-c",
        "trap '' TERM; echo begun; while :; do sleep 0.1; done",
    ]);
    assignment.remaining_ms = 1500;
    let result = real.run(&assignment).await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Timeout, "DeadlineExceeded"),
        "{}",
        result.message
    );
    assert_eq!(result.stdout_tail, "begun\n");
    assert!(result.process_tree_empty);
}

#[tokio::test]
async fn an_interpreter_that_is_missing_is_named() {
    let mut real = Real::start().await;
    let result = real.run(&command(&["no-such-program"])).await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "InterpreterNotFound"),
        "{}",
        result.message
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_that_may_be_cached_runs_once_for_the_same_input() {
    let mut real = Real::start().await;
    real.skill("dice.sh", "#!/bin/sh\nod -An -N4 -tu4 /dev/urandom\n");
    let mut assignment = function("dice.sh");
    let first = real.next(assignment.clone()).await;
    let second = real.next(assignment.clone()).await;
    assert_ne!(first.output, second.output, "nobody asked for the cache");
    assignment.cache = Some(CacheKey::default());
    let first = real.next(assignment.clone()).await;
    let second = real.next(assignment.clone()).await;
    assert_eq!(
        (first.reason.as_str(), second.reason.as_str()),
        ("Completed", "Cached")
    );
    assert_eq!(first.output, second.output);
    assignment.input = Some(Input::Inline { value: json!(1) });
    let third = real.next(assignment.clone()).await;
    assert_eq!(third.reason, "Completed");
    assert_ne!(third.output, second.output);
    real.skill("dice.sh", "#!/bin/sh\nexit 3\n");
    assignment.input = Some(Input::Inline { value: json!(2) });
    for _ in 0..2 {
        let failed = real.next(assignment.clone()).await;
        assert_eq!(failed.reason, "ExitCode", "a failure is not kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_work_prints_of_a_secret_is_written_down_nowhere() {
    let mut real = Real::with_secret("API_KEY", "hunter2hunter2").await;
    let mut assignment = command(&[
        "sh",
        "-c",
        "printf hunter2; echo $API_KEY; echo key $API_KEY >&2; exit 3",
    ]);
    assignment.inherit_env = vec!["API_KEY".to_owned()];
    let result = real.next(assignment).await;
    // The secret stands there twice, the second beginning within the first.
    assert_eq!(result.stdout_tail, "***\n");
    assert_eq!(result.stderr_tail, "key ***\n");
    assert!(!serde_json::to_string(&result).unwrap().contains("hunter2hunter2"));
    for log in ["stdout", "stderr"] {
        let written = std::fs::read_to_string(real.world.evidence(log)).unwrap();
        assert!(
            written.contains("***") && !written.contains("hunter2hunter2"),
            "{written}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_is_data_and_is_not_changed() {
    let mut real = Real::with_secret("API_KEY", "hunter2hunter2").await;
    real.skill("f.sh", "#!/bin/sh\nprintf '\"%s\"' $API_KEY\n");
    let mut assignment = function("f.sh");
    assignment.inherit_env = vec!["API_KEY".to_owned()];
    let result = real.next(assignment).await;
    assert_output(&result, json!("hunter2hunter2"));
    assert_eq!(result.stdout_tail, "\"***\"");
}
