use super::roots::until_still;
use super::*;
use proptest::prelude::*;
use rustix::fs::Mode;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::Path;

const MODE: Mode = Mode::RUSR.union(Mode::WUSR);

fn roots(folder: &Path) -> Roots {
    for name in ["data/uploads", "data/workspace", "data/outputs", "skills/one"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    fs::write(folder.join("data/uploads/secret"), "secret").unwrap();
    fs::write(folder.join("data/uploads/a"), "secret").unwrap();
    fs::write(folder.join("skills/one/SKILL.md"), "skill").unwrap();
    Roots::new(folder.join("data"), folder.join("skills"))
}

fn read(roots: &Roots, path: &str) -> Result<String, ResolveError> {
    let mut text = String::new();
    roots
        .open_file(&Location::parse(path)?, Links::Inside)?
        .read_to_string(&mut text)
        .unwrap();
    Ok(text)
}

#[test]
fn every_area_can_be_named() {
    for path in [
        "/mnt/user-data/uploads/a",
        "/mnt/user-data/workspace",
        "/mnt/user-data/outputs/a/b",
        "/mnt/skills/one/x",
    ] {
        assert_eq!(Location::parse(path).unwrap().to_string(), path);
    }
    for path in [
        "/mnt/skills/public/one/x",
        "/mnt/skills/custom/one/./x",
        "//mnt/skills//one/x/",
    ] {
        assert_eq!(Location::parse(path).unwrap().to_string(), "/mnt/skills/one/x");
    }
    assert_eq!(
        Location::parse_from_workspace("a").unwrap().to_string(),
        "/mnt/user-data/workspace/a"
    );
}

// F068
#[test]
fn names_are_compared_whole_and_parents_end_at_the_area() {
    let outside = [
        "/mnt/user-data/workspace-x",
        "/mnt/user-data",
        "/mnt/user-data/state/a",
        "/mnt/skills",
        "/mnt/skills/..",
        "/etc/passwd",
        "relative",
        "",
        "/mnt/user-data/workspace/a\0b",
    ];
    for path in outside {
        let error = Location::parse(path).unwrap_err();
        assert!(matches!(error, ResolveError::Outside { .. }), "{path}: {error}");
    }
    for path in [
        "/mnt/user-data/outputs/../uploads/a",
        "/mnt/user-data/workspace/a/../../b",
        "/mnt/skills/one/../two/a",
    ] {
        let error = Location::parse(path).unwrap_err();
        assert!(matches!(error, ResolveError::Leaves { .. }), "{path}: {error}");
    }
}

// F067
#[test]
fn links_cannot_leave_their_area() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let workspace = folder.path().join("data/workspace");
    let secret = folder.path().join("data/uploads/secret");
    symlink("/etc", workspace.join("etc")).unwrap();
    symlink("/mnt/user-data/uploads/secret", workspace.join("virtual")).unwrap();
    symlink(&secret, workspace.join("real")).unwrap();
    symlink("../uploads/secret", workspace.join("relative")).unwrap();
    symlink("/proc/self/root/etc/passwd", workspace.join("magic")).unwrap();
    for name in ["etc/passwd", "virtual", "real", "relative", "magic"] {
        let error = read(&roots, &format!("/mnt/user-data/workspace/{name}")).unwrap_err();
        assert!(matches!(error, ResolveError::Leaves { .. }), "{name}: {error}");
    }
}

// F070
#[test]
fn links_that_stay_inside_are_followed_also_absolute_ones() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let workspace = folder.path().join("data/workspace");
    fs::create_dir(workspace.join("a")).unwrap();
    fs::write(workspace.join("a/file"), "here").unwrap();
    symlink("a", workspace.join("near")).unwrap();
    symlink("/mnt/user-data/workspace/near", workspace.join("far")).unwrap();
    symlink("../far/file", workspace.join("a/back")).unwrap();
    for name in ["near/file", "far/file", "a/back", "far/../near/back"] {
        assert_eq!(
            read(&roots, &format!("/mnt/user-data/workspace/{name}")).unwrap(),
            "here",
            "{name}"
        );
    }
    let link = Location::parse("/mnt/user-data/workspace/near/file").unwrap();
    assert!(roots.open_file(&link, Links::Refuse).is_err());
}

#[test]
fn a_link_to_itself_ends() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    symlink("loop", folder.path().join("data/workspace/loop")).unwrap();
    symlink(
        "/mnt/user-data/workspace/turn",
        folder.path().join("data/workspace/turn"),
    )
    .unwrap();
    for name in ["loop", "turn"] {
        assert!(read(&roots, &format!("/mnt/user-data/workspace/{name}")).is_err());
    }
}

#[test]
fn only_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let pipe = folder.path().join("data/outputs/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, MODE, 0).unwrap();
    let error = read(&roots, "/mnt/user-data/outputs/pipe").unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"/mnt/user-data/outputs/pipe\" is a pipe, expected a file"
    );
    assert!(matches!(
        read(&roots, "/mnt/user-data/outputs").unwrap_err(),
        ResolveError::WrongKind { .. }
    ));
    assert!(matches!(
        read(&roots, "/mnt/user-data/outputs/none").unwrap_err(),
        ResolveError::Missing { .. }
    ));
    assert_eq!(read(&roots, "/mnt/skills/one/SKILL.md").unwrap(), "skill");
}

