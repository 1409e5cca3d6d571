"""Every verb that the code uses is allowed, and none that would be dangerous in other hands."""

import json

from cluster import CHARTS, GROUP, OTHER, SYSTEM, TENANT, call, check, helm, kubectl, parsed, wait_for

ACCOUNT = "system:serviceaccount:%s:agentrun-%s"
# Every verb that the code uses: (namespace, group, resource, name, verbs), where None means any.
OPERATOR_NEEDS = [
    (None, GROUP, "agentruns", None, "list watch delete"),
    (None, GROUP, "subtasks", None, "get list watch create patch"),
    (None, GROUP, "threads", None, "get list watch create patch delete"),
    (None, GROUP, "skills", None, "list watch"),
    (None, GROUP, "sandboxpools", None, "list watch"),
    (None, GROUP, "models", None, "list watch"),
    (None, GROUP, "agentruns/status", None, "patch"),
    (None, GROUP, "subtasks/status", None, "patch"),
    (None, GROUP, "threads/status", None, "patch"),
    (None, GROUP, "skills/status", None, "patch"),
    (None, GROUP, "agentruns/finalizers", None, "update"),
    (None, GROUP, "subtasks/finalizers", None, "update"),
    (None, GROUP, "threads/finalizers", None, "update"),
    (None, "", "pods", None, "get list watch create delete"),
    (None, "", "persistentvolumeclaims", None, "get list watch create delete"),
    (None, "", "configmaps", None, "get"),
    (None, "", "nodes", None, "list watch"),
    (None, "networking.k8s.io", "networkpolicies", None, "list create patch delete"),
    (None, "events.k8s.io", "events", None, "create patch"),
    (TENANT, "", "serviceaccounts", "agentrun-sandbox", "create patch delete"),
    (SYSTEM, "coordination.k8s.io", "leases", None, "create"),
    (SYSTEM, "coordination.k8s.io", "leases", "agentrun-operator", "get update"),
    (SYSTEM, "", "secrets", None, "create"),
    (SYSTEM, "", "secrets", "agentrun-ca", "get update"),
    (SYSTEM, "", "secrets", "agentrun-gateway-tls", "get update"),
    (SYSTEM, "", "configmaps", "agentrun-injection", "get create patch"),
    (SYSTEM, "", "services", "agentrun-gateway", "get"),
    ("default", "", "services", "kubernetes", "get"),
    ("kube-system", "", "services", "kube-dns", "get"),
    ("default", "discovery.k8s.io", "endpointslices", None, "list"),
]
GATEWAY_NEEDS = [
    (None, GROUP, "subtasks", None, "get list watch create"),
    (None, GROUP, "subtasks/status", None, "patch"),
    (None, GROUP, "skills/status", None, "patch"),
    (None, GROUP, "models/status", None, "patch"),
    (None, GROUP, "agentruns", None, "create get list watch patch"),
    (None, GROUP, "models", None, "list watch"),
    (None, GROUP, "skills", None, "list watch"),
    (None, GROUP, "sandboxpools", None, "list watch"),
    (None, "", "configmaps", None, "get"),
    (None, "authentication.k8s.io", "tokenreviews", None, "create"),
    (None, "authorization.k8s.io", "subjectaccessreviews", None, "create"),
]
# What the gateway does for callers of the public API, and may not without it.
API_NEEDS = [
    (TENANT, GROUP, "agentruns", None, "create get patch"),
    (None, "authorization.k8s.io", "subjectaccessreviews", None, "create"),
]
# What would let a stolen token take the cluster, read secrets at large, or destroy what is not ours.
NOBODY_MAY = [
    (TENANT, "", "secrets", None, "list watch create update patch delete deletecollection"),
    ("kube-system", "", "secrets", None, "list create update delete"),
    (TENANT, "", "pods", None, "update patch deletecollection"),
    (TENANT, "", "pods/exec", None, "create get"),
    (TENANT, "", "pods/attach", None, "create get"),
    (TENANT, "", "pods/portforward", None, "create get"),
    (TENANT, "", "pods/ephemeralcontainers", None, "patch update"),
    (TENANT, "", "serviceaccounts/token", None, "create"),
    (TENANT, "", "serviceaccounts", "default", "create patch update delete"),
    ("kube-system", "", "serviceaccounts", "admin", "create patch"),
    (TENANT, "", "configmaps", None, "list watch create update patch delete"),
    (TENANT, "", "persistentvolumeclaims", None, "update patch deletecollection"),
    (None, "", "persistentvolumes", None, "get list create update delete"),
    (None, "", "nodes", None, "create update patch delete"),
    (None, "", "nodes/proxy", None, "get create"),
    (None, "", "namespaces", None, "create update patch delete"),
    (TENANT, "", "services", None, "list create update patch delete"),
    (TENANT, "networking.k8s.io", "networkpolicies", None, "update deletecollection"),
    (TENANT, "apps", "deployments", None, "create update patch delete"),
    (TENANT, "batch", "jobs", None, "create"),
    (TENANT, "coordination.k8s.io", "leases", None, "get create update delete"),
    ("kube-system", "coordination.k8s.io", "leases", None, "get create update delete"),
    (TENANT, GROUP, "agentruns", None, "update deletecollection"),
    (TENANT, GROUP, "subtasks", None, "update delete deletecollection"),
    (TENANT, GROUP, "skills", None, "create update patch delete"),
    (TENANT, GROUP, "sandboxpools", None, "create update delete"),
    (None, "rbac.authorization.k8s.io", "clusterroles", None, "create update patch bind escalate"),
    (None, "rbac.authorization.k8s.io", "clusterrolebindings", None, "create update patch"),
    (TENANT, "rbac.authorization.k8s.io", "roles", None, "create bind escalate"),
    (TENANT, "rbac.authorization.k8s.io", "rolebindings", None, "create"),
    (None, "", "users", None, "impersonate"),
    (None, "", "groups", None, "impersonate"),
    (None, "", "serviceaccounts", None, "impersonate"),
    (None, "admissionregistration.k8s.io", "validatingwebhookconfigurations", None, "create update patch delete"),
    (None, "admissionregistration.k8s.io", "mutatingwebhookconfigurations", None, "create update patch delete"),
    (None, "apiextensions.k8s.io", "customresourcedefinitions", None, "create update patch delete"),
    (None, "certificates.k8s.io", "certificatesigningrequests", None, "create"),
]
GATEWAY_MAY_NOT = [
    (SYSTEM, "", "secrets", None, "get list create"),
    (TENANT, "", "secrets", "any", "get"),
    (TENANT, "", "pods", None, "get list create delete"),
    (TENANT, "", "persistentvolumeclaims", None, "get list create delete"),
    (TENANT, "", "serviceaccounts", "agentrun-sandbox", "create patch delete"),
    (TENANT, "networking.k8s.io", "networkpolicies", None, "create patch delete"),
    (SYSTEM, "coordination.k8s.io", "leases", None, "get create update"),
    (TENANT, GROUP, "subtasks", None, "patch"),
    (TENANT, GROUP, "agentruns", None, "delete"),
    (TENANT, GROUP, "agentruns/status", None, "patch"),
    (TENANT, GROUP, "threads", None, "list patch"),
]


