# Keeps memory in unnamed files that no folder shows.
# forms: node
# expect: Error/OOMKilled
# timeout: 35s
files = []
while True:
    files.append(call("memfd_create", b"fill", 0)[0])
    for _ in range(64):
        os.write(files[-1], os.urandom(1 << 20))
