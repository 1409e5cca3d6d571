//! System calls that no program of a call needs, refused with `EPERM` on top of the container's own filter.
//!
//! A container's filter may be missing, on a machine that is none: all that Docker's and containerd's default
//! refuse to a container without capabilities is refused here as well. Calls of another architecture, such as
//! 32-bit ones on a 64-bit machine, end the process (`SIGSYS`): the filters begin with that check.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever the arguments are: looking into other processes, kernel interfaces with a history of
/// escapes, mounts and namespaces, the machine's own settings, where memory lies on it, message queues, shared memory
/// and semaphores by number, which outlive their makers and belong to nobody, and extended attributes, which Landlock
/// does not watch.
const REFUSED: [i64; 71] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_notify,
    libc::SYS_shmget,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_get_mempolicy,
    libc::SYS_set_mempolicy_home_node,
    libc::SYS_name_to_handle_at,
    libc::SYS_memfd_secret,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
];

/// Old calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [i64; 7] = [
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [i64; 0] = [];

/// The newest call that this list was made with. What is newer nobody has looked at: it is reported as missing, and
/// programs do without. So are all numbers of the x32 variant, which begin at 2^30 and would run the same calls.
const NEWEST: i64 = libc::SYS_mseal;

/// Calls that change how a process or thread is scheduled; the first argument names it. The kernel only compares
/// user IDs, and ours are the same: 0, the caller, is all that is left.
const SCHEDULING: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];
/// The same by kind and number, 0 again being the caller or its group; and the kind that means all of its user.
const PRIORITIES: [(i64, u64); 2] = [
    (libc::SYS_setpriority, libc::PRIO_USER as u64),
    (libc::SYS_ioprio_set, 3),
];

/// New namespaces by `clone`. `clone3`, whose flags a filter cannot see, is reported as missing, and
/// libraries then use `clone`. (`CLONE_NEWTIME` is not possible with `clone`.)
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Address families that stay possible; without egress also not the internet's, loopback and UDP included.
const LOCAL_FAMILIES: [i32; 2] = [libc::AF_UNIX, libc::AF_NETLINK];
const INTERNET_FAMILIES: [i32; 2] = [libc::AF_INET, libc::AF_INET6];

/// `personality(0xffffffff)` asks, 0 is the usual one.
const PERSONALITIES: [u64; 2] = [0, 0xffff_ffff];

/// Typing into somebody's terminal.
const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// `FS_IOC_SETFLAGS`, its form of 32 bits, `FS_IOC_FSSETXATTR`, `FS_IOC_ENABLE_VERITY`, `FS_IOC_SET_ENCRYPTION_POLICY`:
/// an owner may take its files out of the project whose quota bounds a volume, or make them such that nobody else can
/// read or change them.
const FILE_ATTRIBUTES: [u64; 5] = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4080_6685, 0x800c_6613];

/// `F_SETLEASE` and `F_SETDELEG`: whoever opens a leased file, also the runtime and the next sub-task, waits for 45
/// seconds or is turned away.
const LEASES: [u64; 2] = [1024, 1040];

/// The Landlock ABI from which it watches over cutting files short.
const LANDLOCK_TRUNCATE: u32 = 3;

/// Installs the filter for this process and all that it will start. `landlock` is the ABI that confines it, 0
/// when nothing does.
pub(crate) fn apply(internet: bool, landlock: u32) -> Result<(), seccompiler::Error> {
    let mut rules = rules(internet)?;
    let mut missing = Rules::from([(libc::SYS_clone3, Vec::new())]);
    if (1..LANDLOCK_TRUNCATE).contains(&landlock) {
        rules.extend(no_truncation_of_read_files()?);
        // Its flags are in memory, where a filter does not see them.
        missing.insert(libc::SYS_openat2, Vec::new());
    }
    install(rules, libc::EPERM)?;
    install(missing, libc::ENOSYS)?;
    apply_filter(&newer_are_missing())
}

fn install(rules: Rules, errno: i32) -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    let program: BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

