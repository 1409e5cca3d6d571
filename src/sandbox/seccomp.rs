//! System calls that no program of a call needs, refused with `EPERM` on top of the container's own filter.

use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
    apply_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever the arguments are: looking into other processes, kernel interfaces with a history of
/// escapes, mounts and namespaces, the machine's own settings, and the node's message queues.
const REFUSED: [i64; 56] = [
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

/// Marks a call of the x32 variant, which runs the same calls under other numbers.
#[cfg(target_arch = "x86_64")]
const X32: i64 = 0x4000_0000;

/// Installs the filter for this process and all that it will start.
pub(crate) fn apply(internet: bool) -> Result<(), seccompiler::Error> {
    install(rules(internet)?, libc::EPERM)?;
    install(BTreeMap::from([(libc::SYS_clone3, Vec::new())]), libc::ENOSYS)
}

fn install(rules: Rules, errno: i32) -> Result<(), seccompiler::Error> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(for_all_variants(rules), SeccompAction::Allow, refuse, arch)?;
    let program: seccompiler::BpfProgram = filter.try_into()?;
    apply_filter(&program)
}

fn for_all_variants(rules: Rules) -> Rules {
    #[cfg(target_arch = "x86_64")]
    let rules = rules
        .into_iter()
        .flat_map(|(call, rules)| [(call, rules.clone()), (call | X32, rules)])
        .collect();
    rules
}

fn rules(internet: bool) -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
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
    rules.insert(libc::SYS_socket, vec![none_of(0, &families)?]);
    rules.insert(libc::SYS_personality, vec![none_of(0, &PERSONALITIES)?]);
    // Limits of other processes, such as ours: the kernel only compares user IDs.
    rules.insert(libc::SYS_prlimit64, vec![when(0, SeccompCmpOp::Ne, 0)?]);
    let ioctls: Result<_, _> = [TIOCSTI, TIOCLINUX]
        .into_iter()
        .map(|request| when(1, SeccompCmpOp::Eq, request))
        .collect();
    rules.insert(libc::SYS_ioctl, ioctls?);
    Ok(rules)
}

fn when(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value)?;
    SeccompRule::new(vec![condition])
}

fn none_of(argument: u8, allowed: &[u64]) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions: Result<_, _> = allowed
        .iter()
        .map(|value| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, *value))
        .collect();
    SeccompRule::new(conditions?)
}
