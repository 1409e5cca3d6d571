# Kills every process that it may.
# forms: node local
# expect: Success/Completed
child = subprocess.Popen(["sleep", "600"])
for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if number != signal.SIGSTOP:
        try:
            os.kill(-1, number)
        except OSError:
            pass
child.wait()
way("the supervisor is gone", lambda: os.getppid() != SUPERVISOR)
end()
