# Pairs that watch each other and start anew whoever is killed, while they are being killed.
# forms: node local
# expect: Timeout/DeadlineExceeded | Error/TooManyProcesses
# timeout: 4s
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)


def live(depth):
    while True:
        try:
            child = os.fork()
        except OSError:
            time.sleep(0.001)
            continue
        if child == 0:
            os.setsid()
            live(depth + 1) if depth < 20 else time.sleep(1000)
        os.waitpid(child, 0)


for _ in range(4):
    if os.fork() == 0:
        live(0)
time.sleep(1000)
