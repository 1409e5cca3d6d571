# Mounts, remounts and unmounts, by the old and the new calls.
# forms: node local
# expect: Success/Completed
spot = os.path.join(os.environ["TMPDIR"], "spot").encode()
os.mkdir(spot)
MS_BIND, MS_REMOUNT, MS_PRIVATE = 4096, 32, 1 << 18
refused(
    ("mount", b"none", spot, b"tmpfs", 0, None),
    ("mount", b"none", spot, b"proc", 0, None),
    ("mount", b"/", spot, None, MS_BIND, None),
    ("mount", None, b"/", None, MS_REMOUNT | MS_BIND, None),
    ("mount", None, UPLOADS.encode(), None, MS_REMOUNT | MS_BIND, None),
    ("mount", None, b"/", None, MS_PRIVATE, None),
    ("umount2", b"/proc", 2),
    ("umount2", UPLOADS.encode(), 2),
    ("fsopen", b"tmpfs", 0),
    ("fsopen", b"overlay", 0),
    ("open_tree", -100, b"/", 1),
    ("open_tree_attr", -100, b"/", 1, None, 0),
    ("fspick", -100, b"/", 0),
    ("fsconfig", 0, 0, None, None, 0),
    ("fsmount", 0, 0, 0),
    ("move_mount", -100, b"/proc", -100, spot, 0),
    ("mount_setattr", -100, b"/", 0, ctypes.create_string_buffer(32), 32),
)
end()
