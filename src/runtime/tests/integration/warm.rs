//! Processes that stay and serve one call after another, with the real executor.

use crate::real::Real;
use crate::world::function;
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{Assignment, FileRef, Input, SkillFile, SkillFiles, Warm, Work};
use agentrun_runtime::store::sha256_of;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// Counts its calls, and does what it is asked.
const PYTHON: &str = "import os, sys, time
calls = 0
def run(input):
    global calls
    calls += 1
    print('call', calls)
    if input == 'fail': raise ValueError('no such customer')
    if input == 'sleep': time.sleep(60)
    if input == 'exit': os._exit(0)
    if input == 'nan': return float('nan')
    folder = os.environ['TMPDIR']
    found = len(os.listdir(folder))
    if input == 'deep': os.makedirs(folder + '/d' * 100)
    open(folder + '/left', 'w').close()
    return {'calls': calls, 'found': found, 'length': len(str(input)), 'stdin': len(sys.stdin.read())}
";

const NODE: &str = "let calls = 0;
export async function run(input) {
  calls += 1;
  console.log('call', calls);
  if (input === 'fail') throw new Error('no such customer');
  if (input === 'sleep') await new Promise((done) => setTimeout(done, 60000));
  if (input === 'exit') process.exit(0);
  if (input === 'nan') return NaN;
  return { calls, length: JSON.stringify(input).length };
}
";

/// Speaks the protocol itself; each request is one of its own commands.
const SHELL: &str = "#!/bin/sh
[ \"$AGENTRUN_WARM\" = 1 ] || exit 9
echo '{\"ready\": true}'
calls=0
while read -r request; do
  calls=$((calls + 1))
  case $request in
    *two*) printf '1\\n2\\n' ;;
    *late*) (sleep 20; echo stray) & echo 1 ;;
    *text*) echo hello ;;
    *endless*) cat /dev/zero ;;
    *) echo \"{\\\"calls\\\":$calls}\" ;;
  esac
done
";

fn warm(file: &str, max_calls: Option<u32>, input: &str) -> Assignment {
    let mut assignment = function(file);
    if let Work::Function { warm, .. } = &mut assignment.work {
        *warm = Some(Warm {
            instances: 3,
            max_calls,
        });
    }
    assignment.input = Some(Input::Inline { value: input.into() });
    assignment
}

async fn started(file: &str, text: &str) -> Real {
    let real = Real::start().await;
    real.skill(file, text);
    let path = real.world.path("skills/skill").join(file);
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    real
}

#[track_caller]
fn calls(result: &AttemptResult) -> Value {
    assert_eq!(result.ending, Ending::Success, "{result:?}");
    assert!(
        !result.process_tree_empty,
        "a process is kept, and no proof may say otherwise"
    );
    result.output.as_ref().unwrap()["calls"].clone()
}

#[tokio::test]
async fn a_process_serves_later_calls_with_an_empty_temp_folder_and_stderr_of_their_own() {
    let mut real = started("f.py", PYTHON).await;
    for number in 1..=4 {
        let result = real.next(warm("f.py", None, "x")).await;
        assert_eq!(calls(&result), json!(number));
        let output = result.output.unwrap();
        assert_eq!((&output["found"], &output["stdin"]), (&json!(0), &json!(0)));
        assert_eq!(result.stderr_tail, format!("call {number}\n"));
        assert!(result.usage.peak_memory_bytes > 1 << 20, "{:?}", result.usage);
    }
}

#[tokio::test]
async fn after_its_last_call_an_error_or_a_timeout_a_new_process_serves() {
    for (file, text) in [("f.py", PYTHON), ("f.mjs", NODE)] {
        let mut real = started(file, text).await;
        for number in [1, 2, 1, 2] {
            assert_eq!(calls(&real.next(warm(file, Some(2), "x")).await), json!(number));
        }
        assert_eq!(calls(&real.next(warm(file, None, "x")).await), json!(1));
        let failed = real.next(warm(file, None, "fail")).await;
        assert_eq!(
            (failed.ending, failed.exit_code),
            (Ending::Error, Some(1)),
            "{failed:?}"
        );
        assert!(failed.message.contains("no such customer"), "{}", failed.message);
        assert!(failed.process_tree_empty);
        assert_eq!(calls(&real.next(warm(file, None, "x")).await), json!(1));
        let mut slow = warm(file, None, "sleep");
        slow.remaining_ms = 1000;
        let slow = real.next(slow).await;
        assert_eq!(
            (slow.ending, slow.reason.as_str(), slow.process_tree_empty),
            (Ending::Timeout, "DeadlineExceeded", true),
            "{slow:?}"
        );
        assert_eq!(calls(&real.next(warm(file, None, "x")).await), json!(1));
        let exited = real.next(warm(file, None, "exit")).await;
        assert_eq!(
            (exited.ending, exited.reason.as_str()),
            (Ending::ParseError, "NoOutput")
        );
        let nan = real.next(warm(file, None, "nan")).await;
        assert_eq!(nan.ending, Ending::Error, "{nan:?}");
        assert_eq!(calls(&real.next(warm(file, None, "x")).await), json!(1));
    }
}

