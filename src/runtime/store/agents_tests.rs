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
    assert_eq!(child.snapshot(&file).unwrap(), b"[]");
    let stranger = files(folder.path(), "other", "child");
    assert!(matches!(
        stranger.snapshot(&file),
        Err(SnapshotError::Elsewhere(_))
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
            matches!(child.snapshot(&named(path)), Err(SnapshotError::Elsewhere(_))),
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
        child.snapshot(&file),
        Err(SnapshotError::Changed { .. })
    ));
    let large = FileRef {
        bytes: MAX_CONVERSATION + 1,
        ..file.clone()
    };
    assert!(matches!(
        child.snapshot(&large),
        Err(SnapshotError::TooLarge { .. })
    ));
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("runs/run/snapshots/link.json")).unwrap();
    let link = named("state/runs/run/snapshots/link.json");
    assert!(matches!(
        child.snapshot(&link),
        Err(SnapshotError::Unreadable { .. })
    ));
}

#[test]
fn every_attempt_begins_with_the_conversation_that_the_first_one_found() {
    let folder = tempfile::tempdir().unwrap();
    let first = files(folder.path(), "one", "lead");
    assert_eq!(first.history(true).unwrap(), None);
    first.store_conversation(b"[1]").unwrap();
    assert_eq!(first.history(true).unwrap(), None, "its own end is not its begin");
    let second = files(folder.path(), "two", "lead");
    assert_eq!(second.history(false).unwrap(), None);
    assert_eq!(second.history(true).unwrap(), Some(b"[1]".to_vec()));
    second.store_conversation(b"[2]").unwrap();
    assert_eq!(second.history(true).unwrap(), Some(b"[1]".to_vec()));
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
