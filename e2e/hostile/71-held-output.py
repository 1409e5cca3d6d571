# Ends while a grandchild holds its output open and goes on writing.
# forms: node local
# expect: Success/Completed
# require: first
# Where the flood does not push it out of what is kept.
print("first", file=sys.stderr, flush=True)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        os.write(1, b"more\n" * 1000)
        time.sleep(0.01)
os._exit(0)
