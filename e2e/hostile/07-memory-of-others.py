# Reads and writes the memory of the executor, its supervisor and the neighbour.
# forms: node local
# expect: Success/Completed
buffer = ctypes.create_string_buffer(64)


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def piece(address):
    return ctypes.byref(Piece(address, 64))


for pid in others():
    for name in ("process_vm_readv", "process_vm_writev"):
        local, remote = Piece(ctypes.addressof(buffer), 64), Piece(0x400000, 64)
        refused((name, pid, (Piece * 1)(local), 1, (Piece * 1)(remote), 1, 0))
    refused(("kcmp", pid, os.getpid(), 0, 0, 0), ("process_madvise", pid, None, 0, 0, 0))
    for name in ("mem", "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "personality", "io",
                 "numa_maps", "map_files", "timers", "patch_state"):
        def look(path):
            return os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(16)
        way(f"/proc/{pid}/{name}", look, f"/proc/{pid}/{name}")
    for name in ("mem", "clear_refs", "oom_score_adj", "comm", "attr/current", "coredump_filter", "timerslack_ns"):
        way(f"writing /proc/{pid}/{name}", write, f"/proc/{pid}/{name}")
end()
