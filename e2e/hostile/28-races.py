# Exchanges folders for links while others write into them, to be caught between check and use.
# forms: node local
# expect: Success/Completed
os.chdir(WORKSPACE)
os.makedirs("real", exist_ok=True)
os.symlink(UPLOADS, "fake")
os.symlink("real", "door")
stop = time.monotonic() + 1.5


def swap():
    while time.monotonic() < stop:
        for target in (UPLOADS, "real", "/etc", "/"):
            try:
                os.symlink(target, "door.new")
                os.rename("door.new", "door")
            except OSError:
                pass


threads = [threading.Thread(target=swap) for _ in range(2)]
for thread in threads:
    thread.start()
tries = 0
while time.monotonic() < stop:
    tries += 1
    try:
        with open("door/" + MARKER, "w") as opened:
            opened.write("x")
    except OSError:
        pass
for thread in threads:
    thread.join()
for folder in (UPLOADS, "/etc", "/"):
    way(f"a file in {folder}", lambda: os.path.lexists(os.path.join(folder, MARKER)))
end()
