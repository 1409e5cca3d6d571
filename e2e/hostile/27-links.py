# Reaches uploads and the machine through links, hard links, descriptors and /proc.
# forms: node local
# expect: Success/Completed
os.chdir(WORKSPACE)
canary = os.path.join(UPLOADS, "canary")
os.symlink(UPLOADS, "to-uploads")
os.symlink("/", "to-root")
os.symlink("/proc/self/root", "to-proc")
os.symlink("../uploads/canary", "to-canary")
os.symlink("loop-b", "loop-a")
os.symlink("loop-a", "loop-b")
for path in ("to-uploads/canary", "to-canary", "to-root/etc/passwd", f"to-proc{canary}", f"/proc/self/root{canary}",
             f"/proc/self/cwd/../uploads/canary", f"/proc/self/task/{os.getpid()}/root{canary}", "loop-a", f"//proc//self//root//{canary}"):
    way(f"writing {path}", write, path)
    way(f"both {path}", lambda: [os.open(path, os.O_RDWR)])
for path in ("to-uploads", "to-root/etc", "to-root/tmp/..", f"/proc/self/root{UPLOADS}"):
    way(f"making in {path}", lambda: open(os.path.join(path, MARKER), "x"))
way("a hard link to an upload", lambda: os.link(canary, "hard") is None and write("hard"))
way("a hard link to a password file", lambda: os.link("/etc/passwd", "hard2") is None)
way("an upload moved here", lambda: os.rename(canary, "moved") is None)
way("exchange", lambda: raw(316 if X86 else 276, -100, canary.encode(), -100, b"to-canary", 2))
opened = os.open(UPLOADS, os.O_RDONLY)
way("by descriptor of a folder", lambda: [os.open("canary", os.O_RDWR, dir_fd=opened)])
way("made by descriptor of a folder", lambda: [os.open(MARKER, os.O_RDWR | os.O_CREAT, dir_fd=opened)])
path_only = os.open(canary, os.O_PATH) if os.path.exists(canary) else None
if path_only is not None:
    way("reopened", lambda: [os.open(f"/proc/self/fd/{path_only}", os.O_RDWR)])
    read_only = os.open(canary, os.O_RDONLY)
    way("reopened from reading", lambda: [os.open(f"/proc/self/fd/{read_only}", os.O_RDWR)])
    way("cut by a descriptor for reading", lambda: os.ftruncate(read_only, 0) is None)
    way("mapped for writing", lambda: mmap.mmap(read_only, 1, prot=mmap.PROT_WRITE))
    way("linked by its descriptor", lambda: os.link(f"/proc/self/fd/{path_only}", "linked", follow_symlinks=True) is None)
end()
