#!/usr/bin/env python3
"""Records a text that was fetched: save_source.py FOLDER --url URL --title TITLE [--published DATE]

FOLDER holds text.md; source.json with its digest is written beside it. The folder's name is the source's id.
"""
import argparse
import hashlib
import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path

ADDRESS = re.compile(r"https?://[^\s/?#]+\S*|file:\S.*")
SHORT = 200  # bytes; less is an error page or a cookie notice, no source


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def run(input):
    folder = Path(input["folder"])
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", folder.name):
        fail("INPUT_VALIDATION_ERROR", f"the folder's name {folder.name!r} becomes the source's id: allowed are a-z, 0-9 and -")
    if not ADDRESS.fullmatch(input["url"]):
        fail("INPUT_VALIDATION_ERROR", f"{input['url']!r} is no address: allowed are http, https and file:NAME")
    try:
        text = (folder / "text.md").read_bytes()
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"save the fetched text first: {folder / 'text.md'}: {error.strerror}")
    if len(text) < SHORT:
        fail("INPUT_VALIDATION_ERROR", f"{folder / 'text.md'} has {len(text)} bytes, a source has at least {SHORT}: fetch it again, or another one")
    source = {"id": folder.name, "url": input["url"], "title": input["title"], "published": input.get("published"),
              "fetched": datetime.now(timezone.utc).isoformat(timespec="seconds"), "bytes": len(text),
              "sha256": hashlib.sha256(text).hexdigest()}
    (folder / "source.json").write_text(json.dumps(source, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return source


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--url", required=True)
    parser.add_argument("--title", required=True)
    parser.add_argument("--published")
    print(json.dumps(run(vars(parser.parse_args())), ensure_ascii=False))
