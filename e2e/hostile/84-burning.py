# Burns every processor with as many processes as it may have.
# forms: node local
# expect: Timeout/DeadlineExceeded
# timeout: 3s
for _ in range(40):
    if os.fork() == 0:
        while True:
            pass
while True:
    pass
