# Replaces itself by a new process all the time, so that no list of processes ever holds it.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 3s
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork() != 0:
            os._exit(0)
time.sleep(1000)
