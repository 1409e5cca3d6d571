# Forks as fast as it can, in every process.
# forms: node local
# expect: Error/TooManyProcesses | Timeout/DeadlineExceeded
# timeout: 15s
# expect-local: Error/TooManyProcesses
while True:
    try:
        os.fork()
    except OSError:
        pass
