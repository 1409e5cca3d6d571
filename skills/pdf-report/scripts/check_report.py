#!/usr/bin/env python3
"""Looks at the pages of a report as a reader would: check_report.py REPORT.pdf [--render FOLDER]

Prints {"ok", "problems", "pages", "headings"}; the exit code is 1 if there are problems.
"""
import json
import re
import sys
from pathlib import Path

import pdfplumber
import pypdfium2

LINE = re.compile(r"(.+?)[\s.]*\s(\d+)")
MARGIN = 24  # points from the edge within which nothing is set
FOOTER = 45  # points from the lower edge: title and page number
TOUCH = 1.5  # points that two boxes may share; accents reach into the line above
LONGEST = 400  # characters of a title in the contents
MAX_RENDERED = 60


def squeezed(text):
    return re.sub(r"[\s.]+", "", text)


def outline(path):
    """(title, page number) of each bookmark, which is where the headings stand."""
    document = pypdfium2.PdfDocument(path)
    try:
        return [(mark.get_title(), mark.get_dest().get_index() + 1) for mark in document.get_toc() if mark.get_dest()]
    finally:
        document.close()


class Seen:
    """What the checks need of a page; the page itself takes megabytes."""

    def __init__(self, page, number, count):
        self.text = page.extract_text() or ""
        self.body = page.crop((0, 0, page.width, page.height - FOOTER)).extract_text() or ""
        self.problems = check_page(page, number, count)
        page.close()


def contents(pages, marks):
    """(text, page number) of each line of the contents; a title of several lines is put together."""
    first_heading = min((page for _, page in marks), default=len(pages) + 1)
    begun = ""
    for page in pages[1:first_heading - 1]:
        for line in page.body.splitlines():
            begun = f"{begun} {line}".strip()
            found = LINE.fullmatch(begun)
            if found:
                yield found[1], int(found[2])
            if found or begun == "Contents" or len(begun) > LONGEST:
                begun = ""


def check_contents(pages, marks):
    lines = list(contents(pages, marks))
    if not lines:
        yield "there is no contents page"
        return
    if [squeezed(title) for title, _ in lines] != [squeezed(title) for title, _ in marks]:
        yield f"the contents have {len(lines)} entries and the report {len(marks)} headings, or they differ"
    for (title, printed), (_, actual) in zip(lines, marks):
        if printed != actual:
            yield f"the contents say page {printed} for {title!r}, it stands on page {actual}"


def check_headings(pages, marks):
    for title, number in marks:
        if squeezed(title) not in squeezed(pages[number - 1].text):
            yield f"page {number} does not show its heading {title!r}"


def meet(one, other):
    return (min(one["x1"], other["x1"]) - max(one["x0"], other["x0"]) > TOUCH
            and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > TOUCH)


def overlaps(page):
    words = sorted(page.extract_words(), key=lambda word: word["top"])
    for number, word in enumerate(words):
        for other in words[number + 1:]:
            if other["top"] >= word["bottom"]:
                break
            if meet(word, other):
                yield f"{word['text']!r} and {other['text']!r} overlap"
        for image in page.images:
            if meet(word, image):
                yield f"{word['text']!r} stands on an image"
    for number, image in enumerate(page.images):
        if any(meet(image, other) for other in page.images[number + 1:]):
            yield "two images overlap"


def outside(page):
    for kind, things in (("text", page.chars), ("an image", page.images)):
        for thing in things:
            if (thing["x0"] < MARGIN or thing["x1"] > page.width - MARGIN or thing["top"] < MARGIN
                    or thing["bottom"] > page.height - MARGIN):
                yield f"{kind} stands in the margin or outside of the page"
                break


def check_page(page, number, count):
    problems = [*overlaps(page), *outside(page)]
    letters = {char["text"] for char in page.chars}
    if any(letter == "\ufffd" or letter.startswith("(cid:") for letter in letters):
        problems.append("letters without a shape")
    body = [char for char in page.chars if char["bottom"] < page.height - FOOTER]
    if not body and not page.images:
        problems.append("nothing on it")
    printed = [word["text"] for word in page.extract_words() if word["top"] > page.height - FOOTER]
    if number > 1 and str(number) not in printed:
        problems.append("its number is not printed on it")
    return [f"page {number} of {count}: {problem}" for problem in dict.fromkeys(problems)]


def render(path, folder):
    Path(folder).mkdir(parents=True, exist_ok=True)
    document = pypdfium2.PdfDocument(path)
    for number in range(min(len(document), MAX_RENDERED)):
        document[number].render(scale=1.4).to_pil().save(Path(folder) / f"page-{number + 1:02}.png")
    document.close()


def run(input):
    path = input["report"]
    try:
        marks = outline(path)
        with pdfplumber.open(path) as document:
            count = len(document.pages)
            pages = [Seen(page, number, count) for number, page in enumerate(document.pages, 1)]
    except Exception as error:  # the parsers raise whatever a damaged file makes them stumble over
        return {"ok": False, "problems": [f"{path} cannot be read as a PDF: {type(error).__name__}: {error}"], "pages": 0, "headings": 0}
    problems = [*check_contents(pages, marks), *check_headings(pages, marks)]
    problems += [problem for page in pages for problem in page.problems]
    if input.get("render"):
        render(path, input["render"])
    return {"ok": not problems, "problems": problems[:100], "pages": count, "headings": len(marks)}


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4) or (len(sys.argv) == 4 and sys.argv[2] != "--render"):
        sys.exit(__doc__)
    verdict = run({"report": sys.argv[1], "render": sys.argv[3] if len(sys.argv) == 4 else None})
    print(json.dumps(verdict, indent=1, ensure_ascii=False))
    sys.exit(not verdict["ok"])
