# Takes off what protects its own memory layout, and old processor modes.
# forms: node local
# expect: Success/Completed
refused(*[("personality", flag) for flag in (0x0040000, 0x0400000, 0x0100000, 0x0000008, 0x0200000, 6)])
refused(("modify_ldt", 1, ctypes.create_string_buffer(16), 16), ("modify_ldt", 17, ctypes.create_string_buffer(16), 16))
end()
