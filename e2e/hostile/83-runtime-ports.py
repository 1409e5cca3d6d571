# Looks for a port of the runtime in the network that both containers share.
# forms: node
# expect: Success/Completed
# egress: one
# timeout: 35s
open_ports = []
for name in ("tcp", "tcp6", "udp", "udp6"):
    for line in open(f"/proc/net/{name}").readlines()[1:]:
        fields = line.split()
        if (fields[3] == "0A" and name.startswith("tcp")) or name.startswith("udp"):
            open_ports.append((name, int(fields[1].rsplit(":", 1)[1], 16)))
way("somebody listens", lambda: open_ports)
for port in list(range(1, 12000)):
    def connect():
        with socket.socket() as tcp:
            tcp.settimeout(0.5)
            tcp.connect(("127.0.0.1", port))
            return tcp.getpeername() != tcp.getsockname()
    way(f"port {port}", connect)
end()
