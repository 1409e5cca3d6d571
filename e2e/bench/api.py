"""The Kubernetes API without a client's start-up time: one kept connection for requests, one per watch."""

import base64
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import time
from urllib.parse import urlencode, urlsplit


class Api:
    def __init__(self, server, context, headers):
        self.server, self.context, self.headers = urlsplit(server), context, headers
        self.kept = self._connect()

    @classmethod
    def from_kubeconfig(cls):
        view = subprocess.run(
            ["kubectl", "config", "view", "--raw", "--minify", "--flatten", "-o", "json"],
            capture_output=True, text=True, check=True)
        config = json.loads(view.stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode() or None
        context = ssl.create_default_context(cadata=authority)
        headers = {"Accept": "application/json"}
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile(dir="/dev/shm") as pem:
                pem.write(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
                pem.flush()
                context.load_cert_chain(pem.name)
        elif "token" in user:
            headers["Authorization"] = f"Bearer {user['token']}"
        return cls(cluster["server"], context, headers)

    def _connect(self):
        return http.client.HTTPSConnection(self.server.hostname, self.server.port or 443, context=self.context, timeout=60)

    def _send(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        headers = {**self.headers, **({"Content-Type": "application/json"} if data else {})}
        self.kept.request(method, path, data, headers)
        answer = self.kept.getresponse()
        text = answer.read().decode()
        if answer.status >= 300 and answer.status != 404:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]}")
        return answer.status, text

    def get(self, path):
        return json.loads(self._send("GET", path)[1])

    def text(self, path):
        return self._send("GET", path)[1]

    def post(self, path, body):
        return json.loads(self._send("POST", path, body)[1])

    def delete(self, path):
        self._send("DELETE", path)

    def watch(self, path, version, seconds):
        query = urlencode({"watch": "true", "resourceVersion": version, "timeoutSeconds": int(seconds)})
        connection = self._connect()
        connection.request("GET", f"{path}?{query}", headers=self.headers)
        for line in connection.getresponse():
            yield json.loads(line)
        connection.close()


def wait_for(api, path, name, holds, seconds=120):
    """The first object (of that name, if given) of a collection that `holds` is true for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        listed = api.get(path)
        fits = lambda found: (name is None or found["metadata"]["name"] == name) and holds(found)
        for found in listed["items"]:
            if fits(found):
                return found
        for event in api.watch(path, listed["metadata"]["resourceVersion"], deadline - time.monotonic() + 1):
            if event["type"] in ("ADDED", "MODIFIED") and fits(event["object"]):
                return event["object"]
    raise TimeoutError(f"{path} {name}: not within {seconds} s")


def apply_namespace(api, name):
    """A fresh namespace that enforces Pod Security `restricted`."""
    path = f"/api/v1/namespaces/{name}"
    if api._send("GET", path)[0] != 404:
        api.delete(path)
        deadline = time.monotonic() + 120
        while api._send("GET", path)[0] != 404:
            if time.monotonic() > deadline:
                raise TimeoutError(f"namespace {name} does not go away")
            time.sleep(0.2)
    api.post("/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}})
    account = f"{path}/serviceaccounts"
    wait_for(api, account, "default", lambda _: True)
