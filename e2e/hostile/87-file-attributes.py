# Takes its files out of their quota, or makes them such that nobody else can read or change them.
# forms: node local
# expect: Success/Completed
REQUESTS = {"flags": 0x40086602, "flags of 32 bits": 0x40046602, "project": 0x401C5820, "verity": 0x40806685,
            "encryption": 0x800C6613}
flags = struct.pack("Q", 0x40)  # no dump
attributes = struct.pack("IIIII8x", 0, 0, 0, 7, 0)
for folder in (WORKSPACE, OUTPUTS, TEMP):
    path = os.path.join(folder, "kept")
    pathlib.Path(path).write_text("x")
    for place in (path, folder):
        opened = os.open(place, os.O_RDONLY)
        for what, request in REQUESTS.items():
            given = attributes if what == "project" else flags + bytes(120)
            error = way(f"{what} of {place}", lambda: fcntl.ioctl(opened, request, given) is not None)
            if isinstance(error, OSError) and error.errno != errno.EPERM:
                escaped(f"{what} was not refused but answered {error}")
end()
