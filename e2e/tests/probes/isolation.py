"""Runs inside a sandbox and writes down everything it could reach, read or write that it should not have."""
import glob
import json
import os
import pathlib
import socket
import sys
import threading

TOKEN = b"eyJhb" + b"GciOi"  # how every JSON Web Token begins; in two parts, since our own arguments are looked at, too
targets = json.load(sys.stdin)["targets"]
found = {"open": [], "answered": [], "written": [], "credentials": [], "processes": {}}


def connect(name, host, port):
    try:
        socket.create_connection((host, port), timeout=3).close()
        found["open"].append(name)
    except OSError:
        pass


def ask(name, host, port):
    """A datagram that the peer would echo."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(3)
        try:
            udp.sendto(b"hello", (host, port))
            udp.recvfrom(64)
            found["answered"].append(name)
        except OSError:
            pass


def resolve(name):
    try:
        socket.getaddrinfo(name, 443)
        found["answered"].append(f"name {name}")
    except OSError:
        pass


threads = [threading.Thread(target=connect, args=(name, *at)) for name, at in targets["tcp"].items()]
threads += [threading.Thread(target=ask, args=(name, *at)) for name, at in targets["udp"].items()]
threads += [threading.Thread(target=resolve, args=(name,)) for name in ("kubernetes.default.svc", "example.com")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

for folder in ("/", "/etc", "/usr", "/opt", "/opt/agentrun", "/run", "/run/agentrun", "/var", "/var/run", "/mnt",
               "/mnt/skills", "/mnt/state", "/mnt/user-data", "/mnt/user-data/uploads", "/dev", "/dev/mqueue", "/proc",
               "/sys", "/sys/fs/cgroup", "/home", "/root", "/var/tmp"):
    try:
        pathlib.Path(folder, "probe").write_text("x")
        found["written"].append(folder)
    except OSError:
        pass
for file in ("/dev/termination-log", "/mnt/user-data/uploads/given.txt", "/etc/hosts", "/etc/resolv.conf",
             "/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/1/oom_score_adj"):
    try:
        with open(file, "a") as opened:
            opened.write("x")
            opened.flush()
        found["written"].append(file)
    except OSError:
        pass
found["writable"] = []
for folder in ("/mnt/user-data/workspace", "/mnt/user-data/outputs", "/tmp"):
    pathlib.Path(folder, "probe").write_text("x")
    found["writable"].append(folder)


def look(path):
    try:
        with open(path, "rb") as opened:
            if TOKEN in opened.read(1 << 20):
                found["credentials"].append(path)
    except OSError:
        pass


for folder in ("/run", "/var", "/mnt", "/tmp", "/etc", "/opt"):
    for base, _, names in os.walk(folder):
        for name in names:
            look(os.path.join(base, name))
        if "serviceaccount" in base or base.endswith("/secrets/agentrun"):
            found["credentials"].append(base)
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
    look(path)
for path in glob.glob("/proc/[0-9]*/cmdline"):
    try:
        words = pathlib.Path(path).read_bytes().split(b"\0")
        found["processes"][path.split("/")[2]] = words[0].decode()
    except OSError:
        pass

status = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
found["status"] = {key: status[key].strip() for key in ("Uid", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")}
found["environment"] = sorted(os.environ)
found["interfaces"] = sorted(name for _, name in socket.if_nameindex())
found["sockets"] = os.path.exists("/run/agentrun/executor.sock")
pathlib.Path(os.environ["AGENTRUN_OUTPUT"]).write_text(json.dumps(found))
