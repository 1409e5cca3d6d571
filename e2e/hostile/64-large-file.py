# Writes one file without an end into the workspace.
# forms: node
# expect: Error/FileTooLarge | Error/NoSpaceLeft | Error/Evicted
# timeout: 35s
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open(os.path.join(WORKSPACE, "large"), "wb") as opened:
    os.truncate(opened.fileno(), (1 << 30) - (1 << 20))
    opened.seek(0, 2)
    while True:
        opened.write(bytes(1 << 20))
