"""A caller of the public API in a Pod: prints what it was told as one JSON document."""
import json
import os
import threading
import time
import urllib.error
import urllib.request

API, OTHER = os.environ["API"], os.environ["OTHER"]
TOKENS = {name: open(f"/tokens/{name}").read() for name in ("right", "audience")}


def hello(word):
    """A task that delivers one file."""
    argv = ["sh", "-c", f"echo {word} > /mnt/user-data/outputs/hi.txt"]
    return {"spec": {"tasks": [{"name": "hello", "command": {"argv": argv}}]}}


def call(method, url, body=None, token="right", **headers):
    """(status, document)"""
    data = None if body is None else json.dumps(body).encode()
    headers = {"authorization": f"Bearer {TOKENS.get(token, token)}", **headers}
    asked = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read() or b"null")


def stream(url, last=None):
    """Events of a task until its end: [(id, data)]"""
    headers = {"authorization": f"Bearer {TOKENS['right']}"} | ({"last-event-id": last} if last else {})
    events, name = [], None
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=120) as answer:
        for line in answer:
            line = line.decode().rstrip("\n")
            if line.startswith("id: "):
                name = line[4:]
            elif line.startswith("data: "):
                events.append((name, json.loads(line[6:])))
    return events


def at_once(calls):
    """Answers of calls that run at the same time, in their order."""
    answers = [None] * len(calls)

    def one(number, function, body):
        answers[number] = call("POST", f"{API}/flow/checks/{function}", body)

    threads = [threading.Thread(target=one, args=(number, *words)) for number, words in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


made = [call("POST", f"{API}/tasks", hello("hi"), **{"idempotency-key": "one"}) for _ in range(2)]
if made[0][0] != 202:
    raise SystemExit(f"no task was made: {made}")
task = made[0][1]["task_id"]
events = stream(f"{API}/tasks/{task}/stream")
middle = events[len(events) // 2][0]
print(json.dumps({
    "made": made,
    "otherBody": call("POST", f"{API}/tasks", hello("bye"), **{"idempotency-key": "one"}),
    "events": [data for _, data in events],
    "resumed": [data for _, data in stream(f"{API}/tasks/{task}/stream", middle)],
    "after": [data for name, data in events[[name for name, _ in events].index(middle) + 1:]],
    "task": call("GET", f"{API}/tasks/{task}"),
    "checks": at_once([("double", 21), ("fail", 1), ("double", 4)]),
    "refused": {
        "audience": call("GET", f"{API}/tasks", token="audience")[0],
        "forged": call("GET", f"{API}/tasks", token="x.y.z")[0],
        "namespace": call("GET", f"{OTHER}/tasks")[0],
        "mistake": call("POST", f"{API}/tasks", {"spec": {"tasks": [{"name": "BAD NAME"}]}}),
    },
}))
