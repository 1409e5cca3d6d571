# Looks for what is not its own in environment, arguments and the process's start.
# forms: node local
# expect: Success/Completed
# What the executor makes, what a shell or the image's Python adds, and what an image may say about where its programs are.
KNOWN = {"AGENTRUN_INPUT", "AGENTRUN_OUTPUT", "HOME", "TMPDIR", "TMP", "TEMP", "PWD", "SHLVL", "_", "OPENBLAS_NUM_THREADS", "MPLBACKEND",
         "HOSTILE_DATA", "HOSTILE_TEMP", "HOSTILE_TARGETS",
         "PATH", "LANG", "LANGUAGE", "TZ", "TZDIR", "TERM", "LD_LIBRARY_PATH", "JAVA_HOME", "NODE_PATH", "GOROOT", "GEM_HOME",
         "GEM_PATH", "PERL5LIB", "R_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "SSL_CERT_FILE", "SSL_CERT_DIR", "MPLCONFIGDIR",
         "PLAYWRIGHT_BROWSERS_PATH"}
PREFIXES = ("LC_", "PYTHON", "FONTCONFIG_")
for name in os.environ:
    way(f"variable {name}", lambda: name not in KNOWN and not name.startswith(PREFIXES) and name)
    way(f"value of {name}", lambda: "eyJhb" + "GciOi" in os.environ[name] and name)
for path in glob.glob("/proc/[0-9]*/cmdline"):
    def arguments():
        text = open(path, "rb").read()
        return path.split("/")[2] != str(os.getpid()) and (b"eyJhb" + b"GciOi" in text or b"-----BEGIN" in text) and path
    way(path, arguments)
for path in glob.glob("/proc/[0-9]*/environ"):
    way(path, lambda: not is_descendant(int(path.split("/")[2])) and int(path.split("/")[2]) != os.getpid() and open(path, "rb").read(1))
end()
