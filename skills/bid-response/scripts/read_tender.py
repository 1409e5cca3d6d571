#!/usr/bin/env python3
"""Tender documents in, clauses.json out: read_tender.py FILE... --to CLAUSES.json"""
import argparse
import json
from collections import Counter
from pathlib import Path

import tender


def run(input):
    clauses, documents, problems = [], [], []
    for path in map(Path, input["files"]):
        found = tender.paragraphs(path, problems)
        asked = list(tender.requirements(found))
        documents.append({"file": path.name, "path": str(path.resolve()), "sha256": tender.sha256(path), "paragraphs": len(found)})
        clauses += [{"file": path.name, **one} for one in asked]
        if not asked:
            problems.append(f"{path.name} asks for nothing that could be found by its words: read it yourself")
    names = [document["file"] for document in documents]
    if len(set(names)) < len(names):
        tender.fail("INPUT_VALIDATION_ERROR", f"two documents have one name: {names}")
    width = max(3, len(str(len(clauses))))
    clauses = [{"id": f"C{number:0{width}}", **clause} for number, clause in enumerate(clauses, 1)]
    tender.save(input["to"], {"documents": documents, "clauses": clauses})
    counts = Counter(clause["level"] for clause in clauses)
    return {"to": input["to"], "documents": len(documents), "clauses": len(clauses),
            "levels": {level: counts[level] for level in tender.LEVELS}, "problems": problems}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--to", default="/mnt/user-data/workspace/clauses.json")
    print(json.dumps(run(vars(parser.parse_args())), indent=1, ensure_ascii=False))
