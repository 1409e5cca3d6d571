# Plants pipes, sockets, links and device-like things where its results are read.
# forms: node local
# expect: Success/Completed
# require: planted
for folder in (OUTPUTS, WORKSPACE):
    os.chdir(folder)
    os.mkfifo("pipe.json")
    socket.socket(socket.AF_UNIX).bind("socket.json")
    os.symlink("/etc/passwd", "passwd.txt")
    os.symlink("/proc/self/environ", "environ.txt")
    os.symlink("/var/run/secrets/agentrun/token", "token.txt")
    os.symlink("/mnt/state", "state")
    os.symlink("/", "root")
    os.symlink("../../..", "up")
    os.symlink("self", "self")
    os.makedirs("a/b", exist_ok=True)
    os.symlink("../../..", "a/b/up")
    pathlib.Path("kept.txt").write_text("kept")
    os.chmod("kept.txt", 0o644)
    pathlib.Path("locked.txt").write_text("locked")
    os.chmod("locked.txt", 0)
    for name in (b"..hidden", b"\xffname", b"new\nline", b"'; rm -rf ~; '", b"%2e%2e%2fx", b"CON", b"<script>"):
        pathlib.Path(os.fsdecode(name)).write_text("odd")
print("planted", flush=True)