/// Load the number (the first word); if it is greater than the newest, return `ENOSYS`; else allow.
fn newer_are_missing() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP_IF_GREATER: u16 = 0x25;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    vec![
        step(LOAD_WORD, 0, 0, 0),
        step(JUMP_IF_GREATER, 0, 1, u32::try_from(NEWEST).unwrap_or(u32::MAX)),
        step(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs(),
        ),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Opening for writing is watched by every Landlock. Left are cutting by name, and while opening for something else.
fn no_truncation_of_read_files() -> Result<Rules, BackendError> {
    let mask = u64::from((libc::O_TRUNC | libc::O_ACCMODE).unsigned_abs());
    // 3 is neither reading nor writing, but asks for the right to both.
    let cuts = |argument| -> Result<Vec<SeccompRule>, BackendError> {
        let flags = [libc::O_RDONLY, 3].map(|mode| u64::from((libc::O_TRUNC | mode).unsigned_abs()));
        flags
            .into_iter()
            .map(|flags| when(argument, SeccompCmpOp::MaskedEq(mask), flags))
            .collect()
    };
    let mut rules = Rules::from([(libc::SYS_truncate, Vec::new()), (libc::SYS_openat, cuts(2)?)]);
    #[cfg(target_arch = "x86_64")]
    rules.insert(libc::SYS_open, cuts(1)?);
    Ok(rules)
}

fn rules(internet: bool) -> Result<Rules, seccompiler::Error> {
    let refused = REFUSED.into_iter().chain(REFUSED_HERE);
    let mut rules: Rules = refused.map(|call| (call, Vec::new())).collect();
    let mut families = LOCAL_FAMILIES.to_vec();
    if internet {
        families.extend(INTERNET_FAMILIES);
    }
    let families: Vec<u64> = families
        .iter()
        .map(|family| u64::from(family.unsigned_abs()))
        .collect();
    let namespaces = NAMESPACES.iter().map(|flag| u64::from(flag.cast_unsigned()));
    let namespaces: Result<_, _> = namespaces
        .map(|flag| when(0, SeccompCmpOp::MaskedEq(flag), flag))
        .collect();
    rules.insert(libc::SYS_clone, namespaces?);
    rules.insert(libc::SYS_socket, sockets(&families)?);
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    // Limits of other processes, such as ours: the kernel only compares user IDs.
    rules.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    for call in SCHEDULING {
        rules.insert(call, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    }
    for (call, of_user) in PRIORITIES {
        let others = vec![when(0, SeccompCmpOp::Eq, of_user)?, when(1, SeccompCmpOp::Ne, 0)?];
        rules.insert(call, others);
    }
    let ioctls: Result<_, _> = [TIOCSTI, TIOCLINUX]
        .into_iter()
        .chain(FILE_ATTRIBUTES)
        .map(|request| when(1, SeccompCmpOp::Eq, request))
        .collect();
    rules.insert(libc::SYS_ioctl, ioctls?);
    let leases: Result<_, _> = LEASES
        .into_iter()
        .map(|command| when(1, SeccompCmpOp::Eq, command))
        .collect();
    rules.insert(libc::SYS_fcntl, leases?);
    Ok(rules)
}

/// Only these families; of netlink only what lists interfaces; of the internet only TCP and UDP.
fn sockets(families: &[u64]) -> Result<Vec<SeccompRule>, BackendError> {
    let word = |argument, operation, value| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)
    };
    let family = |family: i32| word(0, SeccompCmpOp::Eq, u64::from(family.unsigned_abs()));
    let protocol_is_not = |protocol: i32| word(2, SeccompCmpOp::Ne, u64::from(protocol.unsigned_abs()));
    let mut rules = vec![
        none_of(0, families)?,
        SeccompRule::new(vec![
            family(libc::AF_NETLINK)?,
            protocol_is_not(libc::NETLINK_ROUTE)?,
        ])?,
    ];
    for internet in INTERNET_FAMILIES {
        rules.push(SeccompRule::new(vec![
            family(internet)?,
            protocol_is_not(libc::IPPROTO_IP)?,
            protocol_is_not(libc::IPPROTO_TCP)?,
            protocol_is_not(libc::IPPROTO_UDP)?,
        ])?);
    }
    Ok(rules)
}

fn when(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompRule, BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)?;
    SeccompRule::new(vec![condition])
}

fn none_of(argument: u8, allowed: &[u64]) -> Result<SeccompRule, BackendError> {
    let conditions: Result<_, _> = allowed
        .iter()
        .map(|value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *value))
        .collect();
    SeccompRule::new(conditions?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::Errno;
    use std::fs;

    /// A filter is a thread's: what happens in this one stays there.
    fn filtered<T: Send>(internet: bool, landlock: u32, test: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                apply(internet, landlock).unwrap();
                test()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn where_landlock_does_not_watch_over_truncation_the_filter_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let cut = |landlock| {
            fs::write(&file, "text").unwrap();
            filtered(false, landlock, || {
                let flags = [OFlags::RDONLY, OFlags::from_bits_retain(3), OFlags::WRONLY];
                let opened = flags.map(|flags| open(&file, flags | OFlags::TRUNC, Mode::empty()).err());
                (opened, fs::write(&file, "new").err())
            })
        };
        // For writing: that Landlock decides.
        assert_eq!(cut(2).0, [Some(Errno::PERM), Some(Errno::PERM), None]);
        assert_eq!(cut(3).0, [None; 3]);
        assert!(cut(1).1.is_none(), "writing as usual works");
    }

    #[test]
    fn of_the_internet_only_tcp_and_udp_are_left_and_of_netlink_only_routes() {
        use rustix::net::{AddressFamily, Protocol, SocketType, netlink, socket};
        let open = |family, kind, protocol| socket(family, kind, protocol).err();
        let tried = |internet| {
            filtered(internet, 0, || {
                [
                    open(AddressFamily::INET, SocketType::STREAM, None),
                    open(
                        AddressFamily::INET6,
                        SocketType::DGRAM,
                        Some(rustix::net::ipproto::UDP),
                    ),
                    open(
                        AddressFamily::INET,
                        SocketType::DGRAM,
                        Some(rustix::net::ipproto::ICMP),
                    ),
                    open(
                        AddressFamily::INET,
                        SocketType::STREAM,
                        Some(rustix::net::ipproto::MPTCP),
                    ),
                    open(AddressFamily::NETLINK, SocketType::RAW, None),
                    open(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::SOCK_DIAG)),
                    open(AddressFamily::UNIX, SocketType::STREAM, None::<Protocol>),
                ]
            })
        };
        let no = Some(Errno::PERM);
        assert_eq!(tried(true), [None, None, no, no, None, no, None]);
        assert_eq!(tried(false), [no, no, no, no, None, no, None]);
    }
}
