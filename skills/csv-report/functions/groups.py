"""Cleaned table in, its groups out: the items of a forEach."""
import csv
import json
import re
import sys

MAX_GROUPS = 100  # more make no readable chart


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def run(input):
    by, names = input["by"], input.get("names", {})
    with open(input["file"], encoding="utf-8", newline="") as file:
        table = csv.DictReader(file)
        missing = [name for name in by if name not in table.fieldnames]
        if missing:
            fail("INPUT_VALIDATION_ERROR", f"the table has the columns {table.fieldnames} and lacks {missing}")
        found = {tuple(row[name] for name in by) for row in table}
    complete = sorted(cells for cells in found if all(cells))
    if len(complete) > MAX_GROUPS:
        fail("INPUT_VALIDATION_ERROR", f"{by} make {len(complete)} groups; choose columns that make at most {MAX_GROUPS}")
    return {"groups": [
        {
            "id": re.sub(r"[^a-z0-9]+", "-", "-".join(cells).lower()).strip("-"),
            "label": ", ".join(names.get(cell, cell) for cell in cells),
            "where": dict(zip(by, cells)),
        }
        for cells in complete
    ]}
