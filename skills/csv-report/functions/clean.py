"""Any CSV in, a table that the other functions can rely on out."""
import json
import sys

import pandas as pd


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def read(path, needed):
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error.strerror}")
    except ValueError as error:  # pandas' own ParserError and EmptyDataError, and bytes that are not UTF-8
        fail("INPUT_VALIDATION_ERROR", f"{path} is no CSV table: {error}")
    table.columns = [name.strip() for name in table.columns]
    missing = [name for name in needed if name not in table.columns]
    if missing:
        fail("INPUT_VALIDATION_ERROR", f"the table has the columns {list(table.columns)} and lacks {missing}")
    return table.apply(lambda column: column.str.strip())


def band_labels(limits):
    """[16, 60] gives under 16, 16–59, 60 and over."""
    between = [f"{low:g}–{high - 1:g}" for low, high in zip(limits, limits[1:])]
    return [f"under {limits[0]:g}", *between, f"{limits[-1]:g} and over"]


def add_bands(table, number, limits):
    values = pd.to_numeric(table[number], errors="coerce")
    edges = [float("-inf"), *limits, float("inf")]
    bands = pd.cut(values, edges, right=False, labels=band_labels(limits))
    table[f"{number}_band"] = bands.astype(object).where(values.notna(), "")
    table[number] = table[number].where(values.notna(), "")


def run(input):
    outcome, number = input["outcome"], input.get("number")
    table = read(input["file"], [outcome, *([number] if number else [])])
    found = len(table)
    table = table[table[outcome] != ""].drop_duplicates()
    if table.empty:
        fail("INPUT_VALIDATION_ERROR", f"no row of {input['file']} says anything in the column {outcome}")
    table[outcome] = (table[outcome].str.lower() == input.get("positive", "yes").lower()).astype(int)
    if number:
        add_bands(table, number, input.get("limits") or [16, 60])
    target = input.get("target", "/mnt/user-data/workspace/clean.csv")
    table.to_csv(target, index=False, lineterminator="\n")
    empty = (table == "").sum()
    return {
        "file": target,
        "rows": len(table),
        "dropped": found - len(table),
        "missing": {name: int(count) for name, count in empty.items() if count},
        "columns": list(table.columns),
    }
