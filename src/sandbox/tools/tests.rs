//! The file tools on real files, in one process. What needs a process of its own is in `tests/tools.rs`.

// `json!` makes values, and each is used once.
#![allow(clippy::needless_pass_by_value)]

use super::run;
use crate::resolve::Roots;
use agentrun_protocol::tool::{Facts, Session, ToolName, ToolOutput};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

/// Areas in a temporary folder, and a session.
struct World {
    folder: tempfile::TempDir,
    roots: Roots,
    session: Session,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for name in ["data/uploads", "data/workspace", "data/outputs", "skills/one"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let roots = Roots::new(folder.path().join("data"), folder.path().join("skills"));
        let world = World {
            folder,
            roots,
            session: Session::default(),
        };
        world.put("uploads/secret", "secret\n");
        fs::write(world.folder.path().join("skills/one/SKILL.md"), "skill\n").unwrap();
        world
    }

    fn guarded() -> World {
        World {
            session: Session::guarded(),
            ..World::new()
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("data").join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    fn raw(&mut self, tool: ToolName, arguments: &[u8]) -> ToolOutput {
        let output = run(tool, arguments, &self.session, &self.roots);
        self.session.remember(output.seen.iter().cloned());
        let real = self.folder.path().to_string_lossy().into_owned();
        assert!(
            !output.text.contains(&real),
            "a real path is shown: {}",
            output.text
        );
        output
    }

    fn call(&mut self, tool: ToolName, arguments: Value) -> ToolOutput {
        self.raw(tool, arguments.to_string().as_bytes())
    }

    #[track_caller]
    fn ok(&mut self, tool: ToolName, arguments: Value) -> String {
        let output = self.call(tool, arguments);
        assert!(output.ok, "{}", output.text);
        output.text
    }

    /// The code and the text of a refusal.
    #[track_caller]
    fn refused(&mut self, tool: ToolName, arguments: Value) -> (String, String) {
        refusal(self.call(tool, arguments))
    }
}

#[track_caller]
fn refusal(output: ToolOutput) -> (String, String) {
    match output.facts {
        Facts::Refused { code } if !output.ok => (code, output.text),
        facts => panic!("not refused: {facts:?} {}", output.text),
    }
}

use ToolName::{Glob, Grep, Ls, PresentFiles, ReadFile, StrReplace, ViewImage, WriteFile};

const FILE_TOOLS: [ToolName; 8] = [
    Ls,
    ReadFile,
    WriteFile,
    StrReplace,
    Glob,
    Grep,
    ViewImage,
    PresentFiles,
];

#[test]
fn arguments_that_are_none_are_named_with_the_fields_that_are() {
    let mut world = World::new();
    let deep = format!("{}{}", "{\"path\":".repeat(10_000), "}".repeat(10_000));
    let wide = format!("{{\"path\":\"{}\"}}", "x".repeat(3 << 20));
    let bad: [&[u8]; 14] = [
        b"",
        b"null",
        b"[]",
        b"[\"a\"]",
        b"{",
        b"{}{}",
        b"{\"path\": NaN}",
        b"{\"path\": 5}",
        b"{\"path\": null, \"x\": 1}",
        b"{\"path\": \"a\", \"path\": \"b\"}",
        b"{\"path\": \"\xff\"}",
        b"{\"path\": \"a\x01\"}",
        deep.as_bytes(),
        wide.as_bytes(),
    ];
    for tool in FILE_TOOLS {
        for arguments in bad {
            // `ls` takes no path at all.
            let (code, text) = refusal(world.raw(tool, arguments));
            assert_eq!(code, "arguments", "{tool} {text}");
            assert!(
                text.contains("cannot be understood") && text.len() < 1_500,
                "{text}"
            );
            assert!(text.contains("(string"), "{text}");
        }
    }
}

#[test]
fn habits_of_models_are_understood() {
    let mut world = World::new();
    world.ok(
        WriteFile,
        json!({"description": "why", "file_path": "a", "content": "one"}),
    );
    world.ok(
        StrReplace,
        json!({"file_path": "a", "old_string": "one", "new_string": "two"}),
    );
    let read = world.ok(
        ReadFile,
        json!({"path": "/mnt/user-data/workspace/a", "end_line": -1}),
    );
    assert_eq!(read, "     1\ttwo\n");
}

// F068
#[test]
fn paths_outside_are_refused_by_every_tool_in_virtual_words() {
    let mut world = World::new();
    for path in [
        "/etc/passwd",
        "/mnt/user-data/workspace-x/a",
        "/mnt/user-data/state/a",
        "../uploads/secret",
        "a\0b",
    ] {
        for tool in [ReadFile, ViewImage, Ls, Glob, Grep, WriteFile, StrReplace] {
            let arguments = match tool {
                WriteFile => json!({"path": path, "content": "x"}),
                StrReplace => json!({"path": path, "old_str": "a", "new_str": "b"}),
                Glob | Grep => json!({"path": path, "pattern": "x"}),
                _ => json!({"path": path}),
            };
            let (code, text) = world.refused(tool, arguments);
            assert!(
                ["outside", "leaves"].contains(&code.as_str()),
                "{tool} {path}: {text}"
            );
        }
    }
}

// F067, F069, F070, F072
#[test]
fn one_rule_for_links_whatever_the_tool() {
    let mut world = World::new();
    world.put("workspace/real/file", "here\n");
    let links = [
        ("out_absolute", "/etc/passwd"),
        ("out_relative", "../uploads/secret"),
        ("out_virtual", "/mnt/user-data/uploads/secret"),
        ("out_magic", "/proc/self/root/etc/passwd"),
        ("chain", "out_relative"),
        ("loop", "loop"),
    ];
    for (name, target) in links {
        symlink(target, world.path(&format!("workspace/{name}"))).unwrap();
        let (code, text) = world.refused(ReadFile, json!({"path": name}));
        assert_eq!(code, "leaves", "{name} {text}");
        world.refused(Grep, json!({"path": name, "pattern": "secret"}));
        world.refused(WriteFile, json!({"path": name, "content": "x"}));
        world.refused(
            StrReplace,
            json!({"path": name, "old_str": "secret", "new_str": "x"}),
        );
    }
    symlink("../uploads", world.path("workspace/folder")).unwrap();
    for tool in [Ls, Glob, Grep] {
        let (code, text) = world.refused(
            tool,
            match tool {
                Ls => json!({"path": "folder"}),
                _ => json!({"path": "folder", "pattern": "secret"}),
            },
        );
        assert_eq!(code, "leaves", "{text}");
    }
    assert_eq!(world.get("uploads/secret"), b"secret\n");
    // Inside, links are followed.
    symlink("real", world.path("workspace/near")).unwrap();
    symlink("/mnt/user-data/workspace/near/file", world.path("workspace/far")).unwrap();
    for path in ["near/file", "far"] {
        assert_eq!(world.ok(ReadFile, json!({"path": path})), "     1\there\n");
        assert!(
            world
                .ok(Grep, json!({"path": path, "pattern": "here"}))
                .contains(":1:here")
        );
    }
    assert!(world.ok(Ls, json!({"path": "near"})).contains("file  5 bytes"));
    world.ok(WriteFile, json!({"path": "near/new", "content": "x"}));
    assert_eq!(world.get("workspace/real/new"), b"x");
    // A walk does not follow them: nothing is found twice, and nothing outside.
    let found = world.ok(Grep, json!({"pattern": "secret|here"}));
    assert_eq!(found, "/mnt/user-data/workspace/real/file:1:here\n");
}

#[test]
fn a_hard_link_keeps_its_old_content() {
    let mut world = World::new();
    world.put("workspace/a", "old");
    fs::hard_link(world.path("workspace/a"), world.path("workspace/b")).unwrap();
    world.ok(WriteFile, json!({"path": "a", "content": "new"}));
    assert_eq!(world.get("workspace/b"), b"old");
}

#[test]
fn what_is_no_file_is_named_and_nothing_hangs() {
    let mut world = World::new();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, world.path("workspace/pipe"), FileType::Fifo, mode, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(world.path("workspace/socket")).unwrap();
    fs::create_dir(world.path("workspace/folder")).unwrap();
    for (name, kind) in [("pipe", "pipe"), ("folder", "folder")] {
        for tool in [ReadFile, ViewImage] {
            let (code, text) = world.refused(tool, json!({"path": name}));
            assert_eq!(code, "wrong_kind");
            assert!(text.contains(kind), "{text}");
        }
        world.refused(WriteFile, json!({"path": name, "content": "x"}));
        world.refused(StrReplace, json!({"path": name, "old_str": "a", "new_str": "b"}));
    }
    world.refused(ReadFile, json!({"path": "socket"}));
    world.refused(WriteFile, json!({"path": "socket", "content": "x"}));
    world.refused(Grep, json!({"path": "pipe", "pattern": "x"}));
    let found = world.ok(Grep, json!({"pattern": "x"}));
    assert!(found.starts_with("[nothing matches"), "{found}");
    let listed = world.ok(Ls, json!({}));
    for line in ["pipe (pipe)", "socket (socket)", "folder/"] {
        assert!(listed.contains(line), "{listed}");
    }
    let (_, text) = world.refused(Ls, json!({"path": "pipe"}));
    assert!(text.contains("is a"), "{text}");
}

#[test]
fn missing_files_and_areas_that_refuse_say_what_to_do() {
    let mut world = World::new();
    let (code, text) = world.refused(ReadFile, json!({"path": "none"}));
    assert_eq!(code, "missing");
    assert!(
        text.ends_with("does not exist; find it with ls or glob"),
        "{text}"
    );
    for path in [
        "/mnt/user-data/uploads/secret",
        "/mnt/skills/one/SKILL.md",
        "/mnt/skills/public/one/new",
    ] {
        for (tool, arguments) in [
            (WriteFile, json!({"path": path, "content": "x"})),
            (StrReplace, json!({"path": path, "old_str": "s", "new_str": "x"})),
        ] {
            let (code, text) = world.refused(tool, arguments);
            assert_eq!(code, "read_only");
            assert!(text.contains("copy it to /mnt/user-data/workspace"), "{text}");
        }
    }
    assert_eq!(
        world.ok(ReadFile, json!({"path": "/mnt/skills/custom/one/SKILL.md"})),
        "     1\tskill\n"
    );
}

#[test]
fn names_may_be_anything() {
    let mut world = World::new();
    let long = "n".repeat(255);
    for name in [
        "new\nline",
        "quote\"'",
        "\u{1b}[31mred",
        long.as_str(),
        "-rf",
        " ",
    ] {
        world.ok(WriteFile, json!({"path": name, "content": "needle"}));
        let read = world.ok(ReadFile, json!({"path": name}));
        assert_eq!(read, "     1\tneedle\n");
    }
    let listed = world.ok(Ls, json!({}));
    assert!(listed.contains("new\\nline  6 bytes\n"), "{listed}");
    assert!(listed.contains("\\u{1b}[31mred"), "{listed}");
    assert_eq!(world.ok(Grep, json!({"pattern": "needle"})).lines().count(), 6);
    let (code, text) = world.refused(WriteFile, json!({"path": "n".repeat(256), "content": "x"}));
    assert_eq!(code, "path");
    assert!(text.contains("255 bytes"), "{text}");
    let (code, _) = world.refused(ReadFile, json!({"path": "d/".repeat(3_000)}));
    assert_eq!(code, "path");
}

#[test]
fn a_window_says_how_to_go_on() {
    let mut world = World::new();
    let text = (1..=5_000)
        .map(|number| format!("line {number}\n"))
        .collect::<Vec<_>>()
        .concat();
    world.put("workspace/a", text);
    let first = world.ok(ReadFile, json!({"path": "a"}));
    assert!(
        first.ends_with("[lines 1 to 2000 of 5000; go on with start_line=2001]\n"),
        "{first}"
    );
    let last = world.ok(ReadFile, json!({"path": "a", "start_line": 4_999}));
    assert!(
        last.ends_with("  5000\tline 5000\n[lines 4999 to 5000 of 5000]\n"),
        "{last}"
    );
    let (code, text) = world.refused(ReadFile, json!({"path": "a", "start_line": 5_001}));
    assert_eq!(code, "arguments");
    assert!(text.contains("the file has 5000 lines"), "{text}");
    for (start, end) in [(0, 1), (2, 1), (1, -2), (1, 0)] {
        world.refused(
            ReadFile,
            json!({"path": "a", "start_line": start, "end_line": end}),
        );
    }
    world.put("workspace/empty", "");
    assert_eq!(
        world.ok(ReadFile, json!({"path": "empty"})),
        "[the file is empty]\n"
    );
}

#[test]
fn huge_and_sparse_files_cost_little() {
    let mut world = World::new();
    let sparse = fs::File::create(world.path("workspace/sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let (code, text) = world.refused(ReadFile, json!({"path": "sparse"}));
    assert_eq!(code, "not_text");
    assert!(text.contains("1099511627776 bytes"), "{text}");
    for (tool, arguments) in [
        (
            WriteFile,
            json!({"path": "sparse", "content": "x", "append": true}),
        ),
        (
            StrReplace,
            json!({"path": "sparse", "old_str": "a", "new_str": "b"}),
        ),
        (ViewImage, json!({"path": "sparse"})),
    ] {
        assert_eq!(world.refused(tool, arguments).0, "too_large");
    }
    let found = world.ok(Grep, json!({"pattern": "x"}));
    assert!(
        found.contains("[1 files were not searched to their end"),
        "{found}"
    );
    // Text with a line that is longer than a search holds, and a window in a file that is not held whole.
    let mut long = vec![b'x'; 20 << 20];
    long.extend(b"\nneedle\n");
    world.put("workspace/long", long);
    fs::remove_file(world.path("workspace/sparse")).unwrap();
    let read = world.ok(ReadFile, json!({"path": "long", "start_line": 2}));
    assert!(read.starts_with("     2\tneedle\n"), "{read}");
    assert!(read.contains("too large for str_replace"), "{read}");
    assert!(
        world
            .ok(Grep, json!({"pattern": "needle"}))
            .contains("[1 files were not searched")
    );
}

#[test]
fn other_encodings_are_read_and_kept_and_binaries_are_told() {
    let mut world = World::new();
    let utf16: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain("gr\u{fc}n\r\nrot\r\n".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    world.put("workspace/wide", &utf16);
    let read = world.ok(ReadFile, json!({"path": "wide"}));
    assert!(read.starts_with("     1\tgr\u{fc}n\n     2\trot\n"), "{read}");
    assert!(
        read.contains("UTF-16, little-endian") && read.contains("CR LF"),
        "{read}"
    );
    world.ok(
        StrReplace,
        json!({"path": "wide", "old_str": "rot", "new_str": "a\nb"}),
    );
    let expected: Vec<u8> = [0xfeff_u16]
        .into_iter()
        .chain("gr\u{fc}n\r\na\r\nb\r\n".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(world.get("workspace/wide"), expected);
    assert!(
        world
            .ok(Grep, json!({"pattern": "gr\u{fc}n"}))
            .contains(":1:gr\u{fc}n")
    );
    world.ok(WriteFile, json!({"path": "wide", "content": "c", "append": true}));
    assert_eq!(world.get("workspace/wide").len(), expected.len() + 2);

    world.put("workspace/marked", b"\xef\xbb\xbfa b");
    world.ok(
        StrReplace,
        json!({"path": "marked", "old_str": "b", "new_str": "c"}),
    );
    assert_eq!(world.get("workspace/marked"), b"\xef\xbb\xbfa c");

    for (name, bytes, kind) in [
        ("latin", &b"gr\xfcn"[..], "application/octet-stream"),
        ("png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        ("elf", b"\x7fELF\x02\x01\x01\0", "application/x-executable"),
    ] {
        world.put(&format!("workspace/{name}"), bytes);
        for (tool, arguments) in [
            (ReadFile, json!({"path": name})),
            (StrReplace, json!({"path": name, "old_str": "gr", "new_str": "x"})),
        ] {
            let (code, text) = world.refused(tool, arguments);
            assert_eq!(code, "not_text");
            assert!(text.contains(kind), "{text}");
        }
        assert_eq!(world.get(&format!("workspace/{name}")), bytes);
    }
    // Bytes that are none far behind the head: shown as such, never written back.
    let late = [&b"a\n".repeat(8_000)[..], b"\xff\n"].concat();
    world.put("workspace/late", &late);
    let read = world.ok(ReadFile, json!({"path": "late", "start_line": 8_001}));
    assert!(read.starts_with("  8001\t\u{fffd}\n"), "{read}");
    assert_eq!(
        world
            .refused(
                StrReplace,
                json!({"path": "late", "old_str": "a", "new_str": "b"})
            )
            .0,
        "not_text"
    );
}

#[test]
fn a_guarded_session_changes_only_what_it_has_read() {
    let mut world = World::guarded();
    world.put("workspace/a", "one\ntwo\n");
    let change = json!({"path": "a", "old_str": "two", "new_str": "three"});
    let (code, text) = world.refused(StrReplace, change.clone());
    assert_eq!(code, "unread");
    assert!(text.contains("exists and was not read yet"), "{text}");
    assert_eq!(
        world.refused(WriteFile, json!({"path": "a", "content": "x"})).0,
        "unread"
    );
    world.ok(WriteFile, json!({"path": "a", "content": "x\n", "append": true}));
    world.ok(ReadFile, json!({"path": "a"}));
    world.put("workspace/a", "two\n");
    let (_, text) = world.refused(StrReplace, change.clone());
    assert!(text.contains("has changed since it was read"), "{text}");
    world.ok(ReadFile, json!({"path": "/mnt/user-data/workspace/./a"}));
    // The same content, written anew by somebody: nothing is lost.
    world.put("workspace/a", "two\n");
    world.ok(StrReplace, change);
    // What it wrote itself it knows.
    world.ok(WriteFile, json!({"path": "a", "content": "x"}));
    world.ok(WriteFile, json!({"path": "new", "content": "x"}));
    world.ok(WriteFile, json!({"path": "new", "content": "y"}));
}

#[test]
fn a_file_keeps_its_mode_and_no_temporary_file_is_left() {
    let mut world = World::new();
    world.put("workspace/run.sh", "echo a\n");
    fs::set_permissions(world.path("workspace/run.sh"), fs::Permissions::from_mode(0o4751)).unwrap();
    world.ok(
        StrReplace,
        json!({"path": "run.sh", "old_str": "a", "new_str": "b"}),
    );
    let mode = fs::metadata(world.path("workspace/run.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o751);
    world.ok(WriteFile, json!({"path": "new", "content": "x"}));
    assert_eq!(fs::read_dir(world.path("workspace")).unwrap().count(), 2);
}

#[test]
fn a_write_has_a_bound_and_an_append_makes_a_file() {
    let mut world = World::new();
    let (code, text) = world.refused(
        WriteFile,
        json!({"path": "a", "content": "x".repeat((1 << 20) + 1)}),
    );
    assert_eq!(code, "too_large");
    assert!(text.contains("append"), "{text}");
    world.ok(
        WriteFile,
        json!({"path": "deep/er/a", "content": "1", "append": true}),
    );
    world.ok(
        WriteFile,
        json!({"path": "deep/er/a", "content": "2", "append": true}),
    );
    assert_eq!(world.get("workspace/deep/er/a"), b"12");
}

#[test]
fn a_glob_leaves_out_what_is_ignored_and_is_sorted() {
    let mut world = World::new();
    for name in [
        "b.py",
        "a.py",
        "src/c.py",
        "src/.hidden.py",
        "build/d.py",
        "src/kept.txt",
        ".git/e.py",
        "src/local.py",
    ] {
        world.put(&format!("workspace/{name}"), "x");
    }
    world.put("workspace/.gitignore", "build/\n");
    world.put("workspace/src/.ignore", "local.*\n");
    let found = world.ok(Glob, json!({"pattern": "*.py"}));
    let names = |text: &str| text.replace("/mnt/user-data/workspace/", "");
    assert_eq!(names(&found), "a.py\nb.py\nsrc/.hidden.py\nsrc/c.py");
    let found = world.ok(Glob, json!({"pattern": "**/d.py", "include_ignored": true}));
    assert_eq!(names(&found), "build/d.py");
    // Rules of the folders above count in a folder below.
    let found = world.ok(Glob, json!({"pattern": "*", "path": "src"}));
    assert_eq!(
        names(&found),
        "src/.hidden.py\nsrc/.ignore\nsrc/c.py\nsrc/kept.txt"
    );
    let found = world.ok(Glob, json!({"pattern": "s*", "include_dirs": true}));
    assert_eq!(names(&found), "src/");
    let found = world.ok(Glob, json!({"pattern": "*.py", "max_results": 2}));
    assert!(found.contains("[2 of 4 paths"), "{found}");
    for most in [0, 1_001] {
        world.refused(Glob, json!({"pattern": "*", "max_results": most}));
    }
    let found = world.ok(Glob, json!({"pattern": "*", "path": "/mnt/user-data"}));
    assert!(
        found.contains("/mnt/user-data/uploads/secret") && found.contains("/mnt/user-data/workspace/a.py")
    );
}

#[test]
fn a_search_shows_lines_with_context_and_bounds() {
    let mut world = World::new();
    world.put("workspace/a.txt", "one\nTwo\nthree\nfour\ntwo.\n");
    world.put("workspace/b.md", "two\n");
    world.put("workspace/binary", b"two\0two\n");
    let all = world.ok(Grep, json!({"pattern": "two"}));
    let prefix = "/mnt/user-data/workspace/";
    assert_eq!(
        all,
        format!("{prefix}a.txt:2:Two\n{prefix}a.txt:5:two.\n{prefix}b.md:1:two\n")
    );
    let exact = world.ok(
        Grep,
        json!({"pattern": "two.", "literal": true, "case_sensitive": true}),
    );
    assert_eq!(exact, format!("{prefix}a.txt:5:two.\n"));
    let context = world.ok(Grep, json!({"pattern": "three", "context": 1, "glob": "*.txt"}));
    assert_eq!(
        context,
        format!("{prefix}a.txt-2-Two\n{prefix}a.txt:3:three\n{prefix}a.txt-4-four\n")
    );
    let few = world.ok(Grep, json!({"pattern": "two", "max_results": 1}));
    assert!(few.contains("[1 of 3 matching lines"), "{few}");
    for pattern in ["(", "(?<=a)b", "(a{1000}){1000}", "\\1", ""] {
        let (code, text) = world.refused(Grep, json!({"pattern": pattern}));
        assert_eq!(code, "pattern", "{text}");
    }
    world.put("workspace/many", "two\n".repeat(50_000));
    let many = world.ok(Grep, json!({"pattern": "two", "max_results": 1_000}));
    assert!(many.contains("of at least "), "{}", &many[many.len() - 300..]);
    assert!(many.len() < 60_000);
    // What backtracks for ever elsewhere.
    world.put("workspace/evil", "a".repeat(1 << 20));
    world.ok(Grep, json!({"pattern": "(a*)*(a|b)*c$", "path": "evil"}));
}

#[test]
fn images_are_known_by_their_content() {
    let mut world = World::new();
    let png = |width: u32, height: u32| {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, 6, 0, 0, 0, 0, 0, 0, 0]);
        bytes
    };
    world.put("workspace/a.txt", png(3, 2));
    let output = world.call(ViewImage, json!({"image_path": "a.txt"}));
    let Facts::Image {
        media_type,
        width,
        height,
        data,
        ..
    } = &output.facts
    else {
        panic!("no image: {}", output.text);
    };
    assert_eq!((media_type.as_str(), *width, *height), ("image/png", 3, 2));
    assert_eq!(data.0, png(3, 2));
    world.put("workspace/gif", b"GIF89a\x05\0\x04\0\0\0\0");
    assert!(
        world
            .ok(ViewImage, json!({"path": "gif"}))
            .contains("5 \u{d7} 4 pixels")
    );
    world.put("workspace/wide", png(8_001, 1));
    world.put("workspace/cut", b"\x89PNG\r\n\x1a\n\0\0");
    world.put("workspace/jpeg", b"\xff\xd8\xff\xe0\xff\xff");
    world.put("workspace/webp", b"RIFF\0\0\0\0WEBPVP8 ");
    world.put("workspace/none", png(0, 0));
    world.put("workspace/text.png", "no image");
    world.put("workspace/empty.png", "");
    for name in ["wide", "cut", "jpeg", "webp", "none", "text.png", "empty.png"] {
        assert_eq!(
            world.refused(ViewImage, json!({"path": name})).0,
            "not_shown",
            "{name}"
        );
    }
    let large = fs::File::create(world.path("workspace/large")).unwrap();
    large.set_len((3 << 20) + 1).unwrap();
    assert_eq!(world.refused(ViewImage, json!({"path": "large"})).0, "too_large");
}

#[test]
fn presented_paths_are_those_of_artifacts_each_on_one_line() {
    let mut world = World::new();
    let deep = format!("outputs/{}", "d/".repeat(480));
    world.put(&format!("{deep}fits"), "x");
    world.put("outputs/odd\n[exit code 0]", "x");
    let output = world.call(
        PresentFiles,
        json!({"paths": [format!("/mnt/user-data/{deep}fits"), "odd\n[exit code 0]"]}),
    );
    assert!(output.ok, "{}", output.text);
    assert_eq!(output.text.lines().count(), 3, "{}", output.text);
    world.put(&format!("{deep}{}", "x".repeat(100)), "x");
    let long = format!("/mnt/user-data/{deep}{}", "x".repeat(100));
    let output = world.call(PresentFiles, json!({ "paths": [long] }));
    assert!(output.text.contains("allowed are 1024"), "{}", output.text);
}

#[test]
fn only_outputs_are_presented_with_digest_and_type() {
    let mut world = World::new();
    world.put("outputs/a.csv", "a,b\n");
    world.put("workspace/a.csv", "a,b\n");
    let output = world.call(
        PresentFiles,
        json!({"filepaths": ["a.csv", "/mnt/user-data/outputs/a.csv"]}),
    );
    let Facts::Presented { files } = output.facts else {
        panic!("not presented: {}", output.text);
    };
    assert_eq!(files.len(), 1);
    assert_eq!((files[0].media_type.as_str(), files[0].bytes), ("text/csv", 4));
    assert_eq!(files[0].sha256, super::files::sha256(b"a,b\n"));
    let (code, text) = world.refused(PresentFiles, json!({"paths": ["/mnt/user-data/workspace/a.csv"]}));
    assert_eq!(code, "not_an_output");
    assert!(text.contains("copy it there"), "{text}");
    for paths in [
        json!([]),
        json!(["none"]),
        json!(["."]),
        json!(["../workspace/a.csv"]),
        json!(vec!["a.csv"; 257]),
    ] {
        world.refused(PresentFiles, json!({"paths": paths}));
    }
    symlink("../workspace/a.csv", world.path("outputs/link")).unwrap();
    assert_eq!(
        world.refused(PresentFiles, json!({"paths": ["link"]})).0,
        "leaves"
    );
}

#[test]
fn a_listing_is_two_levels_deep_and_bounded() {
    let mut world = World::new();
    world.put("workspace/a/b/c", "x");
    for number in 0..60 {
        world.put(&format!("workspace/many/{number:02}"), "x");
    }
    let listed = world.ok(Ls, json!({}));
    assert!(
        listed.starts_with("/mnt/user-data/workspace:\na/\na/b/\nmany/\nmany/00  1 bytes\n"),
        "{listed}"
    );
    assert!(!listed.contains("a/b/c"));
    assert!(listed.contains("[10 more in ./many/;"), "{listed}");
    let all = world.ok(Ls, json!({"path": "/mnt/user-data/"}));
    assert!(all.contains("/mnt/user-data/outputs:\n[empty]\n"), "{all}");
    assert!(world.ok(Ls, json!({"path": "/mnt/skills"})).contains("SKILL.md"));
    for number in 0..1_500 {
        world.put(&format!("outputs/{number:04}"), "");
    }
    let listed = world.ok(Ls, json!({"path": "/mnt/user-data/outputs"}));
    assert!(
        listed.contains("[1000 more in ./;"),
        "{}",
        &listed[listed.len() - 200..]
    );
}

// F067
#[test]
fn an_ignore_file_that_is_a_pipe_or_huge_holds_nobody_up() {
    let mut world = World::new();
    world.put("workspace/plain/a", "word\n");
    world.put("workspace/pipe/b", "word\n");
    world.put("workspace/huge/c", "word\n");
    let pipe = |path: PathBuf| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    pipe(world.path("workspace/pipe/.gitignore"));
    let huge = fs::File::create(world.path("workspace/huge/.ignore")).unwrap();
    huge.set_len(1 << 40).unwrap();
    for (path, expected) in [(".", "plain/a"), ("pipe", "pipe/b"), ("huge", "huge/c")] {
        let arguments = json!({"pattern": "word", "path": path}).to_string();
        let found = world.raw(ToolName::Grep, arguments.as_bytes());
        let expected = format!("/mnt/user-data/workspace/{expected}:1:word");
        assert!(found.ok && found.text.starts_with(&expected), "{}", found.text);
    }
}
