# Raises its own limits and priority.
# forms: node local
# expect: Success/Completed
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
    hard = resource.getrlimit(kind)[1]
    way(f"limit {kind}", lambda: resource.setrlimit(kind, (hard + 1, hard + 1)) is None)
    way(f"no limit {kind}", lambda: resource.setrlimit(kind, (-1, -1)) is None)
way("nice", lambda: os.nice(-5) < 0)
way("real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)) is None)
way("round robin", lambda: os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10)) is None)
calls(("sched_setattr", 0, ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 6, 0, 0, 0, 10**7, 10**8, 10**8)), 0),
      ("ioprio_set", 1, 0, 1 << 13))
way("out of memory score", lambda: pathlib.Path("/proc/self/oom_score_adj").write_text("-1000"))
way("and a little lower", lambda: pathlib.Path("/proc/self/oom_score_adj").write_text("0"))
way("the first to be killed", lambda: pathlib.Path("/proc/self/oom_score_adj").read_text().strip() != "1000")
end()
