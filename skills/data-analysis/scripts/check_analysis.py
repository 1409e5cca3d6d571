#!/usr/bin/env python3
"""Does report.md say what summary.json says, and is that complete? check_analysis.py FOLDER

Prints {"ok", "problems", "numbers"}; the exit code is 1 if there are problems.
"""
import hashlib
import json
import re
import sys
from pathlib import Path

from PIL import Image, UnidentifiedImageError

NUMBER = re.compile(r"(?<![\w.,/-])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w/]|\.\d)")
NO_PROSE = re.compile(r"`[^`]*`|!\[[^\]]*\]\([^)]*\)|\]\([^)]*\)|^\s*\d+\.\s|\b95\s?%\s+(?:confidence\s+)?intervals?", re.M)
NEEDED = {"question": str, "data": list, "findings": list, "limits": list, "charts": list}


def numbers(text):
    """(as written, value, decimals) of each number in prose."""
    for match in NUMBER.finditer(NO_PROSE.sub(" ", text)):
        written = match[0].replace(",", "").replace("−", "-")
        yield match[0], float(written), len(written.partition(".")[2])


def leaves(value):
    """All numbers in a JSON value."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield float(value)
    elif isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)


def is_known(value, decimals, known):
    """A text may leave the sign to its words: 12.3 points less."""
    return any(abs(round(abs(figure), decimals) - abs(value)) < 1e-9 for figure in known)


def unknown(text, known):
    return [written for written, value, decimals in numbers(text) if not is_known(value, decimals, known)]


def shape(summary):
    for key, kind in NEEDED.items():
        if not isinstance(summary.get(key), kind):
            yield f"summary.json has no {key} of type {kind.__name__}"
        elif not summary[key]:
            yield f"summary.json: {key} is empty"


def findings(summary, context):
    for number, finding in enumerate(summary["findings"], 1):
        if not isinstance(finding, dict) or not finding.get("statement") or not finding.get("figures"):
            yield f"finding {number} needs a statement and figures"
            continue
        known = [*leaves(finding["figures"]), *context]
        for written in unknown(finding["statement"], known):
            yield f"finding {number} says {written}, which is none of its figures"


def sources(summary):
    for table in summary["data"]:
        path = Path(table.get("file", ""))
        if not path.is_file():
            yield f"the data file {path} is not there"
        elif hashlib.sha256(path.read_bytes()).hexdigest() != table.get("sha256"):
            yield f"{path} has changed since the analysis: run the script again"


def charts(summary, folder, report):
    for name in summary["charts"]:
        try:
            with Image.open(folder / name) as image:
                colours = image.convert("RGB").getcolors(maxcolors=image.width * image.height)
                small = image.width < 400
        except (OSError, UnidentifiedImageError):
            yield f"the chart {name} is no image in {folder}"
            continue
        if small or len(colours) < 3:
            yield f"the chart {name} is smaller than 400 pixels or empty"
        if f"]({name})" not in report:
            yield f"report.md does not show the chart {name}"


def run(input):
    folder = Path(input.get("folder", "/mnt/user-data/outputs"))
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        report = (folder / "report.md").read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        return {"ok": False, "problems": [f"summary.json and report.md must be readable in {folder}: {error}"], "numbers": 0}
    problems = list(shape(summary)) if isinstance(summary, dict) else ["summary.json is no object"]
    if not problems:
        context = list(leaves(summary.get("context", [])))
        problems += [*findings(summary, context), *sources(summary), *charts(summary, folder, report)]
        known = [*leaves(summary["findings"]), *leaves(summary["data"]), *context]
        known += [value for text in [summary["question"], *summary["limits"]] for _, value, _ in numbers(str(text))]
        problems += [f"report.md says {written}, which is no figure of summary.json" for written in unknown(report, known)]
    return {"ok": not problems, "problems": problems, "numbers": len(list(numbers(report)))}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    verdict = run({"folder": sys.argv[1]})
    print(json.dumps(verdict, indent=1, ensure_ascii=False))
    sys.exit(not verdict["ok"])
