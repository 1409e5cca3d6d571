#!/usr/bin/env python3
"""A stand-in for an OpenAI-compatible endpoint, for clusters that reach no model: one file, no dependencies.

    server.py script SCENARIO.json            answers by rules (README.md describes them)
    server.py record RECORDING.jsonl URL      passes requests on to URL and keeps every answer, byte by byte
    server.py replay RECORDING.jsonl          gives the kept answers again, each to the request it was given to

Serves POST /v1/chat/completions on PORT (8000 by default). GET /asked lists the requests so far, GET /health is for
probes. KEY in the environment is the only key that is taken; in `record` it is the key for URL.
"""

import hashlib
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from base64 import b64decode, b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = "/v1/chat/completions"
MAX_REQUEST = 32 << 20
KEPT_REQUESTS = 1000
WHEN = {"user", "system", "last", "turn", "model", "tools"}
ANSWER = {
    "status", "headers", "body", "text", "reasoning", "toolCalls", "dialect", "finish", "usage", "events", "delayMs",
    "pauseMs", "cutAfter", "endless",
}


class Mistake(Exception):
    """What is wrong with a scenario, a recording or a request, and what to do."""


def error(status, message):
    """An answer that refuses, in OpenAI's words."""
    return {"status": status, "body": {"error": {"message": message, "type": "model_server"}}}


# --- scenarios


def content(message):
    """Text of a message, whatever form it has."""
    found = message.get("content")
    if isinstance(found, list):
        return "".join(part.get("text", "") for part in found if isinstance(part, dict))
    return found if isinstance(found, str) else ""


def fits(when, request):
    """Whether a request is as a rule wants it."""
    messages = request.get("messages") or []
    of = lambda role: [message for message in messages if message.get("role") == role]
    newest = lambda found: content(found[-1]) if found else ""
    oldest = lambda found: content(found[0]) if found else ""
    said = {"user": newest(of("user")), "system": oldest(of("system")), "last": newest(messages)}
    facts = {"turn": len(of("assistant")), "model": request.get("model"), "tools": bool(request.get("tools"))}
    contains = all(when[key] in text for key, text in said.items() if when.get(key) is not None)
    return contains and all(when[key] == fact for key, fact in facts.items() if when.get(key) is not None)


class Script:
    """Rules in order: the first that fits, and is not used up, answers."""

    def __init__(self, scenario):
        self.lock = threading.Lock()
        if set(scenario) != {"rules"}:
            raise Mistake(f"a scenario has the key rules alone, found {sorted(scenario)}")
        for number, rule in enumerate(scenario["rules"]):
            unknown = set(rule) - {"when", "times", "answer"} | set(rule.get("when", {})) - WHEN
            unknown |= set(rule.get("answer", {})) - ANSWER
            if unknown or "answer" not in rule:
                raise Mistake(f"rule {number}: unknown keys {sorted(unknown)}, or no answer")
        self.rules = [dict(rule) for rule in scenario["rules"]]

    def answer(self, request, _body):
        with self.lock:
            for rule in self.rules:
                if rule.get("times") != 0 and fits(rule.get("when", {}), request):
                    if rule.get("times") is not None:
                        rule["times"] -= 1
                    return rule["answer"]
        last = content((request.get("messages") or [{}])[-1])
        return error(500, f"the scenario has no answer to this request, which ends with {last[-200:]!r}")


