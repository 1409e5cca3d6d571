# Reads and fills the kernel's keyrings, which are of the user and not of the sandbox.
# forms: node local
# expect: Success/Completed
refused(
    ("add_key", b"user", b"hostile", b"secret", 6, -3),
    ("add_key", b"user", b"hostile", b"secret", 6, -4),
    ("request_key", b"user", b"hostile", None, -3),
    ("keyctl", 0, -3, 1),
    ("keyctl", 1, b"hostile"),
    ("keyctl", 11, -4, None, 0),
)
way("/proc/keys", lambda: [line for line in open("/proc/keys") if MARKER in line])
end()
