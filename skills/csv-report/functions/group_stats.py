"""One group in, its figures out."""
import csv
import json
import math
import statistics
import sys

Z = 1.959964  # 95%


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def plain(value):
    """One decimal, and a whole number without any: 50.0 would come back as 50 from the API server."""
    value = round(value, 1)
    return int(value) if value == int(value) else value


def wilson(yes, rows):
    """Both ends of the 95% interval of a share."""
    share = yes / rows
    centre = share + Z * Z / (2 * rows)
    reach = Z * math.sqrt(share * (1 - share) / rows + Z * Z / (4 * rows * rows))
    scale = 1 + Z * Z / rows
    return max(0.0, (centre - reach) / scale), min(1.0, (centre + reach) / scale)


def members(path, where):
    with open(path, encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if all(row[name] == cell for name, cell in where.items())]


def run(input):
    group, number = input["group"], input.get("number")
    rows = members(input["file"], group["where"])
    if not rows:
        fail("INPUT_VALIDATION_ERROR", f"no row is in the group {group['label']}")
    yes = sum(row[input["outcome"]] == "1" for row in rows)
    low, high = wilson(yes, len(rows))
    stats = {
        **group,
        "rows": len(rows),
        "positive": yes,
        "share": plain(100 * yes / len(rows)),
        "low": plain(100 * low),
        "high": plain(100 * high),
    }
    known = [float(row[number]) for row in rows if row[number]] if number else []
    if known:
        stats["median"] = plain(statistics.median(known))
        stats["known"] = len(known)
    return stats