#[tokio::test]
async fn a_program_in_any_language_speaks_the_protocol() {
    let mut real = started("server", SHELL).await;
    assert_eq!(calls(&real.next(warm("server", None, "x")).await), json!(1));
    assert_eq!(calls(&real.next(warm("server", None, "x")).await), json!(2));
    for (request, ending, reason) in [
        ("two", Ending::ParseError, "TrailingOutput"),
        ("text", Ending::ParseError, "InvalidOutput"),
        ("endless", Ending::ParseError, "OutputTooLarge"),
    ] {
        let result = real.next(warm("server", None, request)).await;
        assert_eq!(
            (result.ending, result.reason.as_str()),
            (ending, reason),
            "{}",
            result.message
        );
        assert_eq!(calls(&real.next(warm("server", None, "x")).await), json!(1));
    }
}

#[tokio::test]
async fn a_process_whose_temp_folder_cannot_be_emptied_serves_no_more() {
    let mut real = started("f.py", PYTHON).await;
    assert_eq!(calls(&real.next(warm("f.py", None, "deep")).await), json!(1));
    let next = real.next(warm("f.py", None, "x")).await;
    assert_eq!(calls(&next), json!(1));
    assert_eq!(next.output.unwrap()["found"], json!(0));
}

#[tokio::test]
async fn nothing_runs_between_two_calls() {
    let mut real = started("server", SHELL).await;
    let late = real.next(warm("server", None, "late")).await;
    assert_eq!(late.output, Some(json!(1)));
    let descendants = real.processes();
    assert!(descendants.iter().filter(|(name, _)| name == "server").count() >= 2);
    for (name, state) in descendants {
        let ours = ["agentrun-sandbo", "exe", "unshare"].contains(&name.as_str());
        assert!(ours || state == 'T', "{name} is in state {state}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_serve_says_why() {
    let mut real = started("one-shot", "#!/bin/sh\ncat\n").await;
    real.skill("missing.py", "import nowhere\ndef run(input):\n    return 1\n");
    let mut assignment = warm("one-shot", None, "x");
    assignment.remaining_ms = 60_000;
    let result = real.next(assignment).await;
    assert_eq!(
        (result.ending, result.reason.as_str(), result.process_tree_empty),
        (Ending::Error, "StartFailed", true)
    );
    assert!(
        result.message.contains("within 5.000 s") && result.message.contains("{\"ready\":true}"),
        "{}",
        result.message
    );
    let result = real.next(warm("missing.py", None, "x")).await;
    assert_eq!(
        (result.ending, result.reason.as_str()),
        (Ending::Error, "ModuleNotFound")
    );
}

#[tokio::test]
async fn another_digest_of_the_skill_gets_processes_of_its_own() {
    let mut real = started("f.py", PYTHON).await;
    let mut seen = Vec::new();
    for digest in ["sha256:a", "sha256:a", "sha256:b", "sha256:a"] {
        let mut assignment = warm("f.py", None, "x");
        assignment.skills = vec![SkillFiles {
            name: "skill".to_owned(),
            digest: digest.to_owned(),
            files: vec![SkillFile {
                file: FileRef {
                    path: "f.py".to_owned(),
                    bytes: PYTHON.len() as u64,
                    sha256: sha256_of(PYTHON.as_bytes()),
                },
                executable: false,
            }],
            mounted: false,
        }];
        seen.push(calls(&real.next(assignment).await));
    }
    assert_eq!(seen, [json!(1), json!(2), json!(1), json!(1)]);
}

#[tokio::test]
async fn an_input_of_many_lines_and_pieces_is_one_request() {
    let mut real = started("f.py", PYTHON).await;
    let text = "x".repeat(600_000);
    let file = real.world.path("data/workspace/in.json");
    std::fs::write(file, format!("\r\n\"{text}\"\n\n")).unwrap();
    for number in 1..=2 {
        let mut assignment = warm("f.py", None, "");
        assignment.input = Some(Input::File {
            path: "/mnt/user-data/workspace/in.json".to_owned(),
        });
        let result = real.next(assignment).await;
        assert_eq!(calls(&result), json!(number));
        assert_eq!(result.output.unwrap()["length"], json!(600_000));
    }
}
