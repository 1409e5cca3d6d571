# Never waits for its children: processes that ended fill the table.
# forms: node local
# expect: Success/Completed
# require: done
for _ in range(2000):
    try:
        if os.fork() == 0:
            os._exit(0)
    except OSError:
        break
print("done", flush=True)
os._exit(0)
