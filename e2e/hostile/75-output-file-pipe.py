# Makes its output file a pipe that nobody writes.
# forms: node local
# expect: Success/Completed
# require: a pipe
os.mkfifo(os.environ["AGENTRUN_OUTPUT"])
print("a pipe", flush=True)
