# Makes very many small files, folders and links.
# forms: node local
# expect: Success/Completed | Error/NoSpaceLeft
# require: made
home = os.environ["TMPDIR"]
for folder in range(20):
    os.makedirs(f"{home}/{folder}")
    for number in range(500):
        open(f"{home}/{folder}/{number}", "w").close()
    for number in range(100):
        os.symlink("/etc/passwd", f"{home}/{folder}/link{number}")
        os.link(f"{home}/{folder}/0", f"{home}/{folder}/hard{number}")
print("made", flush=True)
