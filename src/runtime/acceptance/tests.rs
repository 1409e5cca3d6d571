use super::*;
use crate::store::calls::CallLog;
use crate::store::evidence::Evidence;
use agentrun_core::acceptance::{CallEnd, CommandRun};
use agentrun_protocol::tool::{BashRecord, CallRecord, Effect, ToolName};
use agentrun_protocol::work::{Assignment, AttemptId, Limits, Work};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use tempfile::TempDir;

/// User data, skills and state of one thread.
struct Ground {
    folder: TempDir,
    roots: Roots,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "data/uploads",
            "data/workspace",
            "data/outputs",
            "skills/s",
            "state",
        ] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let roots = Roots::new(folder.path().join("data"), folder.path().join("skills"));
        Self { folder, roots }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    fn evidence(&self, attempt: i32) -> Evidence {
        let assignment = Assignment {
            id: AttemptId {
                uid: "uid".into(),
                attempt,
            },
            subtask: "a/b".into(),
            run_uid: "run".into(),
            task: "b".into(),
            work: Work::Command {
                argv: Vec::new(),
                working_dir: None,
            },
            input: None,
            files: Vec::new(),
            copies: Vec::new(),
            skills: Vec::new(),
            env: std::collections::BTreeMap::default(),
            inherit_env: Vec::new(),
            tcp: false,
            remaining_ms: 1,
            cache: None,
            limits: Limits::COMMAND,
            acceptance: Vec::new(),
            notes: Vec::new(),
        };
        Evidence::new(&self.folder.path().join("state"), &assignment).unwrap()
    }

    fn before(&self, criteria: &[&str], attempt: i32) -> Before {
        let criteria: Vec<_> = criteria.iter().map(|text| (*text).to_owned()).collect();
        Before::of(&criteria, &self.roots, &self.evidence(attempt)).unwrap()
    }

    fn verdict_since(&self, criterion: &str, before: &Before, calls: &[Call]) -> CriterionVerdict {
        let facts = Facts {
            roots: &self.roots,
            before,
            calls,
            until: Instant::now() + CHECK_TIME,
        };
        let [verdict] = check(&[criterion.to_owned()], &facts).try_into().unwrap();
        assert_eq!(verdict.criterion, criterion);
        verdict
    }

    /// `holds`, `fails` or `open`, and the detail.
    fn found(&self, criterion: &str) -> (&'static str, String) {
        let verdict = self.verdict_since(criterion, &Before::default(), &[]);
        (word(&verdict), verdict.detail)
    }

    fn word(&self, criterion: &str) -> &'static str {
        self.found(criterion).0
    }
}

fn word(verdict: &CriterionVerdict) -> &'static str {
    match (verdict.checked, verdict.holds) {
        (true, true) => "holds",
        (true, false) => "fails",
        (false, _) => "open",
    }
}

#[test]
fn relative_paths_start_at_the_workspace_and_absolute_ones_are_virtual() {
    let ground = Ground::new();
    ground.write("workspace/a.txt", "x");
    ground.write("outputs/b.json", "{}");
    assert_eq!(ground.word("file:a.txt exists"), "holds");
    assert_eq!(
        ground.word("file:/mnt/user-data/workspace/a.txt non-empty"),
        "holds"
    );
    assert_eq!(
        ground.word("file:/mnt/user-data/outputs/b.json json-valid"),
        "holds"
    );
    assert_eq!(ground.word("file:b.json exists"), "fails");
    assert_eq!(ground.word("The text is polite"), "open");
    assert_eq!(ground.word("rerun:true"), "open");
}

// F120
#[test]
fn a_file_of_no_bytes_is_a_regular_file() {
    let ground = Ground::new();
    ground.write("workspace/a", "");
    assert_eq!(ground.word("file:a exists"), "holds");
    assert_eq!(ground.found("file:a non-empty"), ("fails", "it is empty".into()));
}

