use super::*;
use std::fs as std_fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

fn world() -> (tempfile::TempDir, PathBuf, Roots) {
    let folder = tempfile::tempdir().unwrap();
    let outputs = folder.path().join("outputs");
    std_fs::create_dir(&outputs).unwrap();
    let roots = Roots::new(folder.path(), "/nonexistent");
    (folder, outputs, roots)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

fn paths(artifacts: &Artifacts) -> Vec<&str> {
    artifacts.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn new_and_changed_files_are_artifacts_and_others_are_not() {
    let (_folder, outputs, roots) = world();
    let path = |name: &str| outputs.join(name);
    std_fs::create_dir(path("deep")).unwrap();
    std_fs::write(path("old"), "same").unwrap();
    std_fs::write(path("deep/changed"), "one").unwrap();
    let before = list(&roots).unwrap();
    std_fs::write(path("deep/changed"), "two").unwrap();
    std_fs::write(path("new.json"), "{}").unwrap();
    let artifacts = changed(&roots, &before, soon()).unwrap();
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
    let (_folder, outputs, roots) = world();
    symlink(outside.path().join("secret"), outputs.join("file")).unwrap();
    symlink(outside.path(), outputs.join("folder")).unwrap();
    let pipe = outputs.join("pipe");
    fs::mknodat(fs::CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let artifacts = changed(&roots, &Listing::default(), soon()).unwrap();
    assert_eq!(paths(&artifacts), [""; 0]);
}

#[test]
fn there_is_a_bound_and_what_is_beyond_it_is_counted() {
    let (_folder, outputs, roots) = world();
    for n in 0..MAX_ARTIFACTS + 3 {
        std_fs::write(outputs.join(format!("{n:04}")), "").unwrap();
    }
    let artifacts = changed(&roots, &Listing::default(), soon()).unwrap();
    assert_eq!((artifacts.files.len(), artifacts.left_out), (MAX_ARTIFACTS, 3));
    let late = changed(&roots, &Listing::default(), Instant::now()).unwrap();
    assert_eq!((late.files.len(), late.whole), (0, false));
    assert!(artifacts.whole);
}

// F120
#[test]
fn an_empty_file_is_an_artifact() {
    let (_folder, outputs, roots) = world();
    std_fs::write(outputs.join("a"), "").unwrap();
    let artifacts = changed(&roots, &Listing::default(), soon()).unwrap();
    assert_eq!(artifacts.files[0].bytes, 0);
}

#[test]
fn a_folder_that_is_missing_has_no_artifacts() {
    let roots = Roots::new("/nonexistent", "/nonexistent");
    assert!(
        changed(&roots, &list(&roots).unwrap(), soon())
            .unwrap()
            .files
            .is_empty()
    );
}

/// A folder so deep that the paths below it are `bytes` long, and its path relative to `outputs`.
fn deep(outputs: &std::path::Path, name: char, bytes: usize) -> PathBuf {
    let name = String::from(name).repeat(200);
    let mut relative = PathBuf::new();
    while relative.as_os_str().len() + name.len() < bytes {
        relative.push(&name);
    }
    std_fs::create_dir_all(outputs.join(&relative)).unwrap();
    outputs.join(relative)
}

// F067
#[test]
fn a_path_that_no_object_holds_is_left_out() {
    let (_folder, outputs, roots) = world();
    std_fs::write(deep(&outputs, 'a', 900).join("fits"), "").unwrap();
    std_fs::write(deep(&outputs, 'b', 1200).join("long"), "").unwrap();
    let artifacts = changed(&roots, &Listing::default(), soon()).unwrap();
    assert_eq!((artifacts.files.len(), artifacts.left_out), (1, 1));
}

// F067
#[test]
fn as_many_artifacts_with_as_long_paths_as_there_can_be_fit_one_frame() {
    let (_folder, outputs, roots) = world();
    for folder in [deep(&outputs, '\u{1}', 600), deep(&outputs, 'a', 600)] {
        for n in 0..MAX_ARTIFACTS {
            std_fs::write(folder.join(format!("{n:0200}")), "").unwrap();
        }
    }
    let artifacts = changed(&roots, &Listing::default(), soon()).unwrap();
    assert_eq!(artifacts.files.len() + artifacts.left_out, 2 * MAX_ARTIFACTS);
    let frame = agentrun_protocol::frame::encode(&artifacts.files).unwrap();
    assert!(
        frame.len() < agentrun_protocol::frame::MAX_FRAME / 2,
        "{}",
        frame.len()
    );
}

// Sub-tasks of one thread share this folder, and one may remove folders while another's are listed.
#[test]
fn folders_that_others_remove_meanwhile_cost_nothing_else() {
    let (_folder, outputs, roots) = world();
    std_fs::write(outputs.join("kept"), "x").unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let churn = outputs.join("churn");
            while !over.load(Ordering::Relaxed) {
                for number in 0..20 {
                    std_fs::create_dir_all(churn.join(format!("{number}/inner"))).unwrap();
                }
                std_fs::remove_dir_all(&churn).unwrap();
            }
        });
        let mut failures = Vec::new();
        for _ in 0..300 {
            failures.extend(list(&roots).err());
            match changed(&roots, &Listing::default(), soon()) {
                Ok(artifacts) => assert_eq!(paths(&artifacts), ["/mnt/user-data/outputs/kept"]),
                Err(error) => failures.push(error),
            }
        }
        over.store(true, Ordering::Relaxed);
        assert!(
            failures.is_empty(),
            "{} failures, {:?}",
            failures.len(),
            failures.first()
        );
    });
}

// A lease that another sub-task holds keeps everybody else from opening the file.
#[test]
fn what_cannot_be_opened_is_counted_and_takes_no_more_than_the_time_that_there_is() {
    let (_folder, outputs, roots) = world();
    for name in ["a", "b", "c", "d"] {
        std_fs::write(outputs.join(name), "x").unwrap();
    }
    let script = "import fcntl, os, signal, sys; signal.signal(signal.SIGIO, signal.SIG_IGN); os.chdir(sys.argv[1]); \
                  files = [os.open(name, os.O_RDWR) for name in os.listdir()]; \
                  [fcntl.fcntl(file, 1024, fcntl.F_WRLCK) for file in files]; print('held', flush=True); input()";
    let mut holder = Command::new("python3")
        .args(["-c", script, outputs.to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    holder.stdout.as_mut().unwrap().read_exact(&mut held).unwrap();
    let began = Instant::now();
    let artifacts = changed(&roots, &Listing::default(), began + Duration::from_secs(1)).unwrap();
    let took = began.elapsed();
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!((paths(&artifacts).len(), artifacts.left_out), (0, 4));
    assert!(took < Duration::from_secs(5), "took {took:?}");
}
