use super::*;
use crate::store::sha256_of;
use tempfile::TempDir;

struct World(TempDir);

impl World {
    fn new(content: &str) -> Self {
        let world = Self(tempfile::tempdir().unwrap());
        for folder in ["sources/claim", "uploads", "run"] {
            fs::create_dir_all(world.0.path().join(folder)).unwrap();
        }
        world.change(content);
        world
    }

    fn change(&self, content: &str) {
        fs::write(self.0.path().join("sources/claim/in.csv"), content).unwrap();
    }

    fn ensure(&self, copy: &FileCopy) -> Result<(), FileError> {
        let path = |name: &str| self.0.path().join(name);
        ensure(
            &Places {
                sources: &path("sources"),
                uploads: &path("uploads"),
                run: &path("run"),
            },
            copy,
        )
    }

    fn upload(&self) -> String {
        fs::read_to_string(self.0.path().join("uploads/new/data.csv")).unwrap()
    }

    fn uploads(&self) -> usize {
        fs::read_dir(self.0.path().join("uploads/new")).unwrap().count()
    }
}

fn copy(from: &str, expected: Option<&str>) -> FileCopy {
    FileCopy {
        path: "new/data.csv".to_owned(),
        folder: "claim".to_owned(),
        from: from.to_owned(),
        bytes: expected.map(|content| content.len() as u64),
        sha256: expected.map(|content| sha256_of(content.as_bytes())),
    }
}

#[test]
fn a_file_of_the_known_digest_is_copied() {
    let world = World::new("a,b\n");
    world.ensure(&copy("in.csv", Some("a,b\n"))).unwrap();
    assert_eq!(world.upload(), "a,b\n");
}

#[test]
fn another_digest_is_refused_and_leaves_nothing() {
    let world = World::new("changed");
    let refused = world.ensure(&copy("in.csv", Some("a,b\n")));
    assert!(matches!(refused, Err(FileError::Digest { .. })), "{refused:?}");
    assert_eq!(world.uploads(), 0);
}

#[test]
fn the_first_copy_of_an_unknown_file_binds_the_run() {
    let world = World::new("first");
    world.ensure(&copy("in.csv", None)).unwrap();
    world.change("second");
    // What is there already is what the run is held to.
    world.ensure(&copy("in.csv", None)).unwrap();
    assert_eq!(world.upload(), "first");
    fs::remove_file(world.0.path().join("uploads/new/data.csv")).unwrap();
    let refused = world.ensure(&copy("in.csv", None));
    assert!(matches!(refused, Err(FileError::Digest { .. })), "{refused:?}");
    world.change("first");
    world.ensure(&copy("in.csv", None)).unwrap();
    assert_eq!(world.upload(), "first");
}

#[test]
fn a_copy_that_is_there_needs_no_source() {
    let world = World::new("a");
    world.ensure(&copy("in.csv", Some("a"))).unwrap();
    fs::remove_dir_all(world.0.path().join("sources")).unwrap();
    world.ensure(&copy("in.csv", Some("a"))).unwrap();
}

// F068
#[test]
fn links_and_paths_out_of_the_source_are_not_followed() {
    let world = World::new("a");
    fs::write(world.0.path().join("secret"), "s").unwrap();
    let link = world.0.path().join("sources/claim/link");
    std::os::unix::fs::symlink(world.0.path().join("secret"), link).unwrap();
    for from in ["link", "../../secret", ".", "gone"] {
        let refused = world.ensure(&copy(from, None));
        assert!(
            matches!(refused, Err(FileError::Source { .. })),
            "{from}: {refused:?}"
        );
    }
}
