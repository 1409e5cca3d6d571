# Leaves its root by chroot, pivot_root and a descriptor kept from before.
# forms: node local
# expect: Success/Completed
inner = os.path.join(os.environ["TMPDIR"], "inner")
os.mkdir(inner)
kept = os.open("/", os.O_RDONLY)
refused(("chroot", inner.encode()), ("pivot_root", inner.encode(), inner.encode()), ("pivot_root", b".", b"."))
way("fchdir out", lambda: os.fchdir(kept) or os.path.exists("../" + "agentrun-no-such-root"))
for pid in others():
    way(f"root of {pid}", lambda: os.listdir(f"/proc/{pid}/root/"))
    way(f"cwd of {pid}", lambda: os.listdir(f"/proc/{pid}/cwd/"))
end()
