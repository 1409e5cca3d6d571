use super::*;
use agentrun_protocol::work::{AttemptId, CacheKey, FileAccess, Limits, SkillFiles};
use std::collections::BTreeMap;

struct World {
    folder: tempfile::TempDir,
    assignment: Assignment,
    image: &'static str,
    input: &'static [u8],
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        for area in ["workspace", "outputs", "uploads"] {
            fs::create_dir(folder.path().join(area)).unwrap();
        }
        let assignment = Assignment {
            id: AttemptId {
                uid: "uid".into(),
                attempt: 1,
            },
            subtask: "default/one".into(),
            run_uid: "run".into(),
            task: "one".into(),
            work: Work::Function {
                skill: "math".into(),
                name: "add".into(),
                file: "functions/add.py".into(),
                files: FileAccess::Read,
                warm: None,
            },
            input: None,
            files: Vec::new(),
            copies: Vec::new(),
            skills: vec![SkillFiles {
                name: "math".into(),
                digest: "d1".into(),
                files: Vec::new(),
                mounted: true,
            }],
            env: BTreeMap::new(),
            inherit_env: Vec::new(),
            tcp: false,
            remaining_ms: 1000,
            limits: Limits::FUNCTION,
            acceptance: Vec::new(),
            notes: Vec::new(),
            cache: Some(CacheKey {
                reads: vec!["/mnt/user-data/workspace/table.csv".into()],
            }),
        };
        World {
            folder,
            assignment,
            image: "python",
            input: b"{}",
        }
    }

    fn table(&self, text: &str) {
        fs::write(self.folder.path().join("workspace/table.csv"), text).unwrap();
    }

    fn roots(&self) -> Roots {
        Roots::new(self.folder.path(), "/nonexistent")
    }

    fn found(&self) -> Option<Entry> {
        let mut input = Source::Bytes(self.input.to_vec());
        let state = self.folder.path();
        entry(&self.assignment, self.image, state, &self.roots(), &mut input).unwrap()
    }

    fn entry(&self) -> Option<PathBuf> {
        self.found().map(|entry| entry.place)
    }
}

#[test]
fn the_same_work_on_the_same_files_has_one_place_in_another_run_too() {
    let mut world = World::new();
    world.table("a\n");
    let first = world.entry().unwrap();
    world.assignment.run_uid = "another".into();
    world.assignment.id.attempt = 2;
    world.table("a\n");
    assert_eq!(world.entry().unwrap(), first);
}

type Change = fn(&mut World);

#[test]
fn everything_that_a_function_may_depend_on_changes_the_place() {
    let changes: [(&str, Change); 8] = [
        ("skill", |world| world.assignment.skills[0].digest = "d2".into()),
        ("function", |world| {
            if let Work::Function { name, .. } = &mut world.assignment.work {
                *name = "sub".into();
            }
        }),
        ("input", |world| world.input = b"[]"),
        ("read file", |world| world.table("b\n")),
        ("read file that is gone", |world| {
            fs::remove_file(world.folder.path().join("workspace/table.csv")).unwrap();
        }),
        ("env", |world| {
            world.assignment.env.insert("LANG".into(), "C".into());
        }),
        ("image", |world| world.image = "node"),
        ("limits", |world| world.assignment.limits.open_files = 64),
    ];
    let mut places = std::collections::BTreeSet::new();
    for (what, change) in changes {
        let mut world = World::new();
        world.table("a\n");
        let before = world.entry().unwrap().file_name().map(ToOwned::to_owned);
        change(&mut world);
        let after = world.entry().unwrap().file_name().map(ToOwned::to_owned);
        assert_ne!(before, after, "{what}");
        assert!(places.insert(after), "{what}");
    }
}

#[test]
fn work_that_did_not_ask_for_the_cache_has_no_place() {
    let mut world = World::new();
    world.assignment.cache = None;
    assert_eq!(world.entry(), None);
}

#[test]
fn what_cannot_be_read_whole_makes_no_key() {
    let world = World::new();
    fs::create_dir(world.folder.path().join("workspace/table.csv")).unwrap();
    assert_eq!(world.entry(), None);
    let world = World::new();
    std::os::unix::fs::symlink("/etc/passwd", world.folder.path().join("workspace/table.csv")).unwrap();
    assert_eq!(world.entry(), None);
}

#[test]
fn a_result_is_kept_only_for_the_files_that_were_there_when_it_began_and_still_are() {
    let changes: [(&str, bool, Change); 4] = [
        ("nothing", true, |_| {}),
        ("the same again", true, |world| world.table("a\n")),
        ("another text", false, |world| world.table("b\n")),
        ("no file", false, |world| {
            fs::remove_file(world.folder.path().join("workspace/table.csv")).unwrap();
        }),
    ];
    for (what, kept, change) in changes {
        let mut world = World::new();
        world.table("a\n");
        let entry = world.found().unwrap();
        change(&mut world);
        entry.store(&world.roots(), b"1");
        assert_eq!(entry.load().is_some(), kept, "{what}");
    }
}

#[test]
fn the_oldest_results_make_room_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for number in 0..=MAX_ENTRIES {
        fs::write(path(&format!("{number}")), "1").unwrap();
    }
    let old = fs::File::options().write(true).open(path("7")).unwrap();
    old.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let entry = Entry {
        place: path("new.json"),
        reads: Vec::new(),
    };
    entry.store(&Roots::new(folder.path(), "/nonexistent"), b"2");
    assert!(path("new.json").exists());
    assert!(!path("7").exists());
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, MAX_ENTRIES + 2 - MAX_ENTRIES / 4);
}
