#!/usr/bin/env python3
"""Reads deck, article and chart again and compares every number with the fact table: check_pack.py FACTS.json FOLDER

Prints {"ok", "problems", "compared"}; the exit code is 1 if there are problems.
"""
import json
import re
import sys
from pathlib import Path

from PIL import Image, UnidentifiedImageError
from pptx import Presentation

import facts as table

NUMBER = re.compile(r"(?<![\w.,])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?!\d)(%?)")
ROW = re.compile(r"^\|\s*(.+?)\s*\|\s*(.+?)\s*\|\s*$")


def deck_parts(path):
    """(place, text) of all that can be read, ((place, label, number) of what stands in pairs)."""
    texts, pairs = [], []
    for number, slide in enumerate(Presentation(path).slides, 1):
        where = f"deck.pptx, slide {number}"
        for shape in slide.shapes:
            if shape.has_text_frame:
                texts.append((where, shape.text_frame.text))
            if shape.has_table:
                for row in shape.table.rows:
                    cells = [cell.text_frame.text for cell in row.cells]
                    texts.append((where, cells[-1]))
                    pairs.append((where, cells[0], cells[-1]))
            if shape.has_chart:
                plot = shape.chart.plots[0]
                for series in plot.series:
                    pairs += [(where, label, value) for label, value in zip(plot.categories, series.values)]
        if slide.has_notes_slide:
            texts.append((f"{where}, notes", slide.notes_slide.notes_text_frame.text))
    return texts, pairs


def article_parts(path):
    texts, pairs = [], []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where, row = f"article.md, line {number}", ROW.match(line)
        if row and row[2].strip("-: "):
            pairs.append((where, row[1], row[2]))
            line = row[2]
        texts.append((where, re.sub(r"^\s*\d+\.\s|\]\([^)]*\)", " ", line)))
    return texts, pairs


def chart_parts(path, facts):
    with Image.open(path) as image:
        shown = json.loads(image.info.get("Facts", "{}"))
    return [("chart.png", facts.label.get(name, name), text) for name, text in shown.items()]


class Check:
    def __init__(self, facts):
        self.facts, self.problems, self.compared = facts, [], 0
        self.allowed = set(facts.text.values()) | {facts.shown[name] for name in facts.shown if facts.unit[name] != "%"}
        head = facts.table
        free = [head["title"], head.get("subtitle", ""), head["source"], head["as_of"], *facts.label.values(),
                head["chart"]["title"], *(section["title"] for section in head["sections"])]
        self.free = set(map(str, head.get("literals", []))) | {match[0] for text in free for match in NUMBER.finditer(text)}
        self.phrases = sorted(filter(None, free), key=len, reverse=True)

    def texts(self, file, texts):
        seen = set()
        for where, text in texts:
            for phrase in self.phrases:
                text = text.replace(phrase, " ")
            for match in NUMBER.finditer(text):
                self.compared += 1
                seen.add(match[0].replace("−", "-"))
                if match[0].replace("−", "-") not in self.allowed | self.free:
                    self.problems.append(f"{where}: {match[0]} is no fact of the table")
        for name, number in self.facts.text.items():
            percent = self.facts.unit[name] == "%"
            if (number if percent else self.facts.shown[name]) not in seen:
                self.problems.append(f"{file} does not say {name}, {number}")

    def pairs(self, pairs):
        by_label = {self.facts.label[name]: name for name in self.facts.label}
        for where, label, found in pairs:
            self.compared += 1
            name = by_label.get(label)
            if name is None:
                self.problems.append(f"{where}: {label!r} is no fact of the table")
            elif found != (self.facts.text[name] if isinstance(found, str) else self.facts.values[name]):
                self.problems.append(f"{where}: {label} is {found}, the table says {self.facts.text[name]}")


def run(input):
    facts = table.read(input["facts"])
    folder, check = Path(input.get("folder", "/mnt/user-data/outputs")), Check(facts)
    for file, read in (("deck.pptx", deck_parts), ("article.md", article_parts)):
        try:
            texts, pairs = read(folder / file)
        except Exception as error:  # a damaged package makes the reader stumble over anything
            check.problems.append(f"{file} cannot be read: {type(error).__name__}: {error}")
            continue
        check.texts(file, texts)
        check.pairs(pairs)
    try:
        shown = chart_parts(folder / "chart.png", facts)
    except (OSError, ValueError, UnidentifiedImageError) as error:
        shown = []
        check.problems.append(f"chart.png cannot be read: {error}")
    check.pairs(shown)
    missing = {facts.label[name] for name in facts.table["chart"]["facts"]} - {label for _, label, _ in shown}
    check.problems += [f"chart.png does not say that it shows {label}" for label in sorted(missing)]
    return {"ok": not check.problems, "problems": check.problems, "compared": check.compared}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    verdict = run({"facts": sys.argv[1], "folder": sys.argv[2]})
    print(json.dumps(verdict, indent=1, ensure_ascii=False))
    sys.exit(not verdict["ok"])
