"""A folder in, its PDF files out: the items of a forEach."""
import json
import re
import sys
from pathlib import Path

MAX_FILES = 1000


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def run(input):
    folder = Path(input.get("folder", "/mnt/user-data/uploads"))
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".pdf" and path.is_file())
    if not found:
        fail("INPUT_VALIDATION_ERROR", f"no PDF file is below {folder}")
    if len(found) > MAX_FILES:
        fail("INPUT_VALIDATION_ERROR", f"{len(found)} PDF files are below {folder}; at most {MAX_FILES} are taken at once")
    return {"files": [
        {
            "id": re.sub(r"[^a-z0-9]+", "-", str(path.relative_to(folder).with_suffix("")).lower()).strip("-"),
            "path": str(path),
            "bytes": path.stat().st_size,
        }
        for path in found
    ]}
