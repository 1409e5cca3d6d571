# Starts threads without an end.
# forms: node local
# expect: Success/Completed | Error/ExitCode | Error/TooManyProcesses | Timeout/DeadlineExceeded
# timeout: 15s
# require: threads
threading.stack_size(64 << 10)
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        count += 1
        if count % 50 == 0:
            print(f"{count} threads", flush=True)
except (RuntimeError, MemoryError) as error:
    print(f"{count} threads, then {error}", flush=True)
os._exit(0)
