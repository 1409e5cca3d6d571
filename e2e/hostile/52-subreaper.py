# Makes itself the reaper of orphans, and hides processes behind others that end.
# forms: node local
# expect: Success/Completed
# require: hidden
PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, PR_SET_NAME = 36, 1, 15
if os.fork() == 0:
    os.setsid()
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _libc.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
    _libc.prctl(PR_SET_NAME, b"agentrun-sandbo", 0, 0, 0)
    for _ in range(3):
        if os.fork() == 0:
            if os.fork() == 0:
                _libc.prctl(PR_SET_NAME, b") Z 1 1 1 (", 0, 0, 0)
                time.sleep(1000)
            os._exit(0)
    time.sleep(1000)
time.sleep(0.3)
print("hidden", flush=True)
os._exit(0)
