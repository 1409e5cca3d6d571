# Connects to everything near: cluster, node, neighbours, metadata, names, with egress to one neighbour open.
# forms: node
# expect: Success/Completed
# egress: one
# timeout: 35s
targets = json.loads(os.environ.get("HOSTILE_TARGETS", "[]"))
hosts = ["169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.2.1", "1.1.1.1", "8.8.8.8", "10.96.0.1", "10.96.0.10", os.environ.get("KUBERNETES_SERVICE_HOST", "10.0.0.1")]
pairs = {(host, port) for host in hosts for port in (53, 80, 443, 6443, 8080, 10250)} | {tuple(pair) for pair in targets}


def connect(host, port):
    way(f"TCP {host}:{port}", lambda: socket.create_connection((host, port), timeout=2))


def ask(host, port):
    def once():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(2)
            udp.sendto(b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x07example\x03com\x00\x00\x01\x00\x01", (host, port))
            return udp.recvfrom(512)
    way(f"UDP {host}:{port}", once)


threads = [threading.Thread(target=connect, args=pair) for pair in pairs]
threads += [threading.Thread(target=ask, args=(host, port)) for host, port in {(host, 53) for host in hosts} | {tuple(pair) for pair in targets}]
threads += [threading.Thread(target=way, args=(f"name {name}", socket.getaddrinfo, name, 443)) for name in ("kubernetes.default.svc", "kubernetes.default", "metadata.google.internal", "example.com")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
end()
