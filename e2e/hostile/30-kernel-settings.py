# Writes settings of the kernel and reads its memory and its messages.
# forms: node local
# expect: Success/Completed
for path, value in (("kernel/core_pattern", "|/bin/sh"), ("kernel/modprobe", "/tmp/x"), ("kernel/hostname", "hostile"), ("kernel/randomize_va_space", "0"),
                    ("kernel/sysrq", "1"), ("vm/overcommit_memory", "1"), ("vm/drop_caches", "3"), ("vm/panic_on_oom", "1"), ("net/ipv4/ip_forward", "1"),
                    ("fs/suid_dumpable", "2"), ("kernel/yama/ptrace_scope", "0"), ("kernel/ns_last_pid", "300"), ("kernel/shmmax", "1"), ("user/max_user_namespaces", "1000"),
                    ("net/ipv4/ping_group_range", "0 2147483647"), ("kernel/unprivileged_bpf_disabled", "0"), ("fs/binfmt_misc/register", ":x:M::x::/bin/sh:")):
    way(path, lambda: pathlib.Path("/proc/sys", path).write_text(value))
for path in ("/proc/sysrq-trigger", "/proc/irq/0/smp_affinity", "/proc/acpi/wakeup", "/proc/mtrr", "/proc/scsi/scsi", "/proc/timer_list", "/proc/latency_stats"):
    # What the container's runtime hides is /dev/null there.
    way(f"writing {path}", lambda: not stat.S_ISCHR(os.stat(path).st_mode) and write(path))
for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop0",
             "/dev/vhost-net", "/dev/vsock", "/proc/vmcore", "/dev/cpu/0/msr", "/dev/snapshot"):
    hidden = os.path.exists(path) and os.stat(path).st_rdev == os.makedev(1, 3)
    way(path, lambda: open(path, "rb", buffering=0).read(1))
    way(f"writing {path}", lambda: not hidden and write(path))
way("addresses of the kernel", lambda: [line for line in open("/proc/kallsyms") if not line.startswith("0000000000000000")][:1])
end()
