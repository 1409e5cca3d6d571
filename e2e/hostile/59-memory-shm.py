# Fills /dev/shm, which is memory.
# forms: node
# expect: Error/OOMKilled | Error/NoSpaceLeft
# timeout: 35s
number = 0
while True:
    with open(f"/dev/shm/fill{number}", "wb") as opened:
        for _ in range(64):
            opened.write(os.urandom(1 << 20))
    number += 1
