# Sends raw, ICMP, multicast, broadcast and link-local packets, with egress to one neighbour open.
# forms: node
# expect: Success/Completed
# egress: one
for protocol in (1, 2, 17, 58, 132, 136, 255, 262):
    for family in (socket.AF_INET, socket.AF_INET6):
        for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
            if (protocol, kind) != (17, socket.SOCK_DGRAM):
                way(f"family {family} type {kind} protocol {protocol}", lambda: [socket.socket(family, kind, protocol).fileno()])


def answered(address, option=None):
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(1)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        udp.sendto(b"hostile", address)
        return udp.recvfrom(64)


for address in (("224.0.0.1", 5353), ("224.0.0.251", 5353), ("255.255.255.255", 8080), ("239.255.255.250", 1900)):
    way(f"datagram to {address}", answered, address)
for number, name in socket.if_nameindex():
    for host in ("ff02::1", "ff02::2", "fe80::1"):
        way(f"datagram to {host}%{name}", answered, (host, 5353, 0, number))
        way(f"TCP to {host}%{name}", lambda: host.startswith("fe80") and socket.create_connection((f"{host}%{name}", 10250), timeout=1))
way("a device bound", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(socket.SOL_SOCKET, 25, b"lo\0") and False)
way("a packet filter", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).getsockopt(0, 64))
end()
