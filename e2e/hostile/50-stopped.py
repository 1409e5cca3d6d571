# Stops itself and all its children, so that no signal is acted on.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 2s
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        while True:
            os.kill(os.getpid(), signal.SIGSTOP)
while True:
    os.kill(os.getpid(), signal.SIGSTOP)
