//! A bounded place on this machine for one executor: a user, limits and control groups of its own.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Users that nobody else on a machine has.
const FIRST_USER: u32 = 1_907_000_000;
/// Processes of the user, the executor's included. Above what a call may have, so that this is not what ends it.
const PROCESSES: u32 = 600;
/// Memory of all its processes together.
const MEMORY: &str = "1G";

/// The user and the control groups. They go with it.
pub(crate) struct Place {
    pub(crate) user: u32,
    groups: Vec<PathBuf>,
}

impl Place {
    pub(crate) fn new(number: u32) -> Place {
        let user = FIRST_USER + number;
        let name = format!("agentrun-hostile-{user}");
        // Where a machine has neither, the limit on the user's processes has to do.
        let groups = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        let made = groups.into_iter().filter_map(|(parent, limit)| {
            let group = Path::new(parent).join(&name);
            let is_root_of_groups = Path::new(parent).join("cgroup.procs").exists();
            let made = is_root_of_groups && (group.is_dir() || fs::create_dir(&group).is_ok());
            let limited = made && fs::write(group.join(limit), MEMORY).is_ok();
            if made && !limited {
                let _ = fs::remove_dir(&group);
            }
            limited.then_some(group)
        });
        Place {
            user,
            groups: made.collect(),
        }
    }

    /// The executor in it. `folder` becomes the user's.
    pub(crate) fn executor(&self, folder: &Path, socket: &Path) -> Command {
        let binary = folder.join("agentrun-sandbox");
        fs::copy(env!("CARGO_BIN_EXE_agentrun-sandbox"), &binary).unwrap();
        for path in [
            "",
            "executor.sock",
            "tmp",
            "data",
            "data/uploads",
            "data/workspace",
            "data/outputs",
        ] {
            chown(folder.join(path), Some(self.user), Some(self.user)).unwrap();
        }
        let joins = self
            .groups
            .iter()
            .map(|group| format!("echo $$ > {}/cgroup.procs; ", group.display()));
        let user = self.user;
        // What a program leaves in the machine's own /dev/shm could be run by its people.
        let inside = format!(
            "mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec prlimit --nproc={PROCESSES} --core=0 -- \
             setpriv --reuid={user} --regid={user} --clear-groups --bounding-set=-all --inh-caps=-all \"$@\""
        );
        let script = format!(
            "{}exec unshare --pid --fork --kill-child --mount-proc --ipc sh -c '{inside}' sh \"$@\"",
            joins.collect::<String>()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(binary);
        command.arg("--socket").arg(socket);
        command.arg("--temp").arg(folder.join("tmp"));
        command.arg("--user-data").arg(folder.join("data"));
        command.env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        );
        command.env("HOSTILE_CANARY", "a value of the executor's environment");
        command.stdin(Stdio::null());
        command
    }

    /// Processes of the user, by number and name.
    pub(crate) fn processes(&self) -> Vec<String> {
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let of_user = entries.filter_map(|entry| {
            let status = fs::read_to_string(entry.path().join("status")).ok()?;
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
            let ours = uid
                .split_ascii_whitespace()
                .any(|word| word == self.user.to_string());
            let name = status.lines().next()?.trim_start_matches("Name:").trim();
            ours.then(|| format!("{} {name}", entry.file_name().display()))
        });
        of_user.collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for group in &self.groups {
            // Its last process may just be ending; a group without processes costs nothing.
            let _ = fs::remove_dir(group);
        }
    }
}
