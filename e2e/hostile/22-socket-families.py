# Opens sockets of every family and type but local ones.
# forms: node local
# expect: Success/Completed
for family in range(48):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET, 10):
        if family not in (socket.AF_UNIX, socket.AF_NETLINK):
            way(f"family {family} type {kind}", lambda: [socket.socket(family, kind, 0).fileno()])
for protocol in range(1, 24):
    way(f"netlink protocol {protocol}", lambda: [socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).fileno()])
way("packets", lambda: [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).fileno()])
way("pairs of the internet", lambda: socket.socketpair(socket.AF_INET))
way("tun", lambda: [os.open("/dev/net/tun", os.O_RDWR)])
end()
