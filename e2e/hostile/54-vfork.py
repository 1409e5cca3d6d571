# Blocks in vfork, where a process cannot be told anything.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 2s
# vfork is clone with CLONE_VM and CLONE_VFORK: the parent waits in the kernel until the child is gone or starts a program.
if os.fork() == 0:
    os.setsid()
    if X86:
        _libc.vfork.restype = ctypes.c_int
    os.execvp("sh", ["sh", "-c", "exec 0</dev/null; while :; do sleep 1000; done"])
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
while True:
    subprocess.Popen(["sleep", "1000"], start_new_session=True, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))).wait()
