# Keeps shared memory, semaphores and queues that outlive it and belong to nobody.
# forms: node local
# expect: Success/Completed
IPC = {"shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186)}
for name, numbers in IPC.items():
    way(name, raw, numbers[0 if X86 else 1], 0, 1 << 20 if name == "shmget" else 1 if name == "semget" else 0o1600, 0o1600)
calls(("mq_open", b"hostile", 0o102, 0o600, None), ("mq_unlink", b"hostile"))
way("a file in /dev/mqueue", lambda: open("/dev/mqueue/" + MARKER, "x"))
end()
