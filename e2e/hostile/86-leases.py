# Takes leases on its files: whoever opens them, also the runtime that looks at what was made, waits or is turned away.
# forms: node local
# expect: Success/Completed
F_SETLEASE, F_SETDELEG = 1024, 1040
for folder in (WORKSPACE, OUTPUTS, TEMP):
    path = os.path.join(folder, "leased")
    pathlib.Path(path).write_text("x")
    for kind, flags in ((fcntl.F_WRLCK, os.O_RDWR), (fcntl.F_RDLCK, os.O_RDONLY)):
        opened = os.open(path, flags)
        way(f"lease {kind} in {folder}", lambda: fcntl.fcntl(opened, F_SETLEASE, kind) == 0)
        way(f"delegation {kind} in {folder}", lambda: fcntl.fcntl(opened, F_SETDELEG, struct.pack("IHH", 0, kind, 0)) is not None)
end()
