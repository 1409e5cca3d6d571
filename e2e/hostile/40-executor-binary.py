# Replaces or reopens the program of the executor and starts another one.
# forms: node local
# expect: Success/Completed
binaries = ["/opt/agentrun/agentrun-sandbox", os.path.join(DATA, "..", "agentrun-sandbox"), "/proc/1/exe", f"/proc/{SUPERVISOR}/exe"]
for path in binaries:
    way(f"writing {path}", write, path)
    way(f"removing {path}", lambda: os.unlink(path) is None)
    way(f"renaming {path}", lambda: os.rename(path, path + ".old") is None)
for path in binaries[:2]:
    for arguments in (["supervise"], [], ["install", "/etc"], ["--socket", os.path.join(os.environ["TMPDIR"], "none.sock"), "--temp", "/", "--user-data", "/"]):
        way(f"{path} {arguments}", lambda: subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=1).returncode == 0)
end()
