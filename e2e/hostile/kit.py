# The kit of the hostile programs. A runner puts it before every Python program of this folder.
import ctypes, errno, fcntl, glob, json, mmap, os, pathlib, platform, re, resource, signal, socket, stat, struct
import subprocess, sys, threading, time

X86 = platform.machine() == "x86_64"
DATA = os.environ.get("HOSTILE_DATA", "/mnt/user-data")
TEMP = os.environ.get("HOSTILE_TEMP", "/tmp")
UPLOADS, WORKSPACE, OUTPUTS = (os.path.join(DATA, name) for name in ("uploads", "workspace", "outputs"))
MARKER = "agentrun-hostile-marker"
SUPERVISOR = os.getppid()
IN_CLUSTER = "HOSTILE_DATA" not in os.environ

# name: number on x86_64, number on aarch64; None where it does not exist
CALLS = {
    "accept4": (288, 242), "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280),
    "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone": (56, 220), "clone3": (435, 435), "create_module": (174, None), "delete_module": (176, 106),
    "execveat": (322, 281), "fanotify_init": (300, 262), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "get_kernel_syms": (177, None),
    "get_mempolicy": (239, 236), "get_robust_list": (274, 100), "init_module": (175, 105), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None),
    "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104),
    "keyctl": (250, 219), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "listmount": (458, 458), "lookup_dcookie": (212, 18), "mbind": (237, 235),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "migrate_pages": (256, 238), "modify_ldt": (154, None),
    "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "name_to_handle_at": (303, 264), "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265), "open_tree": (428, 428), "open_tree_attr": (467, 467), "perf_event_open": (298, 241),
    "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41), "prctl": (157, 167), "prlimit64": (302, 261), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "ptrace": (101, 117), "query_module": (178, None), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "sched_setaffinity": (203, 122), "sched_setattr": (314, 274), "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119), "seccomp": (317, 277), "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450), "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268),
    "setpriority": (141, 140), "settimeofday": (164, 170), "statmount": (457, 457), "swapoff": (168, 225),
    "swapon": (167, 224), "_sysctl": (156, None), "sysfs": (139, None), "syslog": (103, 116), "tgkill": (234, 131),
    "tkill": (200, 130), "umount2": (166, 39), "unshare": (272, 97), "uselib": (134, None), "userfaultfd": (323, 282),
    "ustat": (136, None), "vhangup": (153, 58), "vmsplice": (278, 75),
}
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def number_of(name):
    return CALLS[name][0 if X86 else 1]


def raw(number, *arguments):
    """A system call by its number. The result in a list, since 0 is a success; OSError when it fails."""
    words = [argument if argument is None or isinstance(argument, (bytes, ctypes.Array, ctypes.Structure))
             else ctypes.c_long(argument) for argument in arguments]
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return [result]


def call(name, *arguments):
    """A system call by its name."""
    number = number_of(name)
    if number is None:
        raise OSError(errno.ENOSYS, "no such call on this machine")
    return raw(number, *arguments)


_ways, _escapes = 0, []


def escaped(how):
    _escapes.append(how)
    print("ESCAPED " + how, flush=True)


def way(what, attempt, *arguments):
    """Tries one way out: it is closed if it fails or gives nothing."""
    global _ways
    _ways += 1
    try:
        result = attempt(*arguments)
    except (OSError, ValueError, MemoryError, PermissionError, subprocess.SubprocessError) as error:
        return error
    if result:
        escaped(f"{what}: {result!r}"[:400])
    return result


def calls(*attempts):
    """System calls that must be refused, each a name and its arguments."""
    for name, *arguments in attempts:
        way(f"{name}{tuple(arguments)}"[:120], call, name, *arguments)


def refused(*attempts):
    """The same, and refused before the kernel looks at the arguments."""
    for name, *arguments in attempts:
        error = way(f"{name}{tuple(arguments)}"[:120], call, name, *arguments)
        if isinstance(error, OSError) and error.errno not in (errno.EPERM, errno.ENOSYS):
            escaped(f"{name} was not refused but answered {error}")


def in_child(attempt, *arguments):
    """Whether it succeeds, in a process that may die of it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(42 if attempt(*arguments) else 0)
        except BaseException:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 42


def others():
    """Processes that are not ours: PID 1 and the supervisor first."""
    own = {os.getpid()}
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [number for number in dict.fromkeys([1, SUPERVISOR, *numbers]) if number > 0 and number not in own]
    return [number for number in found if not is_descendant(number)]


def is_descendant(process):
    while process > 1 and process != os.getpid():
        try:
            process = int(pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError):
            return False
    return process == os.getpid()


def write(path, flags=os.O_WRONLY):
    """Writes a byte into what exists."""
    opened = os.open(path, flags)
    try:
        return os.write(opened, b"x")
    finally:
        os.close(opened)


def end():
    """The last line of a program: what came of it."""
    sys.stdout.flush()
    for how in _escapes:
        print("ESCAPED " + how)
    print(f"{_ways} ways tried, " + ("held all" if not _escapes else f"{len(_escapes)} open"), flush=True)
    os._exit(1 if _escapes else 0)
