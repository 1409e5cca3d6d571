"""Tests of the stand-in: python3 -m unittest discover -s e2e/model-server."""

import json
import http.client
import tempfile
import threading
import unittest
import urllib.error
import urllib.request
from pathlib import Path

import server

LOOPBACK = ("127.0.0.1", 0)


class Served:
    """A server on loopback while a test runs."""

    def __init__(self, test, words, key=None):
        self.server = server.serve(words, LOOPBACK, key)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        test.addCleanup(self.server.server_close)
        test.addCleanup(self.server.shutdown)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def ask(self, request, key="", path="/v1/chat/completions"):
        body = request if isinstance(request, bytes) else json.dumps(request).encode()
        asked = urllib.request.Request(self.url + path, data=body, headers={"authorization": f"Bearer {key}"})
        try:
            with urllib.request.urlopen(asked, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()


def user(text, before=(), stream=True):
    return {"model": "m", "stream": stream, "messages": [*before, {"role": "user", "content": text}]}


def events(body):
    return [line[6:] for line in body.decode().split("\n\n") if line.startswith("data: ")]


class Scripts(unittest.TestCase):
    def script(self, *rules, key=None):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = Path(folder, "scenario.json")
        file.write_text(json.dumps({"rules": list(rules)}))
        return Served(self, ["script", str(file)], key)

    def test_the_first_rule_that_fits_and_is_not_used_up_answers(self):
        served = self.script(
            {"when": {"user": "hello"}, "times": 1, "answer": {"text": "first"}},
            {"when": {"user": "hello", "turn": 0}, "answer": {"text": "then"}},
        )
        texts = [json.loads(served.ask(user("hello you", stream=False))[1]) for _ in range(3)]
        said = [text["choices"][0]["message"]["content"] for text in texts]
        self.assertEqual(said, ["first", "then", "then"])
        status, body = served.ask(user("bye"))
        self.assertEqual(status, 500)
        self.assertIn(b"no answer to this request", body)

    def test_a_call_comes_in_pieces_that_make_its_arguments(self):
        call = {"name": "bash", "arguments": {"command": "ls"}}
        served = self.script({"answer": {"text": "looking", "toolCalls": [call], "usage": [7, 3]}})
        said = events(served.ask(user("go"))[1])
        self.assertEqual(said[-1], "[DONE]")
        parts = [json.loads(part) for part in said[:-1]]
        deltas = [choice["delta"] for part in parts for choice in part["choices"]]
        text = "".join(delta.get("content", "") for delta in deltas)
        calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", [])]
        self.assertEqual(text, "looking")
        self.assertEqual(json.loads("".join(call["arguments"] for call in calls)), {"command": "ls"})
        self.assertEqual(parts[-1]["usage"]["total_tokens"], 10)

    def test_a_stream_can_be_cut_in_the_middle_of_a_chunk(self):
        served = self.script({"answer": {"text": "long enough", "cutAfter": 2}})
        with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
            served.ask(user("go"))

    def test_only_the_key_is_taken(self):
        served = self.script({"answer": {"text": "in"}}, key="right")
        self.assertEqual(served.ask(user("go"), key="wrong")[0], 401)
        self.assertEqual(served.ask(user("go"), key="right")[0], 200)

    def test_refusals_carry_their_headers_and_words(self):
        served = self.script({"answer": {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": "slow"}}})
        self.assertEqual(served.ask(user("go")), (429, b'{"error": "slow"}'))

    def test_a_mistake_in_a_scenario_is_named(self):
        with self.assertRaisesRegex(server.Mistake, "rule 0.*wen"):
            server.Script({"rules": [{"wen": {}, "answer": {}}]})
        with self.assertRaisesRegex(server.Mistake, "rules alone"):
            server.Script({"rule": []})

    def test_what_is_no_request_is_refused(self):
        served = self.script({"answer": {"text": "in"}})
        self.assertEqual(served.ask(b"[]")[0], 400)
        self.assertEqual(served.ask(user("go"), path="/v1/embeddings")[0], 404)


class Recordings(unittest.TestCase):
    def test_a_recorded_answer_is_given_again_byte_by_byte_without_the_endpoint(self):
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "scenario.json").write_text(json.dumps({"rules": [
            {"when": {"user": "ä"}, "answer": {"text": "schön \U0001f600", "reasoning": "hm"}},
            {"answer": error_answer()},
        ]}))
        endpoint = Served(self, ["script", str(folder / "scenario.json")])
        recorder = Served(self, ["record", str(folder / "kept.jsonl"), endpoint.url + "/v1"])
        asked = [user("ä"), user("other")]
        kept = [recorder.ask(request) for request in asked]
        self.assertEqual(kept, [endpoint.ask(request) for request in asked])
        replay = Served(self, ["replay", str(folder / "kept.jsonl")])
        reordered = json.dumps(dict(reversed(asked[0].items())), indent=2).encode()
        self.assertEqual([replay.ask(reordered), replay.ask(asked[1])], kept)
        status, body = replay.ask(user("never asked"))
        self.assertEqual(status, 404)
        self.assertIn(b"record it anew", body)

    def test_a_broken_line_is_named(self):
        with self.assertRaisesRegex(server.Mistake, "line 2"):
            server.Replay(['{"request": "a", "chunks": []}', "{}"])


def error_answer():
    return {"status": 400, "body": {"error": {"message": "no"}}}


if __name__ == "__main__":
    unittest.main()
