use super::*;
use agentrun_protocol::work::Limits;

fn files(state: &Path, run: &str, uid: &str) -> AgentFiles {
    let assignment = serde_json::json!({
        "uid": uid, "attempt": 1, "subtask": "default/one", "runUid": run, "task": "one",
        "work": {"kind": "Command", "argv": ["true"]}, "remainingMs": 1, "limits": Limits::COMMAND,
    });
    AgentFiles::new(state, &serde_json::from_value(assignment).unwrap()).unwrap()
}

#[test]
fn a_delegate_reads_what_its_parent_left_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (parent, child) = (
        files(folder.path(), "run", "parent"),
        files(folder.path(), "run", "child"),
    );
    let file = parent.store_snapshot(3, b"[]").unwrap();
    assert_eq!(file.path, "state/runs/run/snapshots/parent-3.json");
    assert_eq!(child.stored(&file, 100).unwrap(), b"[]");
    let stranger = files(folder.path(), "other", "child");
    assert!(matches!(
        stranger.stored(&file, 100),
        Err(StoredError::Elsewhere(_))
    ));
    let named = |path: &str| FileRef {
        path: path.to_owned(),
        ..file.clone()
    };
    for path in [
        "state/runs/run/../other/a",
        "runs/run/snapshots/parent-3.json",
        "state/runs/running/a",
        "/etc/passwd",
    ] {
        assert!(
            matches!(child.stored(&named(path), 100), Err(StoredError::Elsewhere(_))),
            "{path}"
        );
    }
    assert_eq!(
        parent.store_snapshot(3, b"[1]").unwrap(),
        file,
        "it never changes"
    );
    std::fs::write(folder.path().join("runs/run/snapshots/parent-3.json"), "{}").unwrap();
    assert!(matches!(
        child.stored(&file, 100),
        Err(StoredError::Changed { .. })
    ));
    std::fs::write(folder.path().join("runs/run/snapshots/parent-3.json"), [0; 101]).unwrap();
    assert!(matches!(
        child.stored(&file, 100),
        Err(StoredError::Unreadable { .. })
    ));
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("runs/run/snapshots/link.json")).unwrap();
    let link = named("state/runs/run/snapshots/link.json");
    assert!(matches!(
        child.stored(&link, 100),
        Err(StoredError::Unreadable { .. })
    ));
}

#[test]
fn the_conversation_is_the_threads_and_not_the_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (
        files(folder.path(), "one", "lead"),
        files(folder.path(), "two", "lead"),
    );
    assert_eq!(one.load_conversation(100).unwrap(), None);
    one.store_conversation(b"[1]").unwrap();
    assert_eq!(two.load_conversation(100).unwrap(), Some(b"[1]".to_vec()));
    assert!(two.load_conversation(2).is_err());
}

#[test]
fn tools_know_in_the_next_attempt_what_they_had_seen() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), "run", "lead");
    assert_eq!(files.session(), Session::guarded());
    let session = Session {
        cwd: Some("/mnt/user-data/workspace/x".to_owned()),
        ..Session::guarded()
    };
    files.store_session(&session).unwrap();
    assert_eq!(files.session(), session);
}
