#!/usr/bin/env python3
"""A sheet in; grades.csv, summary.json and what is wrong out: grade.py SHEET.csv [--pass-mark 60] [--folder OUTPUTS]

Needs Python alone. Rational numbers are Fractions here and pairs of BigInt in math_validator.mjs; a test compares the two.
"""
import argparse
import contextlib
import io
import json
import operator
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "functions"))
import math_parser  # noqa: E402
import report  # noqa: E402
import split_sheet  # noqa: E402

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "neg": operator.neg,
             "^": lambda base, exponent: base ** int(exponent)}


def evaluate(tree):
    if isinstance(tree, str):
        return Fraction(tree)
    name, *operands = tree
    return OPERATORS[name](*map(evaluate, operands))


def check(row):
    """As math_validator; or why the row cannot be read."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parsed = math_parser.run(row)
        expected = str(evaluate(parsed["tree"]))
    except SystemExit:
        return None, json.loads(said.getvalue().splitlines()[-1])["message"]
    except ZeroDivisionError:
        return None, "the question divides by zero"
    given = parsed.get("answer")
    return {"id": row["id"], "student": row["student"], "expected": expected, "answer": given, "right": given == expected}, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sheet")
    parser.add_argument("--pass-mark", type=int, default=60, choices=range(101), metavar="0..100")
    parser.add_argument("--folder", default="/mnt/user-data/outputs")
    given = parser.parse_args()
    rows = split_sheet.run({"file": given.sheet})["rows"]
    results = [check(row) for row in rows]
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    made = report.run({"results": [result for result, _ in results if result], "rows": rows, "passMark": given.pass_mark,
                       "folder": given.folder})
    wrong = [{**row, "expected": result["expected"]} for row, (result, _) in zip(rows, results) if result and not result["right"]]
    unreadable = [{**row, "reason": reason} for row, (_, reason) in zip(rows, results) if reason]
    print(json.dumps({**made, "wrong": wrong, "unreadable": unreadable}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
