# A bomb of which each process has a session and a group of its own, and outlives its parent.
# forms: node local
# expect: Error/TooManyProcesses | Timeout/DeadlineExceeded
# timeout: 15s
# expect-local: Error/TooManyProcesses
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            if os.fork() != 0:
                os._exit(0)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        else:
            time.sleep(0.001)
    except OSError:
        time.sleep(0.001)
