# Uses io_uring, which goes around filters of system calls.
# forms: node local
# expect: Success/Completed
parameters = ctypes.create_string_buffer(248)
refused(("io_uring_setup", 8, parameters), ("io_uring_enter", 0, 1, 1, 0, None, 0), ("io_uring_register", -1, 8, None, 0))
end()