#[test]
fn what_is_no_regular_file_does_not_hold_and_blocks_nobody() {
    let ground = Ground::new();
    fs::create_dir(ground.path("workspace/folder")).unwrap();
    mknodat(
        CWD,
        ground.path("workspace/pipe"),
        FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    let _socket = UnixListener::bind(ground.path("workspace/socket")).unwrap();
    for name in ["folder", "pipe", "socket"] {
        for check in ["exists", "non-empty", "json-valid", "csv-columns:a"] {
            let (word, detail) = ground.found(&format!("file:{name} {check}"));
            assert_eq!((word, detail), ("fails", format!("it is a {name}, not a file")));
        }
        assert_eq!(ground.word(&format!("file_written:{name}")), "fails");
    }
}

#[test]
fn links_count_for_what_they_reach_inside_their_folder() {
    let ground = Ground::new();
    ground.write("workspace/a.json", "{}");
    ground.write("outputs/b.json", "{}");
    let link = |name: &str, target: &str| symlink(target, ground.path(&format!("workspace/{name}"))).unwrap();
    link("inside", "a.json");
    link("absolute", "/mnt/user-data/workspace/a.json");
    link("dangling", "nothing");
    link("itself", "itself");
    link("passwd", "/etc/passwd");
    link("up", "../outputs/b.json");
    link("proc", "/proc/self/fd/0");
    for (name, expected) in [
        ("inside", "holds"),
        ("absolute", "holds"),
        ("dangling", "fails"),
        ("itself", "fails"),
        ("passwd", "fails"),
        ("up", "fails"),
        ("proc", "fails"),
    ] {
        assert_eq!(
            ground.word(&format!("file:{name} json-valid")),
            expected,
            "{name}"
        );
    }
}

#[test]
fn size_decides_about_sparse_and_huge_files_without_a_read() {
    let ground = Ground::new();
    let file = fs::File::create(ground.path("workspace/huge")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(ground.word("file:huge non-empty"), "holds");
    assert_eq!(ground.word("file:huge json-valid"), "open");
    assert_eq!(ground.word("file:huge csv-columns:a"), "open");
    ground.write("workspace/long.json", format!("[\"{}\"]", "x".repeat(50_000)));
    assert_eq!(ground.word("file:long.json json-valid"), "open");
    ground.write("workspace/fits.json", format!("[\"{}\"]", "x".repeat(49_996)));
    assert_eq!(ground.word("file:fits.json json-valid"), "holds");
}

#[test]
fn bad_content_is_told_in_one_short_line() {
    let ground = Ground::new();
    let deep = "[".repeat(10_000) + &"]".repeat(10_000);
    for content in [
        &b"\xff\xfe\x00"[..],
        b"NaN",
        b"{\"a\":1,\"a\":2}",
        b"{",
        b"{}\n{}",
        deep.as_bytes(),
    ] {
        ground.write("workspace/a.json", content);
        let (word, detail) = ground.found("file:a.json json-valid");
        assert_eq!(word, "fails", "{detail}");
        assert!(
            detail.chars().count() <= 160 && !detail.contains('\n'),
            "{detail}"
        );
    }
    ground.write("workspace/a.csv", "x\u{1b}[31m,\"b\nc\"\n");
    let (word, detail) = ground.found("file:a.csv csv-columns:missing");
    assert_eq!(word, "fails");
    assert!(!detail.contains(['\n', '\u{1b}']), "{detail}");
}

#[test]
fn odd_names_are_names() {
    let ground = Ground::new();
    let long = "x".repeat(255);
    for name in ["a\nb", "exists", " spaced name", "-rf", "ünï", long.as_str()] {
        ground.write(&format!("workspace/{name}"), "x");
        assert_eq!(ground.word(&format!("file:./{name} exists")), "holds", "{name}");
    }
    assert_eq!(ground.word(&format!("file:{} exists", "x".repeat(256))), "open");
    assert_eq!(
        ground.word(&format!("file:{} exists", "a/".repeat(200) + "b")),
        "fails"
    );
    assert_eq!(ground.word("file:exists/a exists"), "fails");
}

#[test]
fn what_admission_refuses_is_open_here() {
    let ground = Ground::new();
    ground.write("uploads/a", "x");
    for criterion in [
        "file:/etc/passwd exists",
        "file:/mnt/user-data/uploads/a exists",
        "file:../uploads/a exists",
    ] {
        assert_eq!(ground.word(criterion), "open", "{criterion}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_is_open() {
    if rustix::process::geteuid().is_root() {
        return; // root opens everything
    }
    let ground = Ground::new();
    ground.write("workspace/a.json", "{}");
    fs::set_permissions(ground.path("workspace/a.json"), fs::Permissions::from_mode(0o0)).unwrap();
    assert_eq!(ground.word("file:a.json exists"), "holds");
    assert_eq!(ground.word("file:a.json json-valid"), "open");
}

#[test]
fn schemas_come_from_uploads_and_skills_too() {
    let ground = Ground::new();
    let schema = r#"{"type": "object", "required": ["a"]}"#;
    ground.write("workspace/a.json", r#"{"a": 1}"#);
    ground.write("workspace/b.json", "{}");
    ground.write("uploads/s.json", schema);
    fs::write(ground.folder.path().join("skills/s/s.json"), schema).unwrap();
    for schema in [
        "/mnt/user-data/uploads/s.json",
        "/mnt/skills/s/s.json",
        "/mnt/skills/custom/s/s.json",
    ] {
        assert_eq!(
            ground.word(&format!("file:a.json json-schema:{schema}")),
            "holds",
            "{schema}"
        );
        assert_eq!(
            ground.word(&format!("file:b.json json-schema:{schema}")),
            "fails",
            "{schema}"
        );
    }
    assert_eq!(
        ground.word("file:a.json json-schema:/mnt/skills/t/s.json"),
        "open"
    );
    assert_eq!(ground.word("file:a.json json-schema:none.json"), "open");
}

#[test]
fn a_file_is_written_when_it_is_new_or_changed_since_the_first_attempt() {
    let ground = Ground::new();
    ground.write("workspace/old", "x");
    ground.write("workspace/changed", "x");
    let criteria = [
        "file_written:new",
        "file_written:old",
        "file_written:changed",
        "file_written:never",
    ];
    let first = ground.before(&criteria, 1);
    ground.write("workspace/new", "x");
    ground.write("workspace/changed", "y");
    // What the first attempt wrote, a second one did not have to write again.
    let second = ground.before(&criteria, 2);
    assert_eq!(first, second);
    let word = |criterion| word(&ground.verdict_since(criterion, &second, &[]));
    assert_eq!(criteria.map(word), ["holds", "open", "holds", "fails"]);
    // Nobody had looked before.
    assert_eq!(ground.word("file_written:new"), "open");
}

#[test]
fn tests_passed_reads_the_whole_log_of_the_call() {
    let ground = Ground::new();
    let log = |name: &str, content: &[u8]| {
        let path = ground.folder.path().join("state").join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let call = |stdout: &[u8], whole: bool| Call {
        run: CommandRun {
            argv: vec!["pytest".into(), "-q".into()],
            end: CallEnd::Exited(0),
        },
        output: Output::Logs([log("stdout", stdout), log("stderr", b"")]),
        whole,
    };
    let word = |call| word(&ground.verdict_since("tests_passed:pytest -q", &Before::default(), &[call]));
    let noise = [
        &b"\xff noise\n".repeat(100_000)[..],
        &b"x".repeat(1 << 20),
        b"\n3 passed in 0.10s\n",
    ]
    .concat();
    assert_eq!(word(call(&noise, true)), "holds");
    assert_eq!(word(call(&noise, false)), "open");
    assert_eq!(word(call(b"", true)), "open");
    assert_eq!(word(call(b"1 failed, 2 passed in 0.10s", true)), "fails");
    let mut gone = call(b"", true);
    gone.output = Output::Logs(["a", "b"].map(|name| ground.folder.path().join(name)));
    assert_eq!(word(gone), "open");
    assert_eq!(ground.word("tests_passed:pytest -q"), "open");
}

#[test]
fn what_is_not_checked_in_time_is_open() {
    let ground = Ground::new();
    ground.write("workspace/a", "x");
    let facts = Facts {
        roots: &ground.roots,
        before: &Before::default(),
        calls: &[],
        until: Instant::now(),
    };
    let verdicts = check(&["file:a exists".to_owned()], &facts);
    assert_eq!(word(&verdicts[0]), "open");
}

/// Command, exit code, head and tail of the output.
type ShellCall<'a> = (&'a str, Option<i32>, &'a str, &'a str);

/// The verdict on `pytest -q` after an agent's shell calls, attempt by attempt.
fn agent_ran(attempts: &[&[ShellCall<'_>]]) -> &'static str {
    let ground = Ground::new();
    let mut number = 0;
    for calls in attempts {
        number += 1;
        let log = CallLog::open(&ground.evidence(number)).unwrap();
        for (command, exit_code, head, tail) in *calls {
            let shell = BashRecord {
                command: (*command).to_owned(),
                exit_code: *exit_code,
                timed_out: exit_code.is_none(),
                sha256: Some(String::new()),
                head: (*head).to_owned(),
                tail: (*tail).to_owned(),
                ..BashRecord::default()
            };
            log.append(CallRecord {
                number: 0,
                tool: ToolName::Bash,
                ok: true,
                duration_ms: 1,
                effect: Effect::Bash(shell),
            })
            .unwrap();
        }
    }
    let calls = of_agent(&ground.evidence(number), number).unwrap();
    word(&ground.verdict_since("tests_passed:pytest -q", &Before::default(), &calls))
}

#[test]
fn the_shell_calls_of_an_agent_count_and_the_newest_decides() {
    let passed = ("cd app && pytest -q", Some(0), "3 passed in 0.10s\n", "");
    let failed = ("pytest -q", Some(1), "1 failed in 0.10s\n", "");
    assert_eq!(agent_ran(&[&[]]), "open");
    assert_eq!(agent_ran(&[&[failed, passed]]), "holds");
    assert_eq!(agent_ran(&[&[passed, failed]]), "fails");
    assert_eq!(
        agent_ran(&[&[passed, failed], &[passed]]),
        "holds",
        "an agent goes on in its next attempt"
    );
    assert_eq!(
        agent_ran(&[&[passed], &[]]),
        "holds",
        "and does not repeat what it did"
    );
    let long = ("pytest -q", Some(0), "noise", "3 passed in 0.10s\n");
    assert_eq!(
        agent_ran(&[&[long]]),
        "open",
        "what is between the two ends is unknown"
    );
    let late = ("pytest -q", None, "3 passed in 0.10s\n", "");
    assert_eq!(agent_ran(&[&[passed, late]]), "fails");
    let piped = ("pytest -q | tail -1", Some(0), "3 passed in 0.10s\n", "");
    assert_eq!(agent_ran(&[&[piped]]), "open");
}
