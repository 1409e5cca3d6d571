# Connects to every abstract socket of the machine.
# forms: node local
# expect: Success/Completed
names = {line.split()[-1] for line in open("/proc/net/unix") if line.rstrip().split()[-1].startswith("@")}
for name in names | {"@/tmp/.X11-unix/X0", "@agentrun", "@/containerd-shim/hostile.sock"}:
    def connect():
        with socket.socket(socket.AF_UNIX) as opened:
            opened.settimeout(1)
            opened.connect("\0" + name[1:])
            return name
    way(f"abstract socket {name}", connect)
end()
