"""What can be said about the charts without a cluster."""

import json
import pathlib
import tempfile

from cluster import CHARTS, call, check, images, must


def check_sources():
    stale = call(str(CHARTS / "sync"), "--check")
    check("the definitions' chart is what crds/ says", stale.stderr.strip())
    for chart in ("agentrun", "agentrun-crds"):
        lint = call("helm", "lint", "--strict", str(CHARTS / chart), *images(chart))
        check(f"helm lint {chart}", lint.stdout if lint.returncode else "")


def check_values():
    for chart in ("agentrun", "agentrun-crds"):
        schema = json.loads((CHARTS / chart / "values.schema.json").read_text(encoding="utf-8"))
        problems = compare(schema, default_values(chart), schema)
        check(f"{chart}: every value has a default and a description", "; ".join(problems))
    bad = ["operator.replica=2", "gateway.resources.limits.memoryy=1Gi", "executorInjection=magic", "sandboxUid=0"]
    for value in [*bad, "egressDeny={10.0.0.0}", "unknown=1", "image=two words", "api.service.type=ExternalName", "api.namespace=Team"]:
        done = call("helm", "template", str(CHARTS / "agentrun"), *images("agentrun"), "--set", value)
        check(f"{value} is refused", "" if "specifications of the schema" in done.stderr else done.stderr or "it is not")
    done = call("helm", "template", str(CHARTS / "agentrun"))
    check("a missing image is named", "" if "set image to" in done.stderr else done.stderr)


def default_values(chart):
    """values.yaml as an object, read by helm: nothing else is needed then."""
    with tempfile.TemporaryDirectory() as folder:
        templates = pathlib.Path(folder, "templates")
        templates.mkdir()
        pathlib.Path(folder, "Chart.yaml").write_text("{apiVersion: v2, name: x, version: 0.0.0}", encoding="utf-8")
        (templates / "values.yaml").write_text("{{ .Values | toJson }}", encoding="utf-8")
        rendered = must("helm", "template", folder, "-f", str(CHARTS / chart / "values.yaml"))
    return json.loads(next(line for line in rendered.splitlines() if line.startswith("{")))


def compare(schema, values, root, path=""):
    """Where schema and defaults name different values, or say nothing about one."""
    names = schema["properties"].keys() - {"global"}
    yield from (f"{path}{name} has no default" for name in sorted(names - values.keys()))
    yield from (f"{path}{name} is not in the schema" for name in sorted(values.keys() - names))
    for name in sorted(names & values.keys()):
        one = schema["properties"][name]
        if reference := one.get("$ref"):
            target = root
            for part in reference.split("/")[1:]:
                target = target[part]
            one = target | one
        if "description" not in one:
            yield f"{path}{name} has no description"
        if "properties" in one and name != "resources":
            yield from compare(one, values[name], root, f"{path}{name}.")
