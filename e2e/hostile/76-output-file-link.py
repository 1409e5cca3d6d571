# Makes its output file a link to what it may not read itself.
# forms: node local
# expect: Success/Completed
# require: a link
os.symlink("/var/run/secrets/agentrun/token", os.environ["AGENTRUN_OUTPUT"])
print("a link", flush=True)
