# Calls itself what the executor is called and looks as if it had ended.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 2s
for name in (b"agentrun-sandbo", b"agentrun-runtim", b"sleep) Z 1 1 1 ", b"\n) S 1 (", b"kworker/0:1"):
    if os.fork() == 0:
        os.setsid()
        _libc.prctl(15, name, 0, 0, 0)
        time.sleep(1000)
_libc.prctl(15, b"x) Z 0 0 0 (", 0, 0, 0)
time.sleep(1000)
