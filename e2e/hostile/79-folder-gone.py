# Takes its own private folder away and puts a link in its place.
# forms: node local
# expect: Success/Completed
# require: gone
home = os.environ["TMPDIR"]
os.rename(home, os.path.join(TEMP, "moved"))
os.symlink(UPLOADS, home)
print("gone", flush=True)
