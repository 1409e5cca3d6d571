# Starves the executor: its limits, priority, processors, scheduling and input.
# forms: node local
# expect: Success/Completed
one = ctypes.create_string_buffer(struct.pack("Q", 1))
parameter = ctypes.create_string_buffer(struct.pack("i", 0))
attributes = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 5, 0, 0, 0, 0, 0, 0))
none = ctypes.create_string_buffer(struct.pack("QQ", 0, 0))
for pid in [pid for pid in others() if pid != 1 or not IN_CLUSTER] + [1]:
    calls(
        ("prlimit64", pid, 7, none, None),
        ("prlimit64", pid, 7, None, none),
        ("setpriority", 0, pid, 19),
        ("sched_setaffinity", pid, 8, one),
        ("sched_setscheduler", pid, 5, parameter),
        ("sched_setparam", pid, parameter),
        ("sched_setattr", pid, attributes, 0),
        ("ioprio_set", 1, pid, 3 << 13),
        ("migrate_pages", pid, 64, one, one),
        ("move_pages", pid, 0, None, None, None, 0),
    )
# Everything of our user is the executor, too.
calls(("setpriority", 2, 0, 19), ("setpriority", 2, os.getuid(), 19), ("ioprio_set", 3, os.getuid(), 3 << 13),
      ("setpriority", 1, os.getpgid(SUPERVISOR) or 1, 19), ("ioprio_set", 2, os.getpgid(SUPERVISOR) or 1, 3 << 13))
end()