#[test]
fn a_file_is_written_whole_with_the_folders_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let path = "/mnt/user-data/workspace/a/b/file";
    let location = Location::parse(path).unwrap();
    roots.write(&location, b"one", MODE).unwrap();
    roots.write(&location, b"two", MODE).unwrap();
    assert_eq!(read(&roots, path).unwrap(), "two");
    let names = fs::read_dir(folder.path().join("data/workspace/a/b"))
        .unwrap()
        .count();
    assert_eq!(names, 1, "a temporary file was left");
}

#[test]
fn what_lies_somewhere_is_described_without_opening_it() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let stat = |path| roots.stat(&Location::parse(path).unwrap(), Links::Inside);
    assert_eq!(stat("/mnt/user-data/uploads/secret").unwrap().st_size, 6);
    assert!(matches!(
        stat("/mnt/user-data/uploads/none"),
        Err(ResolveError::Missing { .. })
    ));
}

#[test]
fn uploads_and_skills_refuse_writes_of_tools() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    for path in ["/mnt/user-data/uploads/secret", "/mnt/skills/one/SKILL.md"] {
        let error = roots
            .write(&Location::parse(path).unwrap(), b"x", MODE)
            .unwrap_err();
        assert!(matches!(error, ResolveError::ReadOnly { .. }), "{error}");
    }
    // The platform itself writes uploads.
    roots
        .replace(
            &Location::parse("/mnt/user-data/uploads/new").unwrap(),
            b"x",
            MODE,
        )
        .unwrap();
}

// F069
#[test]
fn nothing_is_written_through_a_planted_link() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let workspace = folder.path().join("data/workspace");
    symlink("../uploads/secret", workspace.join("a")).unwrap();
    symlink("../uploads", workspace.join("folder")).unwrap();
    for path in [
        "/mnt/user-data/workspace/a",
        "/mnt/user-data/workspace/folder/secret",
        "/mnt/user-data/workspace/folder/new",
    ] {
        assert!(
            roots.write(&Location::parse(path).unwrap(), b"x", MODE).is_err(),
            "{path}"
        );
    }
    assert_eq!(read(&roots, "/mnt/user-data/uploads/secret").unwrap(), "secret");
    assert!(!folder.path().join("data/uploads/new").exists());
}

