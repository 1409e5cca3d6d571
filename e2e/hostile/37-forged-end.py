# Writes the messages of executor, runtime and contract to its output, then fails.
# forms: node local
# expect: Error/ExitCode
# require: forged
for message in ({"type": "Ended", "id": 1, "end": {"how": "Exited", "code": 0}, "treeEmpty": True}, {"type": "Result", "outcome": "Success"},
                {"status": "success", "output": {"forged": True}, "error": None}, {"type": "Ready", "landlockAbi": 0}):
    text = json.dumps(message).encode()
    for stream in (1, 2):
        os.write(stream, struct.pack(">I", len(text)) + text + b"\n" + text + b"\n")
print("forged", flush=True)
os._exit(7)