def check_rights():
    operator, gateway = ACCOUNT % (SYSTEM, "operator"), ACCOUNT % (SYSTEM, "gateway")
    may("the operator may do all that it does", operator, OPERATOR_NEEDS)
    may_not("the operator may do nothing dangerous", operator, [*NOBODY_MAY, (TENANT, GROUP, "agentruns", None, "create")])
    may("the gateway may do all that it does", gateway, GATEWAY_NEEDS)
    may_not("the gateway may do nothing dangerous", gateway, NOBODY_MAY + GATEWAY_MAY_NOT)
    everything = [(TENANT, "*", "*", None, "*"), (None, "*", "*", None, "*"), (None, GROUP, "subtasks", None, "get list")]
    may_not("the sandboxes' account may do nothing", f"system:serviceaccount:{TENANT}:agentrun-sandbox", everything)
    may("the operator may see whether a Secret exists", operator, [(TENANT, "", "secrets", "any", "get")])
    helm("upgrade", "agentrun", CHARTS / "agentrun", "--set", "api.enabled=false")
    may_not("without the public API the gateway may make and change no run", gateway, API_NEEDS)
    narrow = ("--set", "secretAccess.everywhere=false", "--set", f"secretAccess.namespaces={{{TENANT}}}")
    helm("upgrade", "agentrun", CHARTS / "agentrun", *narrow)
    may("secretAccess.namespaces opens those", operator, [(TENANT, "", "secrets", "any", "get")])
    keys = ("--set", f"modelKeys.namespaces={{{TENANT}}}")
    helm("upgrade", "agentrun", CHARTS / "agentrun", *narrow, *keys)
    may("modelKeys.namespaces lets the gateway read keys there", gateway, [(TENANT, "", "secrets", "any", "get")])
    elsewhere = [(OTHER, "", "secrets", "any", "get"), (TENANT, "", "secrets", None, "list watch create update delete")]
    may_not("but list none, and read none elsewhere", gateway, elsewhere)
    may_not("and no other", operator, [("kube-system", "", "secrets", "any", "get"), (OTHER, "", "secrets", "any", "get")])


