# Signals the executor, its supervisor and the neighbour by every call that can.
# forms: node local
# expect: Success/Completed
def by_pidfd(pid, number):
    return call("pidfd_send_signal", call("pidfd_open", pid, 0)[0], number, None, 0)


def by_owner(pid):
    """The kernel sends SIGKILL for us when a pipe becomes readable."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, pid)
    fcntl.fcntl(reader, 10, signal.SIGKILL)  # F_SETSIG
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b"x")
    time.sleep(0.05)


info = ctypes.create_string_buffer(struct.pack("iii", signal.SIGKILL, 0, -1) + bytes(116))
for pid in others():
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1, 0):
        way(f"kill {pid} {number}", lambda: os.kill(pid, number) is None)
    way(f"pidfd {pid}", by_pidfd, pid, signal.SIGKILL)
    way(f"tgkill {pid}", call, "tgkill", pid, pid, signal.SIGKILL)
    way(f"tkill {pid}", call, "tkill", pid, signal.SIGKILL)
    way(f"sigqueue {pid}", call, "rt_sigqueueinfo", pid, signal.SIGKILL, info)
    way(f"tgsigqueue {pid}", call, "rt_tgsigqueueinfo", pid, pid, signal.SIGKILL, info)
    if pid != 1:  # that would be kill(-1), which says that all went well whatever it did
        way(f"group {pid}", lambda: os.killpg(pid, signal.SIGKILL) is None)
    way(f"owner of a pipe {pid}", by_owner, pid)
way("the supervisor is gone", lambda: os.getppid() != SUPERVISOR)
end()
