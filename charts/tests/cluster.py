"""kubectl, helm, and the lines of the result."""

import json
import pathlib
import subprocess
import sys
import time

CHARTS = pathlib.Path(__file__).resolve().parent.parent
SYSTEM, TENANT, OTHER = "agentrun-system", "agentrun-tenant", "agentrun-other"
IMAGES = ["image=agentrun:0", "runtimeImage=agentrun-runtime@sha256:" + "0" * 64, "defaultImage=agentrun-python:0"]
GROUP = "agentrun.dev"
failures = []


def check(name, problem):
    """One line of the result; `problem` is empty if all is well."""
    print(f"{'FAIL' if problem else 'PASS'}  {name}" + (f": {problem}" if problem else ""), flush=True)
    if problem:
        failures.append(name)


def call(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def must(*command, text=None):
    done = call(*command, text=text)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def kubectl(*arguments, text=None):
    return must("kubectl", *arguments, text=text)


def helm(verb, release, chart, *arguments):
    return must("helm", verb, release, str(chart), "--namespace", SYSTEM, *images(chart.name), *arguments)


def images(chart):
    return [part for image in IMAGES for part in ("--set", image)] if chart == "agentrun" else []


def objects(kind, *arguments):
    return json.loads(kubectl("get", kind, "-o", "json", *arguments))["items"]


def parsed(text):
    """The objects that kubectl prints, one after the other or as a list."""
    decoder, found, text = json.JSONDecoder(), [], text.strip()
    while text:
        one, end = decoder.raw_decode(text)
        found += one["items"] if one["kind"] == "List" else [one]
        text = text[end:].strip()
    return found


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def definitions():
    return [one["metadata"]["name"] for one in objects("crds") if one["metadata"]["name"].endswith(GROUP)]
