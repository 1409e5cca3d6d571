//! Compares the container's mounts with what the operator made, before any user code runs.
//!
//! An image with `VOLUME`s, a mutated Pod or a mount that lost its read-only flag would give user code
//! places to write that nobody counts or cleans.

use agentrun_protocol::executor::ExpectedMount;

/// Mount points that container runtimes make themselves.
const OWN: [&str; 9] = [
    "/",
    "/proc",
    "/sys",
    "/dev",
    "/etc/hosts",
    "/etc/hostname",
    "/etc/resolv.conf",
    "/run/.containerenv",
    // CRI-O makes it, empty; what is mounted below it is nobody's own.
    "/run/secrets",
];
const OWN_BELOW: [&str; 3] = ["/proc/", "/sys/", "/dev/"];

/// A line of `/proc/self/mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    path: String,
    read_only: bool,
}

/// The container is not what the operator made.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Surprise {
    /// One too many.
    #[error(
        "{0:?} is mounted, which nobody asked for: the image may declare it as VOLUME; build the image without \
         it (the operator mounts /tmp and /mnt/user-data)"
    )]
    Unexpected(String),
    /// One too few.
    #[error("{0:?} is not mounted")]
    Missing(String),
    /// One that user code could write.
    #[error("{0:?} must be mounted read-only, but is writable")]
    Writable(String),
}

/// Checks a mount table against the expectation; the first surprise is the answer.
pub(crate) fn check(mountinfo: &str, expected: &[ExpectedMount]) -> Result<(), Surprise> {
    let mounts = effective(mountinfo);
    for mount in &mounts {
        let wanted = expected.iter().find(|wanted| wanted.path == mount.path);
        match wanted {
            Some(wanted) if wanted.read_only && !mount.read_only => {
                return Err(Surprise::Writable(mount.path.clone()));
            }
            None if !is_own(&mount.path) => return Err(Surprise::Unexpected(mount.path.clone())),
            _ => {}
        }
    }
    let missing = expected
        .iter()
        .find(|wanted| mounts.iter().all(|mount| mount.path != wanted.path));
    missing.map_or(Ok(()), |wanted| Err(Surprise::Missing(wanted.path.clone())))
}

fn is_own(path: &str) -> bool {
    OWN.contains(&path) || OWN_BELOW.iter().any(|folder| path.starts_with(folder))
}

/// One entry for each mount point: a later mount covers an earlier one.
fn effective(mountinfo: &str) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = Vec::new();
    for mount in mountinfo.lines().filter_map(parse) {
        mounts.retain(|earlier| earlier.path != mount.path);
        mounts.push(mount);
    }
    mounts
}

/// Fields: ID, parent, device, root, mount point, options, optional fields, `-`, type, source, options
/// of the file system. Either kind of options can make it read-only.
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(4);
    let path = unescape(front.next()?);
    let of_mount = front.next()?;
    let of_file_system = back.split(' ').nth(2).unwrap_or_default();
    let read_only = [of_mount, of_file_system]
        .iter()
        .any(|options| options.split(',').any(|one| one == "ro"));
    Some(Mount { path, read_only })
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(text: &str) -> String {
    let pairs = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| {
        text.replace(escaped, plain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTAINER: &str = "\
703 690 0:60 / / ro,relatime - overlay overlay rw,lowerdir=/a
704 703 0:62 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
705 703 0:63 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
706 705 0:64 / /dev/pts rw,nosuid,noexec - devpts devpts rw
707 705 0:52 / /dev/mqueue rw - mqueue mqueue rw
708 703 0:57 / /sys ro,nosuid - sysfs sysfs ro
709 703 254:0 /users/u/a\\040b/uploads /mnt/user-data/uploads ro,relatime - ext4 /dev/vda rw
710 703 254:0 /users/u/outputs /mnt/user-data/outputs rw,relatime - ext4 /dev/vda rw
711 703 254:0 /hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
712 705 254:0 /log /dev/termination-log rw,relatime - ext4 /dev/vda rw
713 704 0:62 /bus /proc/bus ro,nosuid - proc proc rw
";

    fn expected() -> Vec<ExpectedMount> {
        let mount = |path: &str, read_only| ExpectedMount {
            path: path.into(),
            read_only,
        };
        vec![
            mount("/mnt/user-data/uploads", true),
            mount("/mnt/user-data/outputs", false),
        ]
    }

    fn with(line: &str) -> String {
        format!("{CONTAINER}{line}\n")
    }

    #[test]
    fn the_operators_mounts_and_the_container_runtimes_own_are_fine() {
        assert_eq!(check(CONTAINER, &expected()), Ok(()));
    }

    #[test]
    fn a_volume_of_the_image_is_named() {
        let table = with("714 703 254:0 /v /var/lib/data rw,relatime - ext4 /dev/vda rw");
        assert_eq!(
            check(&table, &expected()),
            Err(Surprise::Unexpected("/var/lib/data".into()))
        );
    }

    #[test]
    fn a_folder_that_only_begins_like_one_of_the_runtimes_is_a_surprise() {
        let table = with("714 703 254:0 /v /devices rw,relatime - ext4 /dev/vda rw");
        assert_eq!(
            check(&table, &expected()),
            Err(Surprise::Unexpected("/devices".into()))
        );
    }

    #[test]
    fn a_writable_mount_that_should_be_read_only_is_named_also_when_it_covers_a_good_one() {
        let table = with("714 703 254:0 /v /mnt/user-data/uploads rw,relatime - ext4 /dev/vda rw");
        assert_eq!(
            check(&table, &expected()),
            Err(Surprise::Writable("/mnt/user-data/uploads".into()))
        );
    }

    #[test]
    fn a_missing_mount_is_named() {
        let table = CONTAINER.replace("/mnt/user-data/outputs", "/dev/other");
        assert_eq!(
            check(&table, &expected()),
            Err(Surprise::Missing("/mnt/user-data/outputs".into()))
        );
    }

    #[test]
    fn escaped_mount_points_are_read_as_they_are() {
        assert_eq!(unescape("/a\\040b\\134c"), "/a b\\c");
    }
}
