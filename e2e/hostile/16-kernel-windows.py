# Opens windows into the kernel: userfaultfd, perf events, handles, fanotify, its log.
# forms: node local
# expect: Success/Completed
event = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(96))
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
identity = ctypes.create_string_buffer(8)
refused(
    ("userfaultfd", 0), ("userfaultfd", 1),
    ("perf_event_open", event, 0, -1, -1, 0), ("perf_event_open", event, -1, 0, -1, 0),
    ("open_by_handle_at", -100, handle, 0), ("name_to_handle_at", -100, b"/", handle, identity, 0),
    ("fanotify_init", 0, 0), ("lookup_dcookie", 0, None, 0),
    ("syslog", 3, ctypes.create_string_buffer(64), 64), ("syslog", 10, None, 0),
    ("memfd_secret", 0),
)
way("/dev/userfaultfd", lambda: [os.open("/dev/userfaultfd", os.O_RDWR)])
end()
