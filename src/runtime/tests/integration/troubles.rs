//! The troubleshooting table of docs/functions.md, with real programs in each language: every end names what was
//! found and what to do.

use crate::real::{Real, assert_output};
use crate::world::function;
use agentrun_protocol::result::{AttemptResult, Ending};
use agentrun_protocol::work::{FileAccess, Input, Work};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// A compiled program does what its file is called.
const COMPILED: &str = r#"
use std::io::{Read, Write};
fn main() {
    let name = std::env::args().next().unwrap();
    match name.rsplit('/').next().unwrap() {
        "stray" => println!("warning: old\n{{}}"),
        "after" => println!("{{}}\ndone"),
        "two" => println!("{{\"a\":1}}\n{{\"a\":2}}"),
        "silent" => {}
        "fence" => println!("```json\n{{}}\n```"),
        "nan" => println!("{{\"x\":NaN}}"),
        "cut" => print!("{{\"a\":[1,2"),
        "bytes" => std::io::stdout().write_all(b"{\"a\":\"\xff\"}").unwrap(),
        "files" => {
            let opened: Vec<_> = (0..100).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
            println!("{}", opened.len());
        }
        "large" => std::fs::write(std::env::temp_dir().join("f"), vec![0; 3 << 20]).unwrap(),
        "memory" => println!("{}", vec![1_u8; 1 << 30].len()),
        "slow" => {
            print!("step 1");
            std::io::stdout().flush().unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        "coded" => {
            eprintln!("{{\"code\":\"NO_SUCH_CUSTOMER\",\"message\":\"17 is unknown\"}}");
            std::process::exit(3);
        }
        "refused" => std::fs::write("/etc/hosts", "x").unwrap(),
        "crash" => std::process::abort(),
        _ => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).unwrap();
            print!("{text}");
        }
    }
}
"#;

fn compiled() -> &'static PathBuf {
    static PROGRAM: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("main.rs"), folder.path().join("program"));
        std::fs::write(&source, COMPILED).unwrap();
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let built = Command::new(rustc)
            .args(["--edition", "2024", "-C", "debuginfo=0", "-o"])
            .args([&program, &source])
            .status()
            .unwrap();
        assert!(built.success());
        (folder, program)
    });
    program
}

/// What a case runs.
#[derive(Clone, Copy)]
enum Program<'a> {
    /// A file with this name and text.
    Text(&'a str, &'a str),
    /// The same, without the right to execute.
    Plain(&'a str, &'a str),
    /// The compiled program under this name.
    Compiled(&'a str),
}
use Program::{Compiled, Plain, Text};

impl Program<'_> {
    fn write(self, real: &Real) -> String {
        let (name, mode) = match self {
            Text(name, text) => {
                real.skill(name, text);
                (name, 0o755)
            }
            Plain(name, text) => {
                real.skill(name, text);
                (name, 0o644)
            }
            Compiled(name) => {
                real.skill(name, "");
                std::fs::copy(compiled(), real.world.path("skills/skill").join(name)).unwrap();
                (name, 0o755)
            }
        };
        let path = real.world.path("skills/skill").join(name);
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        name.to_owned()
    }
}

