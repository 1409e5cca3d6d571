# Kills itself without a word, which is no lack of memory.
# forms: node local
# expect: Error/Signal9
# require: before
print("before", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
