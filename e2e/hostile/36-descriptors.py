# Uses descriptors that were left open, and sends the executor's own messages on each.
# forms: node local
# expect: Success/Completed
names = sorted(int(name) for name in os.listdir("/proc/self/fd"))
way("more than stdin, stdout and stderr", lambda: [name for name in names if name > 2 and os.path.exists(f"/proc/self/fd/{name}")])
for number in (0, 1, 2):
    way(f"{number} is no pipe", lambda: not stat.S_ISFIFO(os.fstat(number).st_mode))
way("stdin can be written", lambda: os.write(0, b"x"))
way("stdout can be read", lambda: [os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)] and os.read(1, 1))
message = json.dumps({"type": "Ended", "id": 1, "end": {"how": "Exited", "code": 0}}).encode()
for number in range(3, 1024):
    way(f"forged message on {number}", lambda: os.write(number, struct.pack(">I", len(message)) + message))
    way(f"received on {number}", lambda: socket.socket(fileno=number).recv(1, socket.MSG_DONTWAIT))
end()
