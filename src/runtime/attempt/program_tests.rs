use super::*;

fn check(program: &str, memory: Option<u64>) -> (Vec<String>, Limits) {
    let mut limits = Limits {
        memory_bytes: memory,
        ..Limits::FUNCTION
    };
    let argv = function(program, None, &mut limits, &mut BTreeMap::new());
    (argv, limits)
}

#[test]
fn the_extension_chooses_the_interpreter() {
    assert_eq!(check("/s/f.py", None).0[..3], ["python3", "-u", "-c"]);
    assert_eq!(check("/s/f.mjs", None).0[..2], ["node", "-e"]);
    assert_eq!(check("/s/f.sh", None).0, ["sh", "/s/f.sh"]);
    assert_eq!(check("/s/f", None).0, ["/s/f"]);
}

#[test]
fn only_a_file_that_may_have_a_run_gets_the_program_around_it() {
    let folder = tempfile::tempdir().unwrap();
    let argv = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let mut limits = Limits::FUNCTION;
        function(name, Some(&file), &mut limits, &mut BTreeMap::new())
    };
    assert_eq!(
        argv("f.py", "import sys\nprint(prune(sys.stdin))\n"),
        ["python3", "-u", "f.py"]
    );
    assert_eq!(argv("f.js", "console.log(rerun, running)"), ["node", "f.js"]);
    for (name, text) in [
        ("f.py", "def run(input): return input"),
        ("f.py", "from tasks import run"),
        ("f.py", "import subprocess\nsubprocess.run(['ls'])"),
        ("f.js", "exports.run = input => input"),
        ("f.mjs", "export { work as run }"),
    ] {
        let argv = argv(name, text);
        assert!(
            argv.iter().any(|word| word == "-c" || word == "-e"),
            "{text}: {argv:?}"
        );
    }
    let long = format!("#{}", " ".repeat(usize::try_from(SEARCHED).unwrap()));
    assert!(argv("f.py", &long).contains(&"-c".to_owned()));
}

#[test]
fn node_gets_a_heap_cap_in_place_of_an_address_space_limit() {
    let (argv, limits) = check("/s/f.js", Some(64 << 20));
    assert_eq!(argv[1], "--max-old-space-size=64");
    assert_eq!(limits.memory_bytes, None);
    assert_eq!(check("/s/f.py", Some(64 << 20)).1.memory_bytes, Some(64 << 20));
}

#[test]
fn a_shell_script_keeps_the_interpreter_of_its_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let script = folder.path().join("f.sh");
        std::fs::write(&script, text).unwrap();
        interpreter(&script)
    };
    assert_eq!(check("#!/bin/bash -e\necho\n").unwrap(), ["/bin/bash", "-e"]);
    assert_eq!(check("#! /usr/bin/env bash").unwrap(), ["/usr/bin/env", "bash"]);
    assert_eq!(check("echo"), None);
    assert_eq!(check("#!\n"), None);
}

#[test]
fn notes_are_a_variable_only_where_there_are_some() {
    let notes = |notes: &[&str]| {
        let work = serde_json::json!({
            "uid": "u", "attempt": 2, "subtask": "n/s", "runUid": "r", "task": "t", "remainingMs": 1, "notes": notes,
            "work": {"kind": "Command", "argv": ["true"]},
            "limits": {"fileBytes": 1, "openFiles": 1, "processes": 1},
        });
        let assignment = serde_json::from_value(work).unwrap();
        let folder = Path::new("/s");
        let folders = Folders {
            user_data: folder.into(),
            state: folder.into(),
            skills: folder.into(),
            sources: folder.into(),
        };
        let seen = SeenFolders {
            user_data: "/mnt/user-data".into(),
            skills: "/mnt/skills".into(),
        };
        exec(&assignment, &folders, &seen)
            .env
            .get(NOTES_VARIABLE)
            .cloned()
    };
    assert_eq!(notes(&[]), None);
    assert_eq!(notes(&["a \"b\"", "c"]).as_deref(), Some(r#"["a \"b\"","c"]"#));
}
