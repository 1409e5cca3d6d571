#!/usr/bin/env python3
"""A CSV file in, what is in it out: profile_table.py FILE"""
import json
import sys

import pandas as pd

TOP = 5  # most frequent cells that are shown
FEW_KINDS = 20  # a column with at most that many different cells divides rows into groups
YES_NO = [{"yes", "no"}, {"true", "false"}, {"y", "n"}, {"1", "0"}, {"ja", "nein"}, {"oui", "non"}]


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def separator(path):
    """The one that splits the header into most columns."""
    with open(path, encoding="utf-8-sig") as file:
        return max(",;\t|", key=file.readline().count)


def read(path):
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", sep=separator(path))
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error.strerror}")
    except ValueError as error:  # pandas' own ParserError and EmptyDataError, and bytes that are not UTF-8
        fail("INPUT_VALIDATION_ERROR", f"{path} is no CSV table: {error}")
    return table.apply(lambda column: column.str.strip())


def plain(number):
    return int(number) if number == int(number) else round(float(number), 4)


def column(cells):
    filled = cells[cells != ""]
    kinds = filled.nunique()
    found = {"empty": int((cells == "").sum()), "distinct": int(kinds)}
    numbers = pd.to_numeric(filled, errors="coerce")
    if not len(filled):
        return {"kind": "empty", **found}
    if {cell.lower() for cell in filled.unique()} in YES_NO:
        return {"kind": "yes/no", **found, "top": top(filled)}
    if numbers.notna().all():
        shown = {"min": numbers.min(), "median": numbers.median(), "mean": numbers.mean(), "max": numbers.max()}
        return {"kind": "number", **found, **{name: plain(value) for name, value in shown.items()}}
    bad = filled[numbers.isna()]
    if len(bad) <= 0.05 * len(filled):
        return {"kind": "almost numbers", **found, "not_numbers": bad.unique()[:3].tolist()}
    if kinds > FEW_KINDS and kinds >= 0.95 * len(filled):
        return {"kind": "identifier", **found, "example": filled.iloc[0][:80]}
    return {"kind": "category" if kinds <= FEW_KINDS else "text", **found, "top": top(filled)}


def top(filled):
    return {cell[:80]: int(count) for cell, count in filled.value_counts().head(TOP).items()}


def notes(table, columns):
    duplicates = int(table.duplicated().sum())
    if duplicates:
        yield f"{duplicates} rows repeat another row"
    for name, found in columns.items():
        if found["kind"] == "empty":
            yield f"{name} is empty in every row"
        elif found["empty"]:
            yield f"{name} is empty in {found['empty']} rows ({100 * found['empty'] / len(table):.1f}%)"
        if found["distinct"] == 1:
            yield f"{name} has one value only"
        if "not_numbers" in found:
            yield f"{name} holds numbers but for {found['not_numbers']}"
    for kind, use in (("yes/no", "outcomes"), ("category", "groups"), ("number", "measures"), ("identifier", "names, not groups")):
        names = [name for name, found in columns.items() if found["kind"] == kind]
        if names:
            yield f"{use}: {', '.join(names)}"


def run(input):
    table = read(input["file"])
    if table.empty:
        fail("INPUT_VALIDATION_ERROR", f"{input['file']} has no rows below its header")
    columns = {name: column(table[name]) for name in table.columns}
    return {"file": input["file"], "rows": len(table), "columns": columns, "notes": list(notes(table, columns))}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(json.dumps(run({"file": sys.argv[1]}), indent=1, ensure_ascii=False))
