//! What a program may touch: no new privileges, fewer capabilities, Landlock, seccomp.

use crate::explain::NotStarted;
use crate::options::Settings;
use crate::{privileges, seccomp, sys};
use agentrun_protocol::executor::Exec;
use agentrun_protocol::work::FileAccess;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::fs;
use std::path::{Path, PathBuf};

/// The newest Landlock that this was written for.
const NEWEST: u32 = 10;

/// Devices that programs write to. `/dev/termination-log` and `/dev/mqueue` are none of them.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Confines this process and all that it will start. Cannot be undone.
pub(crate) fn confine(
    exec: &Exec,
    settings: &Settings,
    scratch: &Path,
    landlock_required: bool,
) -> Result<(), NotStarted> {
    rustix::thread::set_no_new_privs(true).map_err(|error| NotStarted::unconfined("no_new_privs", error))?;
    privileges::drop_all_but_files()
        .map_err(|error| NotStarted::unconfined("loss of capabilities", error))?;
    let abi = sys::landlock_abi().min(NEWEST);
    if abi > 0 {
        landlock(exec, settings, scratch, abi).map_err(|error| NotStarted::unconfined("Landlock", error))?;
    } else if landlock_required {
        let fix = "the kernel has none; enable it (CONFIG_SECURITY_LANDLOCK, lsm=landlock) or set isolation: BestEffort";
        return Err(NotStarted::unconfined("Landlock", fix));
    }
    seccomp::apply(exec.tcp, abi).map_err(|error| NotStarted::unconfined("the seccomp filter", error))
}

/// Takes from this thread, and all that it will start, every file but those below these folders: a walk by names
/// cannot leave them, whatever is swapped meanwhile. Without Landlock this does nothing.
pub(crate) fn see_only(folders: &[&Path]) -> Result<(), RulesetError> {
    let version = version(sys::landlock_abi().min(NEWEST));
    let all = AccessFs::from_all(version);
    let mut ruleset = Ruleset::default().handle_access(all)?.create()?;
    for folder in folders {
        // What does not exist needs no rule.
        if let Ok(folder) = PathFd::new(folder) {
            ruleset = ruleset.add_rule(PathBeneath::new(folder, all))?;
        }
    }
    ruleset.restrict_self().map(drop)
}

/// Lets the supervisor signal its own descendants only. Returns whether the kernel can do that.
pub(crate) fn confine_own_signals() -> bool {
    sys::landlock_abi() >= 6
        && rustix::thread::set_no_new_privs(true).is_ok()
        && Ruleset::default()
            .scope(Scope::Signal)
            .and_then(Ruleset::create)
            .and_then(RulesetCreated::restrict_self)
            .is_ok()
}

fn landlock(exec: &Exec, settings: &Settings, scratch: &Path, abi: u32) -> Result<(), RulesetError> {
    let version = version(abi);
    // All that this ABI has was asked of the kernel: what is missing all the same is an error.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(version))?;
    if abi >= 4 && !exec.tcp {
        ruleset = ruleset.handle_access(AccessNet::from_all(version))?;
    }
    if abi >= 6 {
        ruleset = ruleset.scope(Scope::from_all(version))?;
    }
    let all = AccessFs::from_all(version);
    let read = AccessFs::from_read(version);
    let mut ruleset = ruleset.create()?;
    for (path, rights) in grants(exec.access, settings, scratch, read, all) {
        // What does not exist needs no rule.
        if let Ok(folder) = PathFd::new(&path) {
            let rights = if path.is_dir() {
                rights
            } else {
                rights & AccessFs::from_file(version)
            };
            ruleset = ruleset.add_rule(PathBeneath::new(folder, rights))?;
        }
    }
    ruleset.restrict_self().map(drop)
}

type Rights = BitFlags<AccessFs>;

/// Reading and executing everywhere but where others' data is; writing in few places. A mount that is
/// read-only stays so, whatever this says.
fn grants(
    access: FileAccess,
    settings: &Settings,
    scratch: &Path,
    read: Rights,
    all: Rights,
) -> Vec<(PathBuf, Rights)> {
    let mut hidden = settings.hide.clone();
    if access != FileAccess::Write {
        // Other calls keep their private folders in there. Who may write shares it: commands use /tmp by name.
        hidden.push(settings.temp.clone());
    }
    if access == FileAccess::None {
        hidden.push(settings.user_data.clone());
    }
    let mut grants: Vec<_> = all_but(Path::new("/"), &hidden)
        .into_iter()
        .map(|path| (path, read))
        .collect();
    if access != FileAccess::None {
        // A hidden folder may hold it, on a machine that is not a container.
        grants.push((settings.user_data.clone(), read));
    }
    let mut writable = vec![scratch.to_owned(), "/dev/shm".into()];
    writable.extend(DEVICES.map(|name| Path::new("/dev").join(name)));
    if access == FileAccess::Write {
        writable.push(settings.temp.clone());
        writable.extend(["workspace", "outputs"].map(|name| settings.user_data.join(name)));
    }
    grants.extend(writable.into_iter().map(|path| (path, all)));
    grants
}

/// Paths that together cover all below `root` but the hidden ones: Landlock can only allow.
fn all_but(root: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|path| path == root) {
        return Vec::new();
    }
    if !hidden.iter().any(|path| path.starts_with(root)) {
        return vec![root.to_owned()];
    }
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    folders.flat_map(|entry| all_but(&entry.path(), hidden)).collect()
}

fn version(abi: u32) -> ABI {
    match abi {
        1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        6 => ABI::V6,
        7 => ABI::V7,
        8 => ABI::V8,
        9 => ABI::V9,
        _ => ABI::V10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_folders_are_left_out_and_their_siblings_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for path in ["a/b", "a/c", "d"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        std::os::unix::fs::symlink("a/b", root.join("link")).unwrap();
        let mut seen = all_but(root, &[root.join("a/b")]);
        seen.sort();
        assert_eq!(seen, [root.join("a/c"), root.join("d")]);
        assert_eq!(all_but(root, &[]), [root]);
        assert!(all_but(root, &[root.into()]).is_empty());
    }

    #[test]
    fn a_function_without_files_is_granted_nothing_of_the_user_data() {
        let settings = Settings::default();
        let (read, all) = (AccessFs::from_read(ABI::V1), AccessFs::from_all(ABI::V1));
        let of = |access| grants(access, &settings, Path::new("/tmp/x"), read, all);
        let covers_data = |(path, _): &(PathBuf, Rights)| {
            settings.user_data.starts_with(path) || path.starts_with(&settings.user_data)
        };
        assert!(!of(FileAccess::None).iter().any(covers_data));
        let writes = |access| of(access).iter().filter(|grant| grant.1 == all).any(covers_data);
        assert!(!writes(FileAccess::Read));
        assert!(writes(FileAccess::Write));
    }
}
