# Makes device files and opens the machine's disks through them.
# forms: node local
# expect: Success/Completed
for folder in (WORKSPACE, OUTPUTS, os.environ["TMPDIR"], "/dev/shm"):
    for name, kind, major, minor in (("disk", stat.S_IFBLK, 254, 0), ("disk2", stat.S_IFBLK, 8, 0), ("mem", stat.S_IFCHR, 1, 1), ("kmsg", stat.S_IFCHR, 1, 11), ("kvm", stat.S_IFCHR, 10, 232),
                                     ("white-out", stat.S_IFCHR, 0, 0)):
        path = os.path.join(folder, "hostile-" + name)
        def make():
            try:
                os.mknod(path, kind | 0o666, os.makedev(major, minor))
                return bool(major) and open(path, "rb", buffering=0).read(1)
            finally:
                if os.path.lexists(path):
                    os.unlink(path)
        way(f"{path}", make)
end()
