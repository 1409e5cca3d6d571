# Loads BPF programs and maps, and attaches a socket filter to what it has.
# forms: node local
# expect: Success/Completed
attributes = ctypes.create_string_buffer(struct.pack("IIII", 1, 4, 4, 16) + bytes(112))
refused(*[("bpf", command, attributes, 128) for command in (0, 5, 8, 18, 28, 36)])
program = struct.pack("QQ", 0xb7, 0x95)
insns = ctypes.create_string_buffer(program)
load = ctypes.create_string_buffer(struct.pack("IIQQ", 1, 2, ctypes.addressof(insns), 0) + bytes(104))
refused(("bpf", 5, load, 128))
end()
