#!/usr/bin/env python3
"""A CSV table in; report.pdf, summary.json and charts out: the skill's functions, one after the other."""
import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "functions"))
import charts  # noqa: E402
import clean  # noqa: E402
import group_stats  # noqa: E402
import groups  # noqa: E402
import report  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--outcome", required=True, help="the yes/no column")
    parser.add_argument("--positive", default="yes", help="the cell that means yes; default yes")
    parser.add_argument("--by", required=True, help="columns that divide, with commas between them")
    parser.add_argument("--number", help="a column of numbers")
    parser.add_argument("--limits", default="16,60", help="lower limits of the number's bands but the first; default 16,60")
    parser.add_argument("--title", required=True)
    parser.add_argument("--source", required=True, help="where the table is from")
    parser.add_argument("--cases", default="cases", help="what a row is, in the plural")
    parser.add_argument("--unit", help="unit of the number")
    parser.add_argument("--workspace", default="/mnt/user-data/workspace")
    parser.add_argument("--folder", default="/mnt/user-data/outputs")
    return parser.parse_args()


def main(given):
    number = {"number": given.number} if given.number else {}
    limits = [float(limit) for limit in given.limits.split(",")]
    Path(given.folder).mkdir(parents=True, exist_ok=True)
    cleaned = clean.run({"file": given.file, "outcome": given.outcome, "positive": given.positive, "limits": limits, **number,
                         "target": str(Path(given.workspace) / "clean.csv")})
    found = groups.run({"file": cleaned["file"], "by": given.by.split(",")})["groups"]
    stats = [group_stats.run({"file": cleaned["file"], "group": group, "outcome": given.outcome, **number}) for group in found]
    words = {"outcome": given.outcome, "cases": given.cases, "source": given.source, "folder": given.folder, "stats": stats, **number}
    if given.unit:
        words["unit"] = given.unit
    drawn = charts.run({"file": cleaned["file"], **words})["charts"]
    made = report.run({"title": given.title, "clean": cleaned, "charts": drawn, **words})
    print(json.dumps({**made, "dropped": cleaned["dropped"], "missing": cleaned["missing"], "groups": stats}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(arguments())
