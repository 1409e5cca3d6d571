# Fills /tmp, which is memory.
# forms: node
# expect: Error/NoSpaceLeft | Error/OOMKilled
# timeout: 35s
with open(os.path.join(TEMP, "fill"), "wb") as opened:
    while True:
        opened.write(os.urandom(1 << 20))
