# Keeps memory in the buffers of pipes and sockets until it has no more descriptors.
# forms: node local
# expect: Success/Completed | Error/OOMKilled
# require: full
try:
    while True:
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            fcntl.fcntl(writer, 1031, 1 << 20)  # F_SETPIPE_SZ
        except OSError:
            pass
        try:
            os.write(writer, bytes(64 << 10))
        except BlockingIOError:
            pass
except OSError as error:
    print(f"full: {error}", flush=True)
os._exit(0)
