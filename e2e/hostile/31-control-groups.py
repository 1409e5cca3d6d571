# Leaves its control group or changes it, and writes below /sys.
# forms: node local
# expect: Success/Completed
roots = ["/sys/fs/cgroup"] + glob.glob("/sys/fs/cgroup/*/")
for root in roots:
    way(f"a group below {root}", lambda: os.mkdir(os.path.join(root, MARKER)) is None)
    for name, value in (("cgroup.procs", str(os.getpid())), ("tasks", str(os.getpid())), ("memory.max", "max"), ("memory.limit_in_bytes", "-1"), ("pids.max", "max"),
                        ("cpu.max", "max"), ("cpu.cfs_quota_us", "-1"), ("release_agent", "/tmp/x"), ("notify_on_release", "1"), ("cgroup.kill", "1"), ("cgroup.freeze", "1"),
                        ("devices.allow", "a"), ("memory.oom.group", "0"), ("cgroup.subtree_control", "+memory")):
        way(f"{root}/{name}", lambda: pathlib.Path(root, name).write_text(value))
for path in ("/sys/power/state", "/sys/kernel/uevent_helper", "/sys/kernel/mm/ksm/run", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/module/kernel/parameters/panic",
             "/sys/kernel/debug", "/sys/kernel/security/apparmor/.remove", "/sys/bus/pci/rescan", "/sys/class/net/lo/mtu", "/sys/firmware/efi/efivars"):
    way(f"writing {path}", write, path)
way("the log of the kernel's tracing", lambda: os.listdir("/sys/kernel/tracing"))
way("the security folder", lambda: os.listdir("/sys/kernel/security"))
end()
