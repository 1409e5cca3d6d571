# Sets thousands of timers and storms itself with signals.
# forms: node local
# expect: Success/Completed
# require: stormed
signal.signal(signal.SIGALRM, lambda *_: None)
for kind in (signal.ITIMER_REAL, ):
    signal.setitimer(kind, 0.00005, 0.00005)
made = 0
timer = ctypes.c_int()
try:
    # timer_create(CLOCK_MONOTONIC): each keeps a queued signal of the user's
    while made < 3000:
        raw(222 if X86 else 107, 1, None, ctypes.create_string_buffer(8))
        made += 1
except OSError:
    pass
stop = time.monotonic() + 1
while time.monotonic() < stop:
    os.kill(os.getpid(), signal.SIGALRM)
    os.kill(os.getpid(), signal.SIGCHLD)
print("stormed", made, flush=True)
os._exit(0)
