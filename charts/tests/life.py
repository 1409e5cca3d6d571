"""Installing, upgrading and uninstalling."""

import json
import pathlib
import shutil
import tempfile

from cluster import CHARTS, GROUP, OTHER, SYSTEM, TENANT, call, check, definitions, helm, kubectl, must, objects, parsed, wait_for
from rights import ACCOUNT, may, may_not

def check_install():
    for namespace in (SYSTEM, TENANT, OTHER):
        kubectl("create", "namespace", namespace)
        kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    old = pathlib.Path(tempfile.mkdtemp()) / "agentrun-crds"
    shutil.copytree(CHARTS / "agentrun-crds", old)
    threads = old / "templates" / f"{GROUP}_threads.yaml"
    threads.write_text(threads.read_text().replace("              folder:\n", "              oldName:\n"))
    helm("install", "agentrun-crds", old)
    shutil.rmtree(old.parent)
    wait_for(lambda: call("kubectl", "get", "threads").returncode == 0)
    stored = thread_folder("before")
    check("an older definition prunes what it does not know", "" if stored is None else f"it kept {stored}")
    helm("upgrade", "agentrun-crds", CHARTS / "agentrun-crds")
    # The API server serves the new schema a moment after it stored it.
    served = wait_for(lambda: thread_folder("after") == "users/u/threads/t")
    check("F116 helm upgrade upgrades the definitions", "" if served else "the new status field is still pruned")
    helm("install", "agentrun", CHARTS / "agentrun")
    pods = wait_for(lambda: len(objects("pods", "-n", SYSTEM)) == 2)
    refused = [e["message"] for e in objects("events", "-n", SYSTEM) if e["reason"] == "FailedCreate"]
    check("F110 Pod Security restricted admits operator and gateway", "" if pods else "; ".join(refused) or "no Pods")
    check_diff("agentrun")
    check_diff("agentrun-crds")


def thread_folder(name):
    """What the API server stores of a status field of a Thread."""
    text = f"apiVersion: {GROUP}/v1alpha1\nkind: Thread\nmetadata: {{name: {name}}}\nspec: {{user: u, thread: t}}\n"
    kubectl("apply", "-n", OTHER, "--server-side", "-f", "-", text=text)
    patch = '{"status": {"folder": "users/u/threads/t"}}'
    kubectl("patch", "-n", OTHER, "thread", name, "--subresource=status", "--type=merge", "-p", patch)
    return json.loads(kubectl("get", "-n", OTHER, "thread", name, "-o", "json")).get("status", {}).get("folder")


def check_diff(chart):
    rendered = helm("template", chart, CHARTS / chart, "--no-hooks", "--is-upgrade")
    done = call("kubectl", "diff", "--server-side", "--force-conflicts", "-f", "-", text=rendered)
    check(f"F113 F114 nothing differs after {chart} was applied", done.stdout + done.stderr if done.returncode else "")


def check_upgrade():
    helm("upgrade", "agentrun", CHARTS / "agentrun", "--set", "operator.replicas=2", "--set", "gateway.replicas=3")
    budgets = sorted(one["metadata"]["name"] for one in objects("poddisruptionbudgets", "-n", SYSTEM))
    check("two replicas bring a disruption budget", "" if budgets == ["agentrun-gateway", "agentrun-operator"] else str(budgets))
    helm("upgrade", "agentrun", CHARTS / "agentrun", "--set", "networkPolicy.enabled=false", "--set", "requireNetworkIsolation=false")
    left = objects("networkpolicies", "-n", SYSTEM) + objects("poddisruptionbudgets", "-n", SYSTEM)
    check("an upgrade takes away what the values no longer ask for", ", ".join(one["metadata"]["name"] for one in left))
    helm("upgrade", "agentrun", CHARTS / "agentrun")


def check_drain():
    """The hook cannot run without nodes: its Pod must be admitted, and its account may do what it does."""
    hooks = hooks_of_drain()
    kinds = sorted(one["kind"] for one in hooks)
    check("the drain brings its own rights", "" if kinds == ["ClusterRole", "ClusterRoleBinding", "Job", "ServiceAccount"] else str(kinds))
    job = next(one for one in hooks if one["kind"] == "Job")
    kubectl("apply", "-f", "-", text=rights_of_drain())
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "drain", "namespace": SYSTEM}, "spec": job["spec"]["template"]["spec"]}
    done = call("kubectl", "create", "--dry-run=server", "-f", "-", text=json.dumps(pod))
    check("Pod Security restricted admits the drain", done.stderr.strip() if done.returncode else "")
    needs = [
        (None, GROUP, "agentruns", None, "list patch"),
        *[(None, GROUP, kind, None, "get list patch") for kind in ("subtasks", "threads", "sandboxpools")],
        (None, "", "pods", None, "list delete"),
    ]
    may("the drain may do all that it does", ACCOUNT % (SYSTEM, "drain"), needs)
    secrets = [(SYSTEM, "", "secrets", None, "get list"), (TENANT, "", "pods", None, "create"), (TENANT, GROUP, "agentruns", None, "delete")]
    may_not("and nothing dangerous", ACCOUNT % (SYSTEM, "drain"), secrets)
    kubectl("delete", "-f", "-", text=rights_of_drain())


def hooks_of_drain():
    rendered = helm("template", "agentrun", CHARTS / "agentrun")
    every = parsed(kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", text=rendered))
    return [one for one in every if "helm.sh/hook" in one["metadata"].get("annotations", {})]


def rights_of_drain():
    items = [one for one in hooks_of_drain() if one["kind"] != "Job"]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def check_uninstall():
    must("helm", "uninstall", "agentrun", "--namespace", SYSTEM, "--no-hooks", "--wait")
    kinds = "deployments,services,serviceaccounts,networkpolicies,poddisruptionbudgets,roles,rolebindings"
    ours = ("-l", "app.kubernetes.io/name=agentrun")
    left = objects(kinds, "-A", *ours) + objects("clusterroles,clusterrolebindings", *ours)
    check("uninstalling leaves nothing of the release", ", ".join(f"{one['kind']} {one['metadata']['name']}" for one in left))
    must("helm", "uninstall", "agentrun-crds", "--namespace", SYSTEM)
    there = call("kubectl", "get", "-n", OTHER, "thread", "after").returncode == 0
    check("F116 uninstalling the definitions keeps all objects", "" if there else "the Thread is gone")
    helm("install", "agentrun-crds", CHARTS / "agentrun-crds", "--take-ownership", "--set", "keep=false")
    must("helm", "uninstall", "agentrun-crds", "--namespace", SYSTEM)
    # The API server cleans a definition up on its own clock, with pauses.
    gone = wait_for(lambda: not definitions(), 120)
    check("and takes them along with keep=false", "" if gone else ", ".join(definitions()))


def clean():
    for release in ("agentrun", "agentrun-crds"):
        call("helm", "uninstall", release, "--namespace", SYSTEM, "--no-hooks")
    for name in definitions():
        for item in objects(name, "-A"):
            metadata = item["metadata"]
            call("kubectl", "patch", name, metadata["name"], "-n", metadata["namespace"], "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        call("kubectl", "delete", "crd", name, "--wait=false")
    call("kubectl", "delete", "namespace", SYSTEM, TENANT, OTHER, "--ignore-not-found")
