# Runs a program that lies in memory only: it must be as confined as any other.
# forms: node local
# expect: Success/Completed
opened = call("memfd_create", b"hostile", 0)[0]
os.write(opened, pathlib.Path("/bin/sh").read_bytes())
script = f"grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status; echo x 2>/dev/null > /etc/{MARKER} && echo wrote; true"
shown = subprocess.run([f"/proc/self/fd/{opened}", "-c", script], pass_fds=[opened], capture_output=True, text=True).stdout
way("wrote", lambda: "wrote" in shown)
way("without a filter", lambda: shown.split() != ["NoNewPrivs:", "1", "Seccomp:", "2"] and shown)
end()
