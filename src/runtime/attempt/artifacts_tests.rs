use super::*;
use std::fs as std_fs;
use std::os::unix::fs::symlink;

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

fn paths(artifacts: &Artifacts) -> Vec<&str> {
    artifacts.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn new_and_changed_files_are_artifacts_and_others_are_not() {
    let outputs = tempfile::tempdir().unwrap();
    let path = |name: &str| outputs.path().join(name);
    std_fs::create_dir(path("deep")).unwrap();
    std_fs::write(path("old"), "same").unwrap();
    std_fs::write(path("deep/changed"), "one").unwrap();
    let before = list(outputs.path()).unwrap();
    std_fs::write(path("deep/changed"), "two").unwrap();
    std_fs::write(path("new.json"), "{}").unwrap();
    let artifacts = changed(outputs.path(), &before, soon()).unwrap();
    assert_eq!(
        paths(&artifacts),
        [
            "/mnt/user-data/outputs/deep/changed",
            "/mnt/user-data/outputs/new.json"
        ]
    );
    assert_eq!(artifacts.files[1].media_type, "application/json");
    assert_eq!(artifacts.files[1].bytes, 2);
    assert_eq!(artifacts.files[1].sha256, crate::store::sha256_of(b"{}"));
}

// F067
#[test]
fn links_pipes_and_what_is_behind_them_are_no_artifacts() {
    let outside = tempfile::tempdir().unwrap();
    std_fs::write(outside.path().join("secret"), "s").unwrap();
    let outputs = tempfile::tempdir().unwrap();
    symlink(outside.path().join("secret"), outputs.path().join("file")).unwrap();
    symlink(outside.path(), outputs.path().join("folder")).unwrap();
    let pipe = outputs.path().join("pipe");
    fs::mknodat(fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let artifacts = changed(outputs.path(), &Listing::default(), soon()).unwrap();
    assert_eq!(paths(&artifacts), [""; 0]);
    let root = open_folder(fs::CWD, outputs.path()).unwrap();
    for path in ["file", "folder/secret", "../x", "/etc/passwd", "pipe"] {
        assert!(open_regular(&root, path).is_err(), "{path}");
    }
}

#[test]
fn there_is_a_bound_and_what_is_beyond_it_is_counted() {
    let outputs = tempfile::tempdir().unwrap();
    for n in 0..MAX_ARTIFACTS + 3 {
        std_fs::write(outputs.path().join(format!("{n:04}")), "").unwrap();
    }
    let artifacts = changed(outputs.path(), &Listing::default(), soon()).unwrap();
    assert_eq!((artifacts.files.len(), artifacts.left_out), (MAX_ARTIFACTS, 3));
    let late = changed(outputs.path(), &Listing::default(), Instant::now()).unwrap();
    assert_eq!((late.files.len(), late.left_out), (0, MAX_ARTIFACTS + 3));
}

// F120
#[test]
fn an_empty_file_is_an_artifact() {
    let outputs = tempfile::tempdir().unwrap();
    std_fs::write(outputs.path().join("a"), "").unwrap();
    let artifacts = changed(outputs.path(), &Listing::default(), soon()).unwrap();
    assert_eq!(artifacts.files[0].bytes, 0);
}

#[test]
fn a_folder_that_is_missing_has_no_artifacts() {
    let missing = Path::new("/nonexistent/outputs");
    assert!(
        changed(missing, &list(missing).unwrap(), soon())
            .unwrap()
            .files
            .is_empty()
    );
}