/// A program, the end that it must have, and what the message must say.
type Case<'a> = (Program<'a>, Ending, &'a str, &'a [&'a str]);

/// Runs all cases in one Pod; what is wrong is told for all of them at once.
async fn check(cases: &[Case<'_>]) {
    check_with(cases, |_| {}).await;
}

async fn check_with(cases: &[Case<'_>], adjust: impl Fn(&mut agentrun_protocol::work::Assignment)) {
    let mut real = Real::start().await;
    let mut wrong = String::new();
    for (program, ending, reason, parts) in cases {
        let file = program.write(&real);
        let mut assignment = function(&file);
        adjust(&mut assignment);
        let result = real.next(assignment).await;
        let fits = (result.ending, result.reason.as_str()) == (*ending, reason)
            && parts.iter().all(|part| result.message.contains(part))
            && result.process_tree_empty;
        if !fits {
            writeln!(
                wrong,
                "{file}: expected {ending:?} {reason} {parts:?}, found {result:#?}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[tokio::test]
async fn what_is_missing_is_named_in_every_language() {
    check(&[
        (
            Text("m.py", "import nowhere\nprint(1)\n"),
            Ending::Error,
            "ModuleNotFound",
            &["nowhere", "image"],
        ),
        (
            Text("run.py", "import nowhere\ndef run(input):\n    return 1\n"),
            Ending::Error,
            "ModuleNotFound",
            &["nowhere", "image"],
        ),
        (
            Text("m.js", "require('nowhere');\n"),
            Ending::Error,
            "ModuleNotFound",
            &["nowhere", "image"],
        ),
        (
            Text("m.mjs", "import x from 'nowhere';\nexport const run = () => x;\n"),
            Ending::Error,
            "ModuleNotFound",
            &["nowhere", "image"],
        ),
        (
            Text("m.sh", "set -e\nno-such-tool --version\n"),
            Ending::Error,
            "InterpreterNotFound",
            &["no-such-tool", "image"],
        ),
        (
            Text("i.sh", "#!/nowhere/bash\necho 1\n"),
            Ending::Error,
            "InterpreterNotFound",
            &["/nowhere/bash"],
        ),
        (
            Text("interpreter", "#!/usr/bin/env no-such-language\n"),
            Ending::Error,
            "InterpreterNotFound",
            &["no-such-language"],
        ),
        (
            Text("windows", "#!/bin/sh\r\necho 1\r\n"),
            Ending::Error,
            "InterpreterNotFound",
            &["carriage return"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_file_that_is_no_program_says_what_it_lacks() {
    check(&[
        (
            Text("bare", "echo 1\n"),
            Ending::Error,
            "StartFailed",
            &["#!/bin/sh"],
        ),
        (Text("empty", ""), Ending::Error, "StartFailed", &["first line"]),
        (
            Text("cut", "\u{7f}ELF\u{2}\u{1}"),
            Ending::Error,
            "StartFailed",
            &["neither a program"],
        ),
        (
            Plain("locked", "#!/bin/sh\necho 1\n"),
            Ending::Error,
            "PermissionDenied",
            &["executable bit"],
        ),
        (
            Text("s.py", "def run(input:\n"),
            Ending::Error,
            "ExitCode",
            &["SyntaxError"],
        ),
        (
            Text("s.js", "exports.run = (;\n"),
            Ending::Error,
            "ExitCode",
            &["SyntaxError"],
        ),
        (
            Text("s.sh", "if true\n"),
            Ending::Error,
            "ExitCode",
            &["yntax error"],
        ),
    ])
    .await;
}

// F060, F061, F062, F063, F065, F066
#[tokio::test]
async fn stdout_that_is_not_one_document_shows_what_stands_where() {
    let stray = &["print logs to stderr", "begins with `warning: old"][..];
    check(&[
        (
            Text("stray.py", "print('warning: old')\nprint('{}')\n"),
            Ending::ParseError,
            "InvalidOutput",
            stray,
        ),
        (
            Text("stray.js", "console.log('warning: old'); console.log('{}');\n"),
            Ending::ParseError,
            "InvalidOutput",
            stray,
        ),
        (
            Text("stray.sh", "echo warning: old; echo {}\n"),
            Ending::ParseError,
            "InvalidOutput",
            stray,
        ),
        (Compiled("stray"), Ending::ParseError, "InvalidOutput", stray),
        (
            Text("after.py", "print('{}')\nprint('done')\n"),
            Ending::ParseError,
            "TrailingOutput",
            &["byte 3", "stderr"],
        ),
        (
            Text("after.js", "console.log('{}'); console.log('done');\n"),
            Ending::ParseError,
            "TrailingOutput",
            &["byte 3", "stderr"],
        ),
        (
            Text("after.sh", "echo {}; echo done\n"),
            Ending::ParseError,
            "TrailingOutput",
            &["byte 3", "stderr"],
        ),
        (
            Compiled("after"),
            Ending::ParseError,
            "TrailingOutput",
            &["byte 3", "stderr"],
        ),
        (
            Compiled("two"),
            Ending::ParseError,
            "TrailingOutput",
            &["second document", "byte 8"],
        ),
        (
            Text("none.py", "pass\n"),
            Ending::ParseError,
            "NoOutput",
            &["print the result"],
        ),
        (
            Text("none.js", "\n"),
            Ending::ParseError,
            "NoOutput",
            &["print the result"],
        ),
        (
            Text("none.sh", "true\n"),
            Ending::ParseError,
            "NoOutput",
            &["print the result"],
        ),
        (
            Compiled("silent"),
            Ending::ParseError,
            "NoOutput",
            &["print the result"],
        ),
        (
            Text("fence.py", "print('```json\\n{}\\n```')\n"),
            Ending::ParseError,
            "InvalidOutput",
            &["Markdown fence"],
        ),
        (
            Compiled("fence"),
            Ending::ParseError,
            "InvalidOutput",
            &["Markdown fence"],
        ),
        (
            Text("nan.py", "import json\nprint(json.dumps({'x': float('nan')}))\n"),
            Ending::ParseError,
            "InvalidOutput",
            &["NaN", "byte 6"],
        ),
        (
            Compiled("nan"),
            Ending::ParseError,
            "InvalidOutput",
            &["NaN", "byte 5"],
        ),
        (
            Compiled("cut"),
            Ending::ParseError,
            "InvalidOutput",
            &["cut off", "byte 9"],
        ),
        (
            Text("cut.sh", "printf '{\"a\":[1,2'\n"),
            Ending::ParseError,
            "InvalidOutput",
            &["cut off", "byte 9"],
        ),
        (
            Compiled("bytes"),
            Ending::ParseError,
            "InvalidOutput",
            &["not UTF-8", "byte 6", "`{\"a\":\"\\xff\"}`"],
        ),
        (
            Text(
                "bytes.py",
                "import sys\nsys.stdout.buffer.write(b'{\"a\":\"\\xff\"}')\n",
            ),
            Ending::ParseError,
            "InvalidOutput",
            &["not UTF-8", "byte 6"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn limits_that_are_hit_name_their_field_in_every_language() {
    let files = &["max_open_files"][..];
    let large = &["max_file_mb"][..];
    check(&[
        (
            Text("files.py", "files = [open('/dev/null') for _ in range(100)]\n"),
            Ending::Error,
            "TooManyOpenFiles",
            files,
        ),
        (
            Text(
                "files.js",
                "for (let i = 0; i < 100; i++) require('fs').openSync('/dev/null');\n",
            ),
            Ending::Error,
            "TooManyOpenFiles",
            files,
        ),
        (Compiled("files"), Ending::Error, "TooManyOpenFiles", files),
        (
            Text(
                "large.py",
                "import os\nopen(os.environ['TMPDIR'] + '/f', 'wb').write(bytes(3 << 20))\n",
            ),
            Ending::Error,
            "FileTooLarge",
            large,
        ),
        (
            Text(
                "large.js",
                "require('fs').writeFileSync(process.env.TMPDIR + '/f', Buffer.alloc(3 << 20));\n",
            ),
            Ending::Error,
            "FileTooLarge",
            large,
        ),
        (
            Text("large.sh", "set -e\nhead -c 3000000 /dev/zero > $TMPDIR/f\n"),
            Ending::Error,
            "FileTooLarge",
            large,
        ),
        (Compiled("large"), Ending::Error, "FileTooLarge", large),
    ])
    .await;
}

#[tokio::test]
async fn memory_over_its_cap_names_the_cap_in_every_language() {
    let memory = &["max_memory_mb"][..];
    let cases: &[Case<'_>] = &[
        (
            Text("memory.py", "bytearray(1 << 30)\n"),
            Ending::Error,
            "ExitCode",
            memory,
        ),
        (
            Text(
                "memory.js",
                "const all = []; for (;;) all.push(new Array(1e5).fill({}).map(() => ({})));\n",
            ),
            Ending::Error,
            "ExitCode",
            memory,
        ),
        (Compiled("memory"), Ending::Error, "ExitCode", memory),
    ];
    check_with(cases, |assignment| {
        assignment.limits.memory_bytes = Some(128 << 20);
    })
    .await;
}

// F046, F058
#[tokio::test]
async fn time_over_its_limit_keeps_what_was_written_in_every_language() {
    let mut real = Real::start().await;
    for program in [
        Text("slow.py", "import time\nprint('step 1')\ntime.sleep(60)\n"),
        Text(
            "slow.js",
            "process.stdout.write('step 1'); setTimeout(() => {}, 60000);\n",
        ),
        Text("slow.sh", "echo step 1; sleep 60\n"),
        Compiled("slow"),
    ] {
        let mut assignment = function(&program.write(&real));
        assignment.remaining_ms = 1500;
        let result = real.next(assignment).await;
        assert_eq!(
            (result.ending, result.reason.as_str(), result.stdout_tail.trim()),
            (Ending::Timeout, "DeadlineExceeded", "step 1"),
            "{result:?}"
        );
        assert!(
            result.message.contains("1.500 s") && result.process_tree_empty,
            "{result:?}"
        );
    }
}

/// Output that was written until any other end is kept too.
#[tokio::test]
async fn what_was_written_before_a_crash_is_kept() {
    let mut real = Real::start().await;
    for program in [
        Text(
            "crash.py",
            "import sys\nprint('step 1')\nprint('why', file=sys.stderr)\nsys.exit(3)\n",
        ),
        Text(
            "crash.js",
            "console.log('step 1'); console.error('why'); process.exit(3);\n",
        ),
        Text("crash.sh", "echo step 1; echo why >&2; kill -9 $$\n"),
        Text("limit.py", "print('step 1')\nraise ValueError('why')\n"),
    ] {
        let result = real.next(function(&program.write(&real))).await;
        assert_eq!(result.ending, Ending::Error);
        assert!(
            result.stdout_tail.starts_with("step 1") && result.stderr_tail.contains("why"),
            "{result:?}"
        );
    }
}

#[tokio::test]
async fn a_structured_error_is_forwarded_from_every_language() {
    let error = r#"{"code":"NO_SUCH_CUSTOMER","message":"17 is unknown"}"#;
    let python = format!("import sys\nprint('looking')\nprint('{error}', file=sys.stderr)\nsys.exit(3)\n");
    let node = format!("console.error('{error}'); process.exitCode = 3;\n");
    let shell = format!("echo '{error}' >&2; exit 3\n");
    let parts = &["NO_SUCH_CUSTOMER: 17 is unknown"][..];
    check(&[
        (Text("coded.py", &python), Ending::Error, "ExitCode", parts),
        (Text("coded.js", &node), Ending::Error, "ExitCode", parts),
        (Text("coded.sh", &shell), Ending::Error, "ExitCode", parts),
        (Compiled("coded"), Ending::Error, "ExitCode", parts),
    ])
    .await;
}

#[tokio::test]
async fn what_nobody_caught_is_quoted() {
    check(&[
        (
            Text(
                "raise.py",
                "def run(input):\n    raise ValueError('no such customer')\n",
            ),
            Ending::Error,
            "ExitCode",
            &["no such customer"],
        ),
        (
            Text("reject.js", "Promise.reject(new Error('no such customer'));\n"),
            Ending::Error,
            "ExitCode",
            &["no such customer"],
        ),
        (
            Text(
                "reject.mjs",
                "export async function run() { throw new Error('no such customer'); }\n",
            ),
            Ending::Error,
            "ExitCode",
            &["no such customer"],
        ),
        (
            Compiled("crash"),
            Ending::Error,
            "ExitCode",
            &["signal 6 (SIGABRT)"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn a_path_that_files_does_not_open_names_the_field() {
    check(&[
        (
            Text("write.py", "open('/etc/hosts', 'w')\n"),
            Ending::Error,
            "PermissionDenied",
            &["files field"],
        ),
        (
            Text("write.js", "require('fs').writeFileSync('/etc/hosts', '');\n"),
            Ending::Error,
            "PermissionDenied",
            &["files field"],
        ),
        (
            Text("write.sh", "echo > /etc/hosts\n"),
            Ending::Error,
            "PermissionDenied",
            &["files field"],
        ),
        (
            Compiled("refused"),
            Ending::Error,
            "PermissionDenied",
            &["files field"],
        ),
    ])
    .await;
}

// F054
#[tokio::test]
async fn who_reads_more_than_there_is_sees_the_end_and_does_not_hang() {
    let mut real = Real::start().await;
    for program in [
        Text(
            "more.py",
            "import sys\nsys.stdin.read()\nprint(len(sys.stdin.read()))\n",
        ),
        Text(
            "more.js",
            "const fs = require('fs'); fs.readFileSync(0); console.log(fs.readFileSync(0).length);\n",
        ),
        Text("more.sh", "cat > /dev/null; wc -c\n"),
    ] {
        let result = real.next(function(&program.write(&real))).await;
        assert_output(&result, json!(0));
    }
}

/// The output of one function is the input of the next.
async fn chain(real: &mut Real, first: Input, programs: &[Program<'_>]) -> AttemptResult {
    let mut input = first;
    let mut last = None;
    for program in programs {
        let mut assignment = function(&program.write(real));
        assignment.input = Some(input);
        let result = real.next(assignment).await;
        assert_eq!(result.ending, Ending::Success, "{result:?}");
        input = match (&result.output, &result.output_ref) {
            (Some(value), _) => Input::Inline { value: value.clone() },
            (None, Some(file)) => Input::Stored { file: file.clone() },
            (None, None) => panic!("no output: {result:?}"),
        };
        last = Some(result);
    }
    last.unwrap()
}

const PYTHON: Program<'_> = Text("same.py", "def run(input):\n    return input\n");
const NODE: Program<'_> = Text("same.mjs", "export const run = (input) => input;\n");
const SHELL: Program<'_> = Text("same.sh", "cat\n");

// F064
#[tokio::test]
async fn a_chain_of_functions_keeps_every_type() {
    let value = json!({
        "cents": 9_007_199_254_740_991_i64,
        "negative": -1,
        "decimal": "12.10",
        "time": "2026-01-02T03:04:05Z",
        "none": null,
        "yes": true,
        "empty": [{}, [], ""],
        "text": "a ü 漢 😀 \u{0} \u{2028} \\ \" /",
    });
    let mut real = Real::start().await;
    let first = Input::Inline { value: value.clone() };
    let result = chain(&mut real, first, &[PYTHON, NODE, SHELL, Compiled("same"), PYTHON]).await;
    assert_eq!(result.output, Some(value));
}

#[tokio::test]
async fn integers_beyond_two_to_the_53_are_exact_where_the_language_is() {
    let value = json!({"id": 9_007_199_254_740_993_i64, "most": u64::MAX});
    let mut real = Real::start().await;
    let first = Input::Inline { value: value.clone() };
    let result = chain(&mut real, first, &[PYTHON, SHELL, Compiled("same"), PYTHON]).await;
    let bytes = match (&result.output, &result.output_ref) {
        (Some(value), _) => serde_json::to_vec(value).unwrap(),
        (None, file) => {
            let path = file.as_ref().unwrap().path.clone();
            std::fs::read(real.world.folder.path().join(path)).unwrap()
        }
    };
    assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), value);
}

#[tokio::test]
async fn text_of_many_bytes_for_each_character_survives_every_pipe() {
    let text = "漢字😀ü".repeat(60_000);
    let mut real = Real::start().await;
    std::fs::write(
        real.world.path("data/workspace/in.json"),
        json!({"t": text}).to_string(),
    )
    .unwrap();
    let first = Input::File {
        path: "/mnt/user-data/workspace/in.json".to_owned(),
    };
    let result = chain(&mut real, first, &[PYTHON, NODE, SHELL, Compiled("same")]).await;
    let stored = std::fs::read(real.world.folder.path().join(result.output_ref.unwrap().path)).unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&stored).unwrap(),
        json!({"t": text})
    );
}

#[tokio::test]
async fn a_function_finds_its_own_folder_and_writes_where_it_may() {
    let mut real = Real::start().await;
    real.skill("helper.py", "FACTOR = 2\n");
    let outputs = real.world.path("data/outputs/made.txt");
    let text = format!(
        "import helper\ndef run(input):\n    open({:?}, 'w').write('x')\n    return helper.FACTOR\n",
        outputs.display().to_string()
    );
    let mut assignment = function(&Text("f.py", &text).write(&real));
    let Work::Function { files, .. } = &mut assignment.work else {
        panic!("no function");
    };
    *files = FileAccess::Write;
    let result = real.next(assignment).await;
    assert_output(&result, json!(2));
    assert_eq!(result.artifacts[0].path, "/mnt/user-data/outputs/made.txt");
}
