# Floods stdout and stderr with far more than anybody keeps.
# forms: node local
# expect: Success/Completed
# timeout: 35s
block = b"y" * (1 << 20)
for _ in range(100):
    os.write(1, block)
    os.write(2, block)
os._exit(0)
