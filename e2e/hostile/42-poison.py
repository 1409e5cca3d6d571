# Leaves traps for whoever comes next: start-up files, modules, libraries, settings.
# forms: node local
# expect: Success/Completed
trap = f"import os; print('ESCAPED by a trap'); open('/dev/shm/{MARKER}', 'w')"
shell = "echo ESCAPED by a trap"
for folder in (os.environ["HOME"], TEMP, WORKSPACE, OUTPUTS, "/dev/shm"):
    for name in ("sitecustomize.py", "usercustomize.py", "json.py", "os.py", "encodings.py", "run.py"):
        pathlib.Path(folder, name).write_text(trap)
    for name in (".bashrc", ".profile", ".bash_profile", ".shrc", ".env", ".pythonrc", ".npmrc", ".curlrc", ".gitconfig"):
        pathlib.Path(folder, name).write_text(shell)
    site = pathlib.Path(folder, ".local/lib/python3.11/site-packages")
    site.mkdir(parents=True, exist_ok=True)
    (site / "usercustomize.py").write_text(trap)
    (site / "trap.pth").write_text("import os; print('ESCAPED by a trap')\n")
    modules = pathlib.Path(folder, "node_modules/fs")
    modules.mkdir(parents=True, exist_ok=True)
    (modules / "index.js").write_text("console.log('ESCAPED by a trap')")
    pathlib.Path(folder, "sh").write_text("#!/bin/sh\n" + shell)
    os.chmod(os.path.join(folder, "sh"), 0o755)
way("the loader's list", lambda: pathlib.Path("/etc/ld.so.preload").write_text("/tmp/trap.so"))
end()
