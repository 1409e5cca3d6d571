use super::*;
use crate::store::sha256_of;
use std::os::unix::fs::symlink;

fn folders(root: &Path) -> Folders {
    for name in ["uploads", "workspace", "outputs", "state"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    Folders {
        user_data: root.to_owned(),
        state: root.join("state"),
        sources: root.join("sources"),
        skills: root.join("skills"),
    }
}

fn command() -> Work {
    Work::Command {
        argv: vec!["true".to_owned()],
        working_dir: None,
    }
}

fn read(source: Source) -> String {
    match source {
        Source::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        Source::File(mut file) => {
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            text
        }
    }
}

#[test]
fn nothing_is_null_for_a_function_and_empty_for_a_command() {
    let root = tempfile::tempdir().unwrap();
    let folders = folders(root.path());
    let function = Work::Function {
        skill: "s".to_owned(),
        name: "f".to_owned(),
        file: "f.py".to_owned(),
        warm: None,
        files: agentrun_protocol::work::FileAccess::None,
    };
    assert_eq!(read(open(&function, None, &folders).unwrap()), "null");
    assert_eq!(read(open(&command(), None, &folders).unwrap()), "");
}

// F067, F068, F070
#[test]
fn a_file_is_taken_from_the_user_data_alone() {
    let root = tempfile::tempdir().unwrap();
    let folders = folders(root.path());
    std::fs::write(folders.user_data.join("workspace").join("a.json"), "[1]").unwrap();
    std::fs::write(folders.state.join("secret"), "[2]").unwrap();
    symlink(
        folders.state.join("secret"),
        folders.user_data.join("workspace").join("link"),
    )
    .unwrap();
    let check = |path: &str| {
        let path = path.to_owned();
        open(&command(), Some(&Input::File { path }), &folders).map(read)
    };
    assert_eq!(check("/mnt/user-data/workspace/a.json").unwrap(), "[1]");
    symlink("a.json", folders.user_data.join("workspace/sibling")).unwrap();
    assert_eq!(check("/mnt/user-data/workspace/sibling").unwrap(), "[1]");
    for path in [
        "/mnt/user-data/workspace/link",
        "/mnt/user-data/workspace/../state/secret",
        "/mnt/user-data/workspace-hack/a.json",
        "/mnt/user-data/state/secret",
        "/mnt/user-data-x/workspace/a.json",
        "/etc/passwd",
    ] {
        assert!(check(path).is_err(), "{path}");
    }
}

#[test]
fn a_stored_output_is_checked_by_digest() {
    let root = tempfile::tempdir().unwrap();
    let folders = folders(root.path());
    std::fs::create_dir(folders.state.join("runs")).unwrap();
    std::fs::write(folders.state.join("runs/o.json"), "[1]").unwrap();
    let check = |path: &str, digest: &str| {
        let file = FileRef {
            path: path.to_owned(),
            bytes: 3,
            sha256: digest.to_owned(),
        };
        open(&command(), Some(&Input::Stored { file }), &folders).map(read)
    };
    assert_eq!(check("state/runs/o.json", &sha256_of(b"[1]")).unwrap(), "[1]");
    assert!(matches!(
        check("state/runs/o.json", "0"),
        Err(InputError::Changed { .. })
    ));
    assert!(matches!(check("state/../x", "0"), Err(InputError::Path(_))));
}
