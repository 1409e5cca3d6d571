"""Answer sheet in, rows out."""
import csv
import io
import json
import sys

NEEDED = ("student", "question", "answer")
MAX_ROWS = 10_000  # a forEach takes no more items


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def read(path):
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        fail("INPUT_VALIDATION_ERROR", f"{path} is not UTF-8: byte {error.start}")
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error.strerror}")


def separator(header):
    """The separator that splits the header into most columns."""
    return max(",;\t", key=header.count)


def rows(text):
    reader = csv.DictReader(io.StringIO(text), delimiter=separator(text.partition("\n")[0]), skipinitialspace=True)
    columns = [(name or "").strip().lower() for name in reader.fieldnames or []]
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        fail("INPUT_VALIDATION_ERROR", f"the sheet has the columns {columns} and lacks {missing}")
    reader.fieldnames = columns
    for number, cells in enumerate(reader, 1):
        row = {name: (cells.get(name) or "").strip() for name in NEEDED}
        yield {"id": (cells.get("id") or "").strip() or f"r{number}", **row}


def run(input):
    found, seen = [], set()
    for row in rows(read(input["file"])):
        if not any(row[name] for name in NEEDED):
            continue
        if not row["student"] or not row["question"]:
            fail("INPUT_VALIDATION_ERROR", f"row {row['id']} has no student or no question")
        if row["id"] in seen:
            fail("INPUT_VALIDATION_ERROR", f"the id {row['id']} stands in two rows")
        seen.add(row["id"])
        found.append(row)
        if len(found) > MAX_ROWS:
            fail("INPUT_VALIDATION_ERROR", f"the sheet has more than {MAX_ROWS} rows; split it into several files")
    return {"rows": found}
