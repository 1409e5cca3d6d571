# Writes, makes, links, renames and removes outside of the places that are its own.
# forms: node local
# expect: Success/Completed
FOLDERS = ["/", "/etc", "/usr", "/usr/local/bin", "/opt", "/opt/agentrun", "/run", "/run/agentrun", "/var", "/var/tmp", "/var/run",
           "/home", "/root", "/mnt", "/mnt/state", "/mnt/skills", "/mnt/user-data", DATA, UPLOADS, "/dev", "/dev/mqueue", "/dev/pts", "/proc", "/sys",
           "/sys/fs/cgroup", "/run/secrets", "/lib", "/boot"]
mine = os.path.join(os.environ["TMPDIR"], "mine")
open(mine, "w").close()
for folder in FOLDERS:
    spot = os.path.join(folder, MARKER)
    way(f"a file in {folder}", lambda: open(spot, "x"))
    way(f"a folder in {folder}", lambda: os.mkdir(spot) is None)
    way(f"a link in {folder}", lambda: os.symlink("/etc/passwd", spot) is None)
    way(f"a pipe in {folder}", lambda: os.mkfifo(spot) is None)
    way(f"a socket in {folder}", lambda: socket.socket(socket.AF_UNIX).bind(spot) is None)
    way(f"a hard link in {folder}", lambda: os.link(mine, spot) is None)
    way(f"a file moved to {folder}", lambda: os.rename(mine, spot) is None)
    way(f"an unnamed file in {folder}", lambda: [os.open(folder, os.O_TMPFILE | os.O_RDWR)])
    if not IN_CLUSTER:
        way(f"{folder} moved away", lambda: folder != "/" and os.rename(folder, os.path.join(os.environ["TMPDIR"], "away")) is None)
FILES = ["/etc/passwd", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/etc/ld.so.preload", "/etc/ld.so.cache", "/dev/termination-log",
         "/opt/agentrun/agentrun-sandbox", os.path.join(UPLOADS, "canary"), os.path.join(DATA, "..", "canary"), sys.executable]
for file in FILES:
    way(f"writing {file}", write, file)
    way(f"appending to {file}", write, file, os.O_WRONLY | os.O_APPEND)
    way(f"opening {file} for both", lambda: [os.open(file, os.O_RDWR)])
    way(f"cutting {file}", lambda: os.truncate(file, 0) is None)
    way(f"cutting {file} while opening it for reading", lambda: [os.open(file, os.O_RDONLY | os.O_TRUNC)] if os.path.getsize(file) else None)
    way(f"removing {file}", lambda: os.unlink(file) is None)
    if not file.endswith("canary"):
        way(f"rights of {file}", lambda: os.chmod(file, 0o777) is None)
        way(f"owner of {file}", lambda: os.chown(file, os.getuid(), -1) is None)
        way(f"time of {file}", lambda: os.utime(file, (0, 0)) is None)
    way(f"attribute of {file}", lambda: os.setxattr(file, "user.hostile", b"x") is None)
end()
