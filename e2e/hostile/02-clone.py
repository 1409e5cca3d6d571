# Makes namespaces with clone and clone3, whose flags a filter cannot see.
# forms: node local
# expect: Success/Completed
def clone(flags):
    result = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
    if result == [0]:
        os._exit(0)
    return result


def clone3(flags):
    arguments = struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
    result = call("clone3", ctypes.create_string_buffer(arguments), len(arguments))
    if result == [0]:
        os._exit(0)
    return result


for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    way(f"clone {flag:#x}", clone, flag)
    way(f"clone {flag:#x} with a user namespace", clone, 0x10000000 | flag)
for flag in (0x10000000, 0x20000080, 0x10020000, 0x200000000):
    way(f"clone3 {flag:#x}", clone3, flag)
end()
