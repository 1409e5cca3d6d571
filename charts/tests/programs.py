"""The programs themselves, under the accounts that the chart gives them."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

from cluster import SYSTEM, TENANT, check, kubectl, objects, wait_for
from life import rights_of_drain

RUN = """
apiVersion: v1
kind: ConfigMap
metadata: {name: words}
data: {a.txt: hello}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {key: x}
---
apiVersion: agentrun.dev/v1alpha1
kind: Skill
metadata: {name: hello}
spec:
  configMap: {name: words}
---
apiVersion: agentrun.dev/v1alpha1
kind: AgentRun
metadata: {name: hello}
spec:
  userData: {user: u, thread: t, onRelease: Delete}
  files:
    - {path: a.txt, configMapKeyRef: {name: words, key: a.txt}}
  sandbox:
    secrets:
      - name: key
        items: [{key: key, env: KEY}]
  tasks:
    - name: hello
      command: {argv: [echo, hello]}
"""


def check_running(binary):
    """All programs under their own accounts: a verb that no table names shows itself as a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        with contextlib.ExitStack() as stack:
            logs = [stack.enter_context(running(binary, part, folder)) for part in ("operator", "gateway")]
            made = start_run()
            check("the operator starts a sandbox under its own account", "" if made else tail(logs[0]))
            kubectl("delete", "-n", TENANT, "agentruns", "--all", "--wait=false")
            freed = wait_for(lambda: not holders("subtasks"), 60)
            check("and gives it back", "" if freed else str(holders("subtasks")))
            start_run()
        kubectl("apply", "-f", "-", text=rights_of_drain())
        with running(binary, "drain", folder) as log:
            check("F008 drain frees all that an operator left behind", "" if wait_for(lambda: not holders("subtasks", "threads"), 60) else tail(log))
        kubectl("delete", "-f", "-", text=rights_of_drain())
        for part in ("operator", "gateway", "drain"):
            lines = pathlib.Path(folder, f"{part}.log").read_text(encoding="utf-8").splitlines()
            check(f"the {part} was refused nothing", next((line for line in lines if "is forbidden" in line), ""))


@contextlib.contextmanager
def running(binary, part, folder):
    """One of the programs, with the token of its account; gives its log."""
    ports = [f"127.0.0.1:{port}" for port in range(19090, 19095)]
    settings = {
        "NAMESPACE": SYSTEM,
        "POD_NAME": "charts-test",
        "LOG": "info,agentrun_operator=debug,agentrun_gateway=debug",
        "GATEWAY_SERVICE": f"{SYSTEM}/agentrun-gateway",
        "RUNTIME_IMAGE": "agentrun-runtime:0",
        "DEFAULT_IMAGE": "agentrun-python:0",
        "TLS_DIR": folder,
        "DRAIN_TIMEOUT": "1",
    } | dict(zip(("LISTEN", "OPS_ADDRESS", "CHANNEL_ADDRESS", "CANARY_ADDRESS", "API_ADDRESS"), ports, strict=True))
    environment = os.environ | {f"AGENTRUN_{name}": value for name, value in settings.items()}
    environment["KUBECONFIG"] = config_for(part, folder)
    with open(f"{folder}/{part}.log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen([binary, part], env=environment, stdout=log, stderr=log)
        try:
            yield log
        finally:
            stop(process)


def start_run():
    kubectl("apply", "-n", TENANT, "--server-side", "-f", "-", text=RUN)
    return wait_for(lambda: objects("pods", "-n", TENANT), 60)


def holders(*kinds):
    """Objects of ours with finalizers, and Pods."""
    ours = [one for kind in kinds for one in objects(kind, "-n", TENANT)]
    held = [one for one in ours if one["metadata"].get("finalizers")]
    pods = [one for one in objects("pods", "-n", TENANT) if "deletionTimestamp" not in one["metadata"]]
    return [f"{one['kind']} {one['metadata']['name']}" for one in held + pods]


def tail(log):
    log.seek(0)
    return "".join(log.readlines()[-5:])


def config_for(part, folder):
    """A kubeconfig with the token of an account."""
    config = json.loads(kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    token = kubectl("create", "token", "-n", SYSTEM, f"agentrun-{part}").strip()
    for user in config["users"]:
        user["user"] = {"token": token}
    path = pathlib.Path(folder) / f"{part}.kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    return str(path)


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
