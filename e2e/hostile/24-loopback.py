# Talks to itself and to the runtime over loopback, by TCP, UDP and a listening port.
# forms: node local
# expect: Success/Completed
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    for port in (0, 80, 443, 2379, 6443, 8080, 8443, 9090, 10250):
        way(f"TCP {host} {port}", lambda: socket.create_connection((host, port), timeout=1))
    def listen():
        opened = socket.socket(family)
        opened.bind((host, 0))
        opened.listen()
        return True
    way(f"listening on {host}", listen)
    way(f"UDP to {host}", lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (host, 53)))
end()
