# Nests folders deeper than any path is long, with names as long as they may be, and without rights.
# forms: node local
# expect: Success/Completed
# require: nested
os.chdir(os.environ["TMPDIR"])
for number in range(3000):
    name = "n" * 255 if number < 50 else "d"
    os.mkdir(name)
    os.chdir(name)
open("deepest", "w").close()
os.chmod(".", 0)
os.chdir("/")
home = os.environ["TMPDIR"]
os.mkdir(home + "/locked")
open(home + "/locked/file", "w").close()
for name in (b"\xff\xfe", b"new\nline", b"-rf", b"\x1b[31m"):
    open(os.path.join(home.encode(), name), "w").close()
os.chmod(home + "/locked", 0)
os.chmod(home, 0)
print("nested", flush=True)