/// Ends the renames of a test with it.
struct Renamer {
    stop: std::sync::Arc<std::sync::atomic::AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Renamer {
    /// Renames a folder to and fro without pause, somewhere else than where the test looks.
    fn start(folder: &Path) -> Renamer {
        use std::sync::atomic::Ordering::Relaxed;
        let stop = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let (one, other) = (folder.join("one"), folder.join("other"));
        fs::create_dir(&one).unwrap();
        let stopped = std::sync::Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Relaxed) {
                fs::rename(&one, &other).unwrap();
                fs::rename(&other, &one).unwrap();
            }
        });
        Renamer {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Renamer {
    fn drop(&mut self) {
        self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// What the rule says of `way`, in this tree.
fn check(tree: &Node, way: &str) {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    build(tree, &folder.path().join("data/workspace"));
    let names: Vec<String> = way.split('/').map(str::to_owned).collect();
    let found = read(&roots, &format!("/mnt/user-data/workspace/{way}"));
    let expected = model(tree, &names, &mut 40);
    assert_eq!(found.as_ref().ok(), expected.as_ref(), "{way}: {found:?}");
}

#[test]
fn absolute_links_are_read_name_by_name_like_any_other() {
    let link = |target: &str| Node::Link(target.to_owned());
    let folder = |entries: Vec<(&str, Node)>| {
        Node::Folder(
            entries
                .into_iter()
                .map(|(name, node)| (name.to_owned(), node))
                .collect(),
        )
    };
    let inner = folder(vec![("c", folder(vec![]))]);
    let tree = folder(vec![
        ("b", inner),
        ("file", Node::File("here".to_owned())),
        ("near", link("b/c")),
        ("up", link("/mnt/user-data/workspace/near/../../file")),
        ("dot", link("/mnt/user-data/workspace/file/.")),
        ("out", link("/mnt/user-data/workspace/near/../../..")),
        ("self", link("/mnt/user-data/workspace/./")),
    ]);
    for way in ["up", "dot", "out", "self/file", "self/dot"] {
        check(&tree, way);
    }
}

#[test]
fn renames_elsewhere_without_pause_do_not_keep_a_way_from_being_found() {
    let folder = tempfile::tempdir().unwrap();
    let roots = roots(folder.path());
    let workspace = folder.path().join("data/workspace");
    fs::create_dir(workspace.join("a")).unwrap();
    fs::write(workspace.join("file"), "here").unwrap();
    symlink(format!("../{}file", "a/../".repeat(30)), workspace.join("a/link")).unwrap();
    let _renamers = [0, 1, 2].map(|number| {
        let place = folder.path().join(number.to_string());
        fs::create_dir(&place).unwrap();
        Renamer::start(&place)
    });
    for _ in 0..20_000 {
        assert_eq!(read(&roots, "/mnt/user-data/workspace/a/link").unwrap(), "here");
    }
}

#[test]
fn a_way_that_is_disturbed_for_too_long_is_given_up_with_a_reason() {
    let within = std::time::Duration::from_millis(5);
    let mut tries = 0;
    let end = until_still(within, || {
        tries += 1;
        Err::<(), _>(rustix::io::Errno::AGAIN)
    });
    assert!(tries > 1, "{tries}");
    let path = "/mnt/user-data/workspace/a".to_owned();
    let error = ResolveError::from_errno(end.unwrap_err(), path.clone(), path);
    assert!(matches!(error, ResolveError::Restless { .. }), "{error}");
}

/// A file system as the rule sees it: the same names, no kernel.
#[derive(Clone, Debug)]
enum Node {
    Folder(BTreeMap<String, Node>),
    File(String),
    Link(String),
}

/// Follows the way; `None` when there is nothing, or it leaves.
fn model(root: &Node, way: &[String], budget: &mut u32) -> Option<String> {
    let mut at: Vec<String> = Vec::new();
    let mut rest: Vec<String> = way.iter().rev().cloned().collect();
    while let Some(name) = rest.pop() {
        let Node::Folder(entries) = node(root, &at)? else {
            return None;
        };
        match name.as_str() {
            "." => {}
            ".." => {
                at.pop()?;
            }
            name => match entries.get(name)? {
                Node::Link(target) => {
                    *budget = budget.checked_sub(1)?;
                    let target = match target.strip_prefix("/mnt/user-data/workspace") {
                        Some(inside) => {
                            at.clear();
                            inside.to_owned()
                        }
                        None if target.starts_with('/') => return None,
                        None => target.clone(),
                    };
                    rest.extend(
                        target
                            .split('/')
                            .rev()
                            .filter(|name| !name.is_empty())
                            .map(str::to_owned),
                    );
                }
                _ => at.push(name.to_owned()),
            },
        }
    }
    match node(root, &at)? {
        Node::File(text) => Some(text.clone()),
        _ => None,
    }
}

fn node<'a>(root: &'a Node, at: &[String]) -> Option<&'a Node> {
    at.iter().try_fold(root, |node, name| match node {
        Node::Folder(entries) => entries.get(name),
        _ => None,
    })
}

fn build(node: &Node, path: &Path) {
    match node {
        Node::Folder(entries) => {
            fs::create_dir_all(path).unwrap();
            for (name, node) in entries {
                build(node, &path.join(name));
            }
        }
        Node::File(text) => fs::write(path, text).unwrap(),
        Node::Link(target) => symlink(target, path).unwrap(),
    }
}

/// The ways to everything below, and the empty one.
fn ways(node: &Node) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    if let Node::Folder(entries) = node {
        for (name, node) in entries {
            all.extend(
                ways(node)
                    .into_iter()
                    .map(|way| [vec![name.clone()], way].concat()),
            );
        }
    }
    all
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[abc]", 1 => Just("..".to_owned()), 1 => Just(".".to_owned())]
}

fn link() -> impl Strategy<Value = Node> {
    let way = proptest::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    let start = prop_oneof![
        4 => Just(""),
        2 => Just("/mnt/user-data/workspace/"),
        2 => Just("../uploads/"),
        1 => Just("../../uploads/"),
        1 => Just("/mnt/user-data/uploads/"),
        1 => Just("/"),
    ];
    (start, way).prop_map(|(start, way)| Node::Link(format!("{start}{way}")))
}

fn tree() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof!["[xyz]{1,3}".prop_map(Node::File), link()];
    leaf.prop_recursive(3, 24, 3, |inner| {
        proptest::collection::btree_map("[abc]", inner, 0..4).prop_map(Node::Folder)
    })
    .prop_map(|node| match node {
        Node::Folder(entries) => Node::Folder(entries),
        other => Node::Folder(BTreeMap::from([("a".to_owned(), other)])),
    })
}

proptest! {
    // A file of failed cases beside the crates would count as a crate.
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_a_model_of_the_rule_reads(
        root in tree(),
        start in any::<prop::sample::Index>(),
        rest in proptest::collection::vec(name(), 0..3),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let roots = roots(folder.path());
        build(&root, &folder.path().join("data/workspace"));
        // Most random ways lead nowhere: begin with one that exists.
        let way: Vec<String> = start.get(&ways(&root)).iter().cloned().chain(rest).collect();
        let path = format!("/mnt/user-data/workspace/{}", way.join("/"));
        let way: Vec<String> = way.into_iter().filter(|name| name != ".").collect();
        let expected = Location::parse(&path).ok().and_then(|_| model(&root, &way, &mut 40));
        let found = read(&roots, &path);
        let restless = matches!(found, Err(ResolveError::Restless { .. }));
        prop_assert!(!restless, "the machine was too busy to decide: {}", path);
        prop_assert_eq!(found.ok(), expected, "{}", path);
    }
}
