"""One PDF in, one CSV file for each of its tables out."""
import csv
import json
import logging
import os
import re
import sys
from collections import defaultdict
from itertools import pairwise

import pdfplumber

logging.getLogger("pdfminer").setLevel(logging.ERROR)  # it logs every oddity of a font

MAX_PAGES = 200
NEAR = 2  # points; edges closer than this are one
LEADERS = re.compile(r"\s*(\s\.|\.\.)[. ]*$")  # "Arson . . . . ."
CAPTION = re.compile(r"(table|tabelle|tableau|tabla)\s*\w", re.IGNORECASE)


def fail(code, message):
    print(json.dumps({"code": code, "message": message}), file=sys.stderr)
    raise SystemExit(1)


def edges(page, orientation):
    return [edge for edge in page.edges if edge["orientation"] == orientation]


def rules(page):
    """Horizontal rules by their two ends: per height, where the pieces end that they are drawn of."""
    lines = defaultdict(list)
    for edge in edges(page, "h"):
        lines[round(edge["top"])].append((edge["x0"], edge["x1"]))
    found = defaultdict(dict)
    for top, pieces in lines.items():
        pieces.sort()
        while pieces:
            rule = [pieces.pop(0)]
            while pieces and pieces[0][0] <= max(right for _, right in rule) + NEAR:
                rule.append(pieces.pop(0))
            ends = {round(x) for piece in rule for x in piece}
            found[min(ends), max(ends)][top] = ends
    return found


def missing_sides(page, words):
    """Vertical lines where rules and their pieces end. Many tables are drawn without their outer lines, or with none
    at all between some columns, and would lose those."""
    drawn = edges(page, "v")
    for (left, right), heights in rules(page).items():
        for top, bottom in pairwise(sorted(heights)):
            middle = (top + bottom) / 2
            if bottom - top <= NEAR or not any(
                    left - NEAR <= edge["x0"] <= right + NEAR and edge["top"] <= middle <= edge["bottom"] for edge in drawn):
                continue
            between = [word for word in words if top < (word["top"] + word["bottom"]) / 2 < bottom]
            for x in heights[top] | heights[bottom]:
                if not any(word["x0"] + NEAR < x < word["x1"] - NEAR for word in between):
                    yield {"object_type": "line", "orientation": "v", "x0": x, "x1": x, "top": top, "bottom": bottom,
                           "width": 0, "height": bottom - top}


def clean(text):
    text = LEADERS.sub("", " ".join(text.split()))
    return text.replace(" ", "") if re.fullmatch(r"[\d,. ]+", text) else text


def cell_lines(words, box):
    """The lines of text in a cell: height and text, from top to bottom."""
    left, top, right, bottom = box
    lines = defaultdict(list)
    for word in words:
        if left <= (word["x0"] + word["x1"]) / 2 < right and top <= (word["top"] + word["bottom"]) / 2 < bottom:
            near = next((height for height in lines if abs(height - word["bottom"]) < NEAR + 1), word["bottom"])
            lines[near].append(word["text"])
    return [(height, clean(" ".join(parts))) for height, parts in sorted(lines.items())]


def split(cells):
    """Rows of a body that is ruled by columns only, or None. A line with text in the first column alone is the
    beginning of the label below it."""
    if sum(len(lines) >= 3 for lines in cells) < 2:
        return None
    rows = defaultdict(lambda: [""] * len(cells))
    for column, lines in enumerate(cells):
        for height, text in lines:
            near = next((known for known in rows if abs(known - height) < NEAR + 1), height)
            rows[near][column] = text
    found, begun = [], ""
    for _, row in sorted(rows.items()):
        if row[0] and not any(row[1:]):
            begun = f"{begun} {row[0]}".strip()
            continue
        found.append([f"{begun} {row[0]}".strip(), *row[1:]])
        begun = ""
    return found


def spread(row, boxes, verticals):
    """A heading over several columns counts for each of them."""
    known = [box for box in boxes if box]
    middle = (known[0][1] + known[0][3]) / 2
    bounds = {round(edge["x0"]) for edge in verticals if edge["top"] <= middle <= edge["bottom"]}
    bounds |= {round(known[0][0]), round(known[-1][2])}
    row = list(row)
    for left, right in pairwise(sorted(bounds)):
        inside = [column for column, box in enumerate(boxes)
                  if box and left - NEAR <= box[0] and box[2] <= right + NEAR]
        texts = {row[column] for column in inside} - {""}
        if len(inside) > 1 and len(texts) == 1:
            for column in inside:
                row[column] = next(iter(texts))
    return row


def grid(table, words, verticals):
    """Header and rows of a table, or None where it is none."""
    if len(table.rows) < 2 or len(table.rows[0].cells) < 2:
        return None
    boxes = [row.cells for row in table.rows]
    lines = [[cell_lines(words, box) if box else [] for box in row] for row in boxes]
    flat = [[" ".join(text for _, text in cell) for cell in row] for row in lines]
    bodies = [split(row) for row in lines]
    # Where one ruled row holds the whole body, all rows above it are headings; else the first row is.
    whole = next((number for number, rows in enumerate(bodies) if rows and number), None)
    if whole is None:
        headings, body = 1, flat[1:]
    else:
        headings, body = whole, bodies[whole] + flat[whole + 1:]
    cells = [cell for row in body for cell in row]
    if sum(map(bool, cells)) < len(cells) / 2:
        return None
    header = [spread(flat[number], boxes[number], verticals) for number in range(headings)]
    return [[" ".join(dict.fromkeys(filter(None, column))) for column in zip(*header)], *body]


def caption(page, table):
    """The last line above the table that calls itself a table."""
    above = page.crop((0, max(0, table.bbox[1] - 90), page.width, table.bbox[1]))
    found = [line["text"] for line in above.extract_text_lines() if CAPTION.match(line["text"])]
    return clean(found[-1]) if found else ""


def tables(page):
    words = page.extract_words()
    verticals = edges(page, "v")
    settings = {"vertical_strategy": "lines", "horizontal_strategy": "lines",
                "explicit_vertical_lines": list(missing_sides(page, words))}
    for table in page.find_tables(settings):
        if rows := grid(table, words, verticals):
            yield {"page": page.page_number, "caption": caption(page, table), "rows": rows}


def run(input):
    path, folder = input["file"], input.get("folder", "/mnt/user-data/outputs")
    name = os.path.splitext(os.path.basename(path))[0]
    try:
        document = pdfplumber.open(path)
    except OSError as error:
        fail("INPUT_VALIDATION_ERROR", f"cannot read {path}: {error.strerror}")
    except Exception as error:  # the parsers below raise whatever a damaged file makes them stumble over
        fail("NOT_A_PDF", f"{path} cannot be opened as a PDF: {type(error).__name__}")
    found = []
    with document:
        if len(document.pages) > MAX_PAGES:
            fail("INPUT_VALIDATION_ERROR", f"{path} has {len(document.pages)} pages; split it, at most {MAX_PAGES} are read")
        for page in document.pages:
            for table in tables(page):
                target = os.path.join(folder, f"{name}-{len(found) + 1}.csv")
                with open(target, "w", encoding="utf-8", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerows(table["rows"])
                found.append({"page": table["page"], "caption": table["caption"], "rows": len(table["rows"]) - 1,
                              "columns": len(table["rows"][0]), "csv": target})
            page.close()  # frees its parsed objects
        pages = len(document.pages)
    return {"file": os.path.basename(path), "pages": pages, "tables": found,
            "rows": sum(table["rows"] for table in found)}
