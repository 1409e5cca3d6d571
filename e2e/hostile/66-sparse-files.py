# Makes files that claim to be larger than any disk.
# forms: node local
# expect: Success/Completed
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
for folder in (os.environ["TMPDIR"], WORKSPACE, OUTPUTS, "/dev/shm"):
    opened = os.open(os.path.join(folder, "sparse"), os.O_CREAT | os.O_RDWR)
    for size in (1 << 31, 1 << 40, 1 << 60):
        way(f"{folder} {size}", lambda: os.ftruncate(opened, size) is None)
        way(f"{folder} write at {size}", lambda: os.pwrite(opened, b"x", size))
        way(f"{folder} reserve {size}", lambda: os.posix_fallocate(opened, 0, size) is None)
    os.unlink(os.path.join(folder, "sparse"))
end()
