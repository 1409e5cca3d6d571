#!/usr/bin/env python3
"""Reads tender, matrix, gap list and draft again: check_bid.py CLAUSES.json FOLDER

Prints {"ok", "problems", "clauses", "mandatory_gaps"}; the exit code is 1 if there are problems.
"""
import csv
import json
import sys
from pathlib import Path

import docx

import tender

VIRTUAL = "/mnt/user-data/"


def read_csv(path, columns, problems):
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file)
            if table.fieldnames != columns:
                problems.append(f"{path.name}: the header is {','.join(table.fieldnames or [])}, it must be {','.join(columns)}")
                return []
            rows = list(table)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        problems.append(f"{path.name} cannot be read: {error}")
        return []
    ragged = [number for number, row in enumerate(rows, 2) if None in row or None in row.values()]
    problems += [f"{path.name}, row {number} has not the cells of the header" for number in ragged]
    return [] if ragged else rows


def key(clause):
    return clause["file"], tender.plain(clause["text"])


def check_clauses(record):
    """The tender itself says which clauses there are."""
    texts, asked = {}, set()
    for document in record["documents"]:
        path = Path(document["path"])
        if not path.is_file() or tender.sha256(path) != document["sha256"]:
            yield f"{document['file']} has changed or is gone since it was read: run read_tender.py again"
            return
        found = tender.paragraphs(path, [])
        texts[document["file"]] = tender.plain(" ".join(paragraph for _, paragraph in found))
        asked |= {(document["file"], tender.plain(one["text"])) for one in tender.requirements(found)}
    ids = [clause["id"] for clause in record["clauses"]]
    for name in sorted({name for name in ids if ids.count(name) > 1}):
        yield f"{name} stands twice in the clauses"
    for clause in record["clauses"]:
        if tender.plain(clause["text"]) not in texts.get(clause["file"], ""):
            yield f"{clause['id']}: {clause['file']} does not say {clause['text'][:60]!r}"
    for file, text in sorted(asked - set(map(key, record["clauses"]))):
        yield f"{file} asks {text[:60]!r}, which is no clause"


def check_evidence(row):
    place = row["evidence"].partition(",")[0].strip()
    if place.startswith(VIRTUAL):
        if not Path(place).is_file() or not Path(place).stat().st_size:
            yield f"{row['id']}: the evidence {place} is not there or empty"
    elif not place.startswith("fact:") and place:
        yield f"{row['id']}: evidence is {place[:60]!r}, allowed are a path below {VIRTUAL} and fact: ..."


def check_matrix(rows, gaps, clauses):
    found, listed = {row["id"]: row for row in rows}, {row["id"]: row for row in gaps}
    for expected in tender.rows(clauses, {}):
        row = found.get(expected["id"])
        if row is None:
            yield f"clause-matrix.csv lacks {expected['id']}"
        elif row["requirement"] != tender.safe(expected["requirement"]) or row["level"] != expected["level"]:
            yield f"clause-matrix.csv: {expected['id']} is not what the clauses say"
    for row in rows:
        status = row["status"]
        if status == tender.OPEN:
            yield f"{row['id']} ({row['level']}) has no answer"
        elif status not in tender.NEEDS:
            yield f"{row['id']}: status is {status!r}, allowed are {', '.join(tender.NEEDS)}"
        else:
            said = {**row, **{name: listed.get(row["id"], {}).get(name, "") for name in ("gap", "action")}}
            missing = [name for name in tender.NEEDS[status] if not said[name].strip()]
            if missing:
                yield f"{row['id']} is {status} and lacks {' and '.join(missing)}"
            yield from check_evidence(row)
        if (status in tender.INCOMPLETE) != (row["id"] in listed):
            yield f"{row['id']} is {status} and {'missing' if status in tender.INCOMPLETE else 'listed'} in gaps.csv"
    yield from (f"gaps.csv: {name} is no clause of the matrix" for name in listed if name not in found)


def check_draft(path, rows):
    try:
        document = docx.Document(str(path))
    except Exception as error:  # a damaged package makes the reader stumble over anything
        yield f"{path.name} cannot be opened: {type(error).__name__}"
        return
    texts = [paragraph.text for paragraph in document.paragraphs]
    whole, heads = "\n".join(texts), {text.split(" ")[0] for text in texts}
    for row in rows:
        if row["id"] not in heads:
            yield f"{path.name} lacks {row['id']}"
        elif row["response"] and row["response"].removeprefix("'") not in whole:
            yield f"{path.name} does not hold the response to {row['id']}"


def run(input):
    record, folder, problems = tender.load(input["clauses"], dict), Path(input.get("folder", "/mnt/user-data/outputs")), []
    rows = read_csv(folder / "clause-matrix.csv", tender.MATRIX, problems)
    gaps = read_csv(folder / "gaps.csv", tender.GAPS, problems)
    problems += check_clauses(record)
    if not problems or rows:
        problems += check_matrix(rows, gaps, record["clauses"])
        problems += check_draft(folder / "draft.docx", rows)
    mandatory = [row["id"] for row in gaps if row["level"] == "mandatory"]
    return {"ok": not problems, "problems": problems, "clauses": len(record["clauses"]), "mandatory_gaps": mandatory}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    verdict = run({"clauses": sys.argv[1], "folder": sys.argv[2]})
    print(json.dumps(verdict, indent=1, ensure_ascii=False))
    sys.exit(not verdict["ok"])
