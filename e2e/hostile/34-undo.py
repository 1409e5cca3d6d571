# Takes its own confinement off: filters, rules, and by starting programs anew.
# forms: node local
# expect: Success/Completed
# A rule set of its own that allows everything: the kernel only ever adds.
attributes = ctypes.create_string_buffer(struct.pack("QQQ", (1 << 13) - 1, 0, 0))


def allow_all():
    rules = call("landlock_create_ruleset", attributes, 8, 0)[0]
    root = os.open("/", os.O_PATH)
    rule = ctypes.create_string_buffer(struct.pack("=Qi", (1 << 13) - 1, root))
    call("landlock_add_rule", rules, 1, rule, 0)
    call("landlock_restrict_self", rules, 0)


try:
    allow_all()
except OSError:
    pass
way("writing after a rule set that allows all", lambda: open("/etc/" + MARKER, "x"))
# A filter of its own that allows everything.
allow = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7fff0000))


class Filter(ctypes.Structure):
    _fields_ = [("size", ctypes.c_ushort), ("program", ctypes.c_void_p)]


filter = Filter(1, ctypes.addressof(allow))
try:
    call("seccomp", 1, 0, filter)
except (OSError, ctypes.ArgumentError):
    pass
refused(("unshare", 0x10000000), ("ptrace", 0, 0, 0, 0))
code = "import os, ctypes; libc = ctypes.CDLL(None); print(libc.unshare(0x10000000), libc.ptrace(0, 0, 0, 0), os.access('/etc', os.W_OK))"
shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={}).stdout.split()
way("a program anew", lambda: shown[:2] != ["-1", "-1"])
end()
