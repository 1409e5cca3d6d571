# Changes addresses, links and routes by netlink.
# forms: node local
# expect: Success/Completed
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH = 16, 20, 24, 28


def ask(kind, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as netlink:
        netlink.settimeout(2)
        netlink.send(struct.pack("IHHII", 16 + len(body), kind, 0x405, 1, 0) + body)
        answer = netlink.recv(4096)
        return struct.unpack_from("i", answer, 16)[0] == 0


way("a new link", ask, RTM_NEWLINK, struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("HH8s", 12, 3, b"hostile"))
way("lo down", ask, RTM_NEWLINK, struct.pack("BBHiII", 0, 0, 0, 1, 0, 1))
way("an address", ask, RTM_NEWADDR, struct.pack("BBBBi", 2, 24, 0, 0, 1) + struct.pack("HH4s", 8, 2, bytes([10, 9, 9, 9])))
way("a route", ask, RTM_NEWROUTE, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 253, 1, 0) + struct.pack("HHI", 8, 4, 1))
end()
