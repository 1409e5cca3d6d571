# Enters the namespaces of others through /proc and through pidfds.
# forms: node local
# expect: Success/Completed
def enter(path):
    opened = os.open(path, os.O_RDONLY)
    return call("setns", opened, 0)


def enter_by_pidfd(process):
    opened = call("pidfd_open", process, 0)[0]
    return call("setns", opened, 0x10000000)


for process in ("self", *others()):
    for kind in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup", "time"):
        way(f"setns {process} {kind}", enter, f"/proc/{process}/ns/{kind}")
for process in others():
    way(f"setns by pidfd {process}", enter_by_pidfd, process)
end()
