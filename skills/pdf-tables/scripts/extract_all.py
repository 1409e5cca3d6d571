#!/usr/bin/env python3
"""PDF files in, one CSV file per table and an index out: extract_all.py FILE-OR-FOLDER [--folder OUTPUTS]"""
import argparse
import contextlib
import io
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "functions"))
import extract  # noqa: E402
import list_files  # noqa: E402
import summary  # noqa: E402


def one(path, folder):
    """What `extract` gives, and why it gave nothing."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return extract.run({"file": path, "folder": folder}), None
    except SystemExit:
        return None, {"file": path, **json.loads(said.getvalue().splitlines()[-1])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("path")
    parser.add_argument("--folder", default="/mnt/user-data/outputs")
    given = parser.parse_args()
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    paths = [given.path]
    if Path(given.path).is_dir():
        paths = [file["path"] for file in list_files.run({"folder": given.path})["files"]]
    results = [one(path, given.folder) for path in paths]
    totals = summary.run({"files": [found for found, _ in results], "folder": given.folder})
    tables = [{"file": found["file"], **table} for found, _ in results if found for table in found["tables"]]
    print(json.dumps({**totals, "found": tables, "errors": [error for _, error in results if error]}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