def written(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def reason(answer):
    calls = answer.get("toolCalls") and answer.get("dialect", "openai") != "hermes"
    return answer.get("finish") or ("tool_calls" if calls else "stop")


def used(answer):
    usage = answer.get("usage", [10, 5])
    if usage is None:
        return None
    return {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": usage[0] + usage[1]}


def openai_call(index, call, arguments):
    function = {"name": call["name"], "arguments": arguments}
    return {"index": index, "id": f"call_{call['name']}_{index}", "type": "function", "function": function}


def halves(text):
    return [piece for piece in (text[: len(text) // 2], text[len(text) // 2 :]) if piece]


def calling(answer):
    """The deltas in which calls of tools come."""
    dialect = answer.get("dialect", "openai")
    deltas = []
    for index, call in enumerate(answer.get("toolCalls", [])):
        if dialect == "ollama":
            deltas.append({"tool_calls": [{"function": {"name": call["name"], "arguments": call["arguments"]}}]})
        elif dialect == "openai":
            deltas.append({"tool_calls": [openai_call(index, call, "")]})
            for piece in halves(written(call["arguments"])):
                deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    return deltas


def spoken(answer):
    """The text, which holds the calls in one dialect."""
    text = answer.get("text", "")
    if answer.get("dialect") == "hermes":
        for call in answer.get("toolCalls", []):
            text += "\n<tool_call>\n" + json.dumps({"name": call["name"], "arguments": call["arguments"]}) + "\n</tool_call>"
    return text


def chunks(answer):
    """What the stream says, one `data:` each."""
    if "events" in answer:
        return [event if isinstance(event, str) else json.dumps(event) for event in answer["events"]]
    deltas = [{"role": "assistant", "content": ""}]
    if answer.get("reasoning"):
        deltas.append({"reasoning_content": answer["reasoning"]})
    deltas += [{"content": piece} for piece in halves(spoken(answer))] + calling(answer)
    chunk = lambda delta, finish: {
        "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    said = [chunk(delta, None) for delta in deltas] + [chunk({}, reason(answer))]
    if used(answer):
        said.append({"object": "chat.completion.chunk", "choices": [], "usage": used(answer)})
    return [json.dumps(part) for part in said] + ["[DONE]"]


def whole(answer):
    """The answer to a request that asked for no stream."""
    calls = [openai_call(index, call, written(call["arguments"])) for index, call in enumerate(answer.get("toolCalls", []))]
    message = {"role": "assistant", "content": answer.get("text", "")}
    if calls:
        message["tool_calls"] = calls
    said = {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": reason(answer)}]}
    if used(answer):
        said["usage"] = used(answer)
    return said


# --- recordings


def digest(body):
    """Of the request as JSON, so that neither white space nor the order of keys counts."""
    canonical = json.dumps(json.loads(body), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


class Record:
    """Passes requests on, and keeps what came back."""

    def __init__(self, file, url):
        self.file, self.url, self.lock = file, url.rstrip("/"), threading.Lock()

    def answer(self, _request, body):
        headers = {"content-type": "application/json"}
        if os.environ.get("KEY"):
            headers["authorization"] = "Bearer " + os.environ["KEY"]
        asked = urllib.request.Request(self.url + "/chat/completions", data=body, headers=headers)
        try:
            response = urllib.request.urlopen(asked, timeout=600)
        except urllib.error.HTTPError as refused:
            response = refused
        except OSError as failed:
            return error(502, f"{self.url} does not answer: {failed}")
        return {"raw": self.keeping(digest(body), response)}

    def keeping(self, asked, response):
        kept = {"request": asked, "status": response.status, "type": response.headers.get("content-type", ""), "chunks": []}
        yield kept["status"], kept["type"]
        while piece := response.read1(1 << 16):
            kept["chunks"].append(b64encode(piece).decode())
            yield piece
        # Only what came to its end is worth giving again.
        with self.lock, open(self.file, "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")


class Replay:
    """Gives kept answers again. Answers to equal requests come in the order in which they were kept, the last for ever."""

    def __init__(self, lines):
        self.lock, self.kept = threading.Lock(), {}
        for number, line in enumerate(lines, 1):
            try:
                kept = json.loads(line)
                self.kept.setdefault(kept["request"], []).append(kept)
            except (ValueError, KeyError, TypeError) as wrong:
                raise Mistake(f"line {number} of the recording is none: {wrong}") from wrong

    def answer(self, request, body):
        asked = digest(body)
        with self.lock:
            kept = self.kept.get(asked, [])
            found = kept.pop(0) if len(kept) > 1 else (kept[0] if kept else None)
        if found is None:
            turn = len([message for message in request.get("messages", []) if message.get("role") == "assistant"])
            return error(404, f"the recording has no answer to request {asked} (turn {turn}): record it anew")
        return {"raw": self.again(found)}

    def again(self, found):
        yield found["status"], found["type"]
        for piece in found["chunks"]:
            yield b64decode(piece)


# --- the server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    source, key, asked = None, None, []

    def log_message(self, form, *words):
        sys.stderr.write(form % words + "\n")

    def do_GET(self):
        if self.path == "/health":
            return self.once(200, {"ok": True})
        if self.path == "/asked":
            return self.once(200, list(self.asked))
        self.once(404, error(404, f"there are POST {PATH}, GET /asked and GET /health")["body"])

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_REQUEST:
            self.close_connection = True
            return self.once(413, error(413, f"{length} bytes, at most {MAX_REQUEST}")["body"])
        body = self.rfile.read(length)
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise ValueError("no object")
        except ValueError as wrong:
            return self.once(400, error(400, f"the request is no JSON object: {wrong}")["body"])
        self.asked.append(request)
        del self.asked[:-KEPT_REQUESTS]
        self.say(request, self.find(request, body))

    def find(self, request, body):
        if self.path != PATH:
            return error(404, f"there are POST {PATH}, GET /asked and GET /health")
        sent = self.headers.get("authorization")
        if self.key and sent != f"Bearer {self.key}":
            return error(401, f"Incorrect API key provided: {sent or 'none'}")
        return self.source.answer(request, body)

    def say(self, request, answer):
        time.sleep(answer.get("delayMs", 0) / 1000)
        if "raw" in answer:
            return self.raw(answer["raw"])
        status = answer.get("status", 200)
        if "body" in answer or status != 200:
            return self.once(status, answer.get("body", {}), answer.get("headers", {}))
        if answer.get("dialect") == "whole" or not request.get("stream"):
            return self.once(200, whole(answer), answer.get("headers", {}))
        self.begin(200, "text/event-stream", answer.get("headers", {}))
        said = chunks(answer)
        for number, chunk in enumerate(said):
            line = f"data: {chunk}\n\n".encode()
            if answer.get("cutAfter") == number:
                self.piece(line[: len(line) // 2])
                return self.cut()
            while answer.get("endless") and chunk == "[DONE]":
                self.piece(f"data: {said[number - 1]}\n\n".encode())
            self.piece(line)
            time.sleep(answer.get("pauseMs", 0) / 1000)
        self.wfile.write(b"0\r\n\r\n")

    def raw(self, pieces):
        status, kind = next(pieces)
        self.begin(status, kind, {})
        for piece in pieces:
            self.piece(piece)
        self.wfile.write(b"0\r\n\r\n")

    def begin(self, status, kind, headers):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def piece(self, data):
        if data:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def once(self, status, body, headers=None):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def source(words):
    """What answers, by the words of the command line."""
    match words:
        case ["script", file]:
            with open(file, encoding="utf-8") as opened:
                return Script(json.load(opened))
        case ["record", file, url]:
            return Record(file, url)
        case ["replay", file]:
            with open(file, encoding="utf-8") as opened:
                return Replay(opened)
    raise Mistake(__doc__)


def serve(words, address=("", 8000), key=None):
    """A server that is ready; the caller lets it serve."""
    found = source(words)
    handler = type("Bound", (Handler,), {"source": found, "asked": [], "key": None if words[0] == "record" else key})
    server = ThreadingHTTPServer(address, handler)
    server.daemon_threads = True
    return server


def main():
    try:
        server = serve(sys.argv[1:], ("", int(os.environ.get("PORT", "8000"))), os.environ.get("KEY"))
    except (Mistake, OSError, ValueError) as wrong:
        sys.exit(f"{wrong}")
    server.serve_forever()


if __name__ == "__main__":
    main()
