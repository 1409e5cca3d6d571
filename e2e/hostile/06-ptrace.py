# Traces everybody, itself, and asks to be traced.
# forms: node local
# expect: Success/Completed
TRACEME, PEEKDATA, ATTACH, SEIZE = 0, 2, 16, 0x4206
refused(("ptrace", TRACEME, 0, 0, 0))
for pid in others():
    refused(("ptrace", ATTACH, pid, 0, 0), ("ptrace", SEIZE, pid, 0, 0), ("ptrace", PEEKDATA, pid, 0, 0))
child = subprocess.Popen(["sleep", "60"])
refused(("ptrace", ATTACH, child.pid, 0, 0))
child.kill()
# Lets another one trace us: no use without ptrace, but nobody needs it.
way("strace", lambda: subprocess.run(["strace", "-p", "1", "-o", "/dev/null"], capture_output=True, timeout=3).returncode == 0)
end()
