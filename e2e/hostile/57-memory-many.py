# Takes memory with many small processes, each below every limit of one.
# forms: node
# expect: Error/OOMKilled | Error/ExitCode | Success/Completed
# timeout: 35s
for _ in range(100):
    if os.fork() == 0:
        held = os.urandom(8 << 20)
        time.sleep(1000)
time.sleep(5)
print("memory was enough")