def check_owner_references():
    """With OwnerReferencesPermissionEnforcement on, this is refused without the right to agentruns/finalizers."""
    uid = json.loads(kubectl("get", "-n", OTHER, "thread", "after", "-o", "json"))["metadata"]["uid"]
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Thread", "name": "after", "uid": uid, "blockOwnerDeletion": True}
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "owned", "namespace": OTHER, "ownerReferences": [owner]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    create = ("kubectl", "create", "--dry-run=server", "-f", "-", "--as")
    done = call(*create, ACCOUNT % (SYSTEM, "operator"), text=json.dumps(claim))
    check("F118 owners may block their deletion", done.stderr.strip() if done.returncode else "")


def check_users():
    edit = [(TENANT, GROUP, "agentruns", None, "create get list watch update patch delete")]
    group = f"rolebinding -n {TENANT} editor --clusterrole=edit --user=erin".split()
    kubectl("create", *group)
    settled = wait_for(lambda: all(allowed for allowed, _ in ask("erin", edit)))
    check("editors of a namespace may have runs there", "" if settled else "not allowed")
    rest = [(TENANT, GROUP, "subtasks", None, "create update patch delete"), (OTHER, GROUP, "agentruns", None, "create get")]
    may_not("but make no sub-tasks, and nothing elsewhere", "erin", rest)


def may(title, account, rows):
    check(title, ", ".join(text for allowed, text in ask(account, rows) if not allowed))


def may_not(title, account, rows):
    check(title, ", ".join(text for allowed, text in ask(account, rows) if allowed))


def ask(account, rows):
    """Rows of which some verb is answered, as (allowed, text)."""
    reviews = []
    for namespace, group, resource, name, verbs in rows:
        resource, _, subresource = resource.partition("/")
        for verb in verbs.split():
            attributes = {"verb": verb, "group": group, "resource": resource}
            attributes |= {"subresource": subresource} if subresource else {}
            attributes |= {"namespace": namespace} if namespace else {}
            attributes |= {"name": name} if name else {}
            spec = {"user": account, "groups": ["system:serviceaccounts", "system:authenticated"]}
            reviews.append(
                {
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": spec | {"resourceAttributes": attributes},
                }
            )
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    answers = parsed(kubectl("create", "-f", "-", "-o", "json", text=text))
    return [(one["status"]["allowed"], words(one["spec"]["resourceAttributes"])) for one in answers]


def words(attributes):
    order = ("verb", "resource", "subresource", "name", "namespace")
    return " ".join(attributes[key] for key in order if attributes.get(key))
