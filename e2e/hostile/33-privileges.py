# Becomes root or gains capabilities, by calls, set-user-ID files and file capabilities.
# forms: node local
# expect: Success/Completed
PR_SET_NO_NEW_PRIVS, PR_SET_SECUREBITS, PR_CAP_AMBIENT, PR_SET_SECCOMP, PR_SET_KEEPCAPS, PR_SET_MM, PR_SET_PTRACER = 38, 28, 47, 22, 8, 35, 0x59616d61
for name, attempt in (("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)), ("setreuid", lambda: os.setreuid(0, 0)), ("setresuid", lambda: os.setresuid(0, 0, 0)),
                      ("setgroups", lambda: os.setgroups([0])), ("initgroups", lambda: os.initgroups("root", 0))):
    way(name, lambda: attempt() is None)
header = ctypes.create_string_buffer(struct.pack("Ii", 0x20080522, 0))
calls(("capset", header, ctypes.create_string_buffer(struct.pack("6I", *[0xffffffff] * 6))),
      ("prctl", PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), ("prctl", PR_SET_SECUREBITS, 0x2f, 0, 0, 0), ("prctl", PR_CAP_AMBIENT, 2, 21, 0, 0),
      ("prctl", PR_SET_SECCOMP, 0, 0, 0, 0), ("prctl", PR_SET_MM, 8, 0x1000, 0, 0))
tool = os.path.join(os.environ["TMPDIR"], "tool")
pathlib.Path(tool).write_bytes(pathlib.Path("/bin/sh").read_bytes())
way("owner root", lambda: os.chown(tool, 0, 0) is None)
way("file capability", lambda: os.setxattr(tool, "security.capability", struct.pack("<5I", 0x02000001, 0xffffffff, 0, 0xffffffff, 0)) is None)
os.chmod(tool, 0o6755)
for program in (tool, "/bin/su", "/usr/bin/sudo", "/bin/mount", "/usr/bin/passwd", "/usr/bin/newuidmap"):
    way(program, lambda: subprocess.run([program, "-c", "test $(id -u) = 0"], capture_output=True, stdin=subprocess.DEVNULL, timeout=5).returncode == 0)
for number in range(41):
    way(f"capability {number} in the bounding set", lambda: _libc.prctl(23, number) == 1 and os.getuid() == 0)
status = pathlib.Path("/proc/self/status").read_text()
for name, right in (("NoNewPrivs", "1"), ("Seccomp", "2"), ("CapEff", "0" * 16), ("CapPrm", "0" * 16), ("CapInh", "0" * 16), ("CapAmb", "0" * 16)):
    way(f"{name} is not {right}", lambda: re.search(rf"^{name}:\s*(\S+)", status, re.M).group(1) != right)
end()
