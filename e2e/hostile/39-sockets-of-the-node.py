# Connects to the runtime's socket and to those of the node, and puts its own in their place.
# forms: node
# expect: Success/Completed
SOCKETS = ["/run/agentrun/executor.sock", "/run/containerd/containerd.sock", "/var/run/docker.sock", "/run/crio/crio.sock", "/run/dbus/system_bus_socket", "/run/systemd/notify",
           "/run/systemd/private", "/dev/log", "/var/lib/kubelet/device-plugins/kubelet.sock", "/var/lib/kubelet/pod-resources/kubelet.sock"] + glob.glob("/run/**/*.sock", recursive=True)
for path in SOCKETS:
    way(path, lambda: socket.socket(socket.AF_UNIX).connect(path) is None)
    way(f"bound {path}", lambda: socket.socket(socket.AF_UNIX).bind(path) is None)
way("removed", lambda: os.unlink("/run/agentrun/executor.sock") is None)
way("renamed", lambda: os.rename("/run/agentrun", "/run/agentrun.old") is None)
end()
