# Sets the clocks of the machine.
# forms: node local
# expect: Success/Completed
now = ctypes.create_string_buffer(struct.pack("qq", int(time.time()), 0))
change = ctypes.create_string_buffer(struct.pack("Iq", 0x8001, 0) + bytes(200))
refused(("settimeofday", now, None), ("clock_settime", 0, now), ("adjtimex", change), ("clock_adjtime", 0, change))
way("time.clock_settime", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()) is None)
way("/dev/rtc", lambda: [os.open("/dev/rtc0", os.O_RDWR)])
end()
