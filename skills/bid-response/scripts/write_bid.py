#!/usr/bin/env python3
"""Clauses and answers in; draft.docx, clause-matrix.csv and gaps.csv out:
write_bid.py CLAUSES.json ANSWERS.json... [--to FOLDER] [--title TITLE]"""
import argparse
import json
from collections import Counter
from itertools import groupby
from pathlib import Path

import docx
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from docx.shared import Cm, Pt, RGBColor

import tender

STATUSES = [*tender.NEEDS, tender.OPEN]
MUTED = RGBColor(0x6B, 0x76, 0x83)


def answers(paths, known):
    """All answers; a clause that two files answer, or that there is not, is a mistake."""
    found = {}
    for path in paths:
        for name, answer in tender.load(path, dict).items():
            if name not in known:
                tender.fail("INPUT_VALIDATION_ERROR", f"{path} answers {name}, which is no clause")
            if name in found:
                tender.fail("INPUT_VALIDATION_ERROR", f"{path} answers {name} a second time")
            if not isinstance(answer, dict) or answer.get("status") not in tender.NEEDS:
                status = answer.get("status") if isinstance(answer, dict) else answer
                tender.fail("INPUT_VALIDATION_ERROR", f"{path}: status of {name} is {status!r}, allowed are {', '.join(tender.NEEDS)}")
            found[name] = {key: answer[key] for key in ("status", "response", "evidence", "gap", "action", "owner") if key in answer}
    return found


def field(paragraph, instruction):
    """A field that the word processor works out, such as the page number."""
    run = paragraph.add_run()
    for kind, text in (("begin", None), (None, instruction), ("end", None)):
        element = OxmlElement("w:fldChar" if kind else "w:instrText")
        if kind:
            element.set(qn("w:fldCharType"), kind)
        else:
            element.text = text
        run._r.append(element)


def clean(text):
    """Without characters that XML cannot hold."""
    return "".join(letter for letter in str(text) if letter in "\n\t" or ord(letter) >= 32)


class Draft:
    def __init__(self, title):
        self.file = docx.Document()
        self.file.core_properties.title, self.file.core_properties.author = clean(title), ""
        section = self.file.sections[0]
        section.page_width, section.page_height = Cm(21), Cm(29.7)
        section.left_margin = section.right_margin = Cm(2.3)
        self.file.styles["Normal"].font.name, self.file.styles["Normal"].font.size = "Calibri", Pt(10.5)
        footer = section.footer.paragraphs[0]
        footer.alignment = WD_ALIGN_PARAGRAPH.RIGHT
        field(footer, "PAGE")
        self.file.add_heading(clean(title), 0)

    def table(self, head, rows, widths):
        table = self.file.add_table(rows=1, cols=len(head), style="Light Grid Accent 1")
        table.autofit = False
        for column, width in zip(table.columns, widths):
            column.width = Cm(width)
        mark = OxmlElement("w:tblHeader")  # the head is repeated on each page
        mark.set(qn("w:val"), "true")
        table.rows[0]._tr.get_or_add_trPr().append(mark)
        for cells in [head, *rows]:
            row = table.rows[0] if cells is head else table.add_row()
            for place, text in enumerate(cells):
                row.cells[place].width = Cm(widths[place])
                row.cells[place].text = clean(text)
                for run in row.cells[place].paragraphs[0].runs:
                    run.font.size = Pt(9)

    def labelled(self, label, text):
        paragraph = self.file.add_paragraph()
        paragraph.paragraph_format.space_after = Pt(3)
        paragraph.add_run(f"{label}: ").bold = True
        paragraph.add_run(clean(text))

    def clause(self, row):
        head = self.file.add_paragraph()
        head.paragraph_format.space_before, head.paragraph_format.keep_with_next = Pt(8), True
        head.add_run(row["id"]).bold = True
        place = ", ".join(filter(None, [row["section"] and f"section {row['section']}", row["page"] and f"page {row['page']}"]))
        run = head.add_run(f"   {row['level']}, {row['status']}" + (f"   ({place})" if place else ""))
        run.font.color.rgb, run.font.size = MUTED, Pt(9)
        quote = self.file.add_paragraph(clean(row["requirement"]), style="Intense Quote")
        quote.paragraph_format.keep_with_next = True
        quote.paragraph_format.space_before = quote.paragraph_format.space_after = Pt(3)
        for label in ("response", "evidence", "gap", "action"):
            if row.get(label):
                self.labelled(label.capitalize(), row[label])
        if row["status"] == tender.OPEN:
            self.labelled("Response", "not answered yet")


def write_draft(path, title, rows):
    draft = Draft(title)
    draft.file.add_heading("Compliance at a glance", 1)
    counts = Counter((row["level"], row["status"]) for row in rows)
    draft.table(["Level", *STATUSES], [[level, *(str(counts[level, status]) for status in STATUSES)] for level in tender.LEVELS],
                [3.4, *[2.6] * len(STATUSES)])
    missing = [row for row in rows if row["status"] in tender.INCOMPLETE]
    text = f"{len(rows)} requirements; {len(missing)} of them are not fully met yet, {sum(row['level'] == 'mandatory' for row in missing)} of these mandatory."
    draft.file.add_paragraph(text).paragraph_format.space_before = Pt(8)
    for file, part in groupby(rows, key=lambda row: row["file"]):
        draft.file.add_heading(clean(file), 1)
        for section, inner in groupby(part, key=lambda row: row["section"].split(".")[0] if row["section"] else ""):
            draft.file.add_heading(f"Section {section}" if section else "General", 2)
            for row in inner:
                draft.clause(row)
    draft.file.add_heading("What is missing", 1)
    if missing:
        draft.table(["Clause", "Level", "Gap", "Action", "Owner"],
                    [[row["id"], row["level"], row.get("gap", ""), row.get("action", ""), row.get("owner", "")] for row in missing],
                    [1.8, 2.4, 5.2, 4.8, 2.2])
    else:
        draft.file.add_paragraph("Nothing: every requirement is met.")
    draft.file.save(path)


def run(input):
    clauses = tender.load(input["clauses"], dict)["clauses"]
    known = {clause["id"] for clause in clauses}
    rows = list(tender.rows(clauses, answers(input["answers"], known)))
    folder = Path(input.get("to", "/mnt/user-data/outputs"))
    folder.mkdir(parents=True, exist_ok=True)
    missing = [row for row in rows if row["status"] in tender.INCOMPLETE]
    tender.write_csv(folder / "clause-matrix.csv", tender.MATRIX, rows)
    tender.write_csv(folder / "gaps.csv", tender.GAPS, missing)
    write_draft(folder / "draft.docx", input.get("title", "Response to the tender"), rows)
    counts = Counter(row["status"] for row in rows)
    return {"clauses": len(rows), "statuses": {status: counts[status] for status in STATUSES}, "gaps": len(missing),
            "files": [str(folder / name) for name in ("clause-matrix.csv", "draft.docx", "gaps.csv")]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("clauses")
    parser.add_argument("answers", nargs="+")
    parser.add_argument("--to", default="/mnt/user-data/outputs")
    parser.add_argument("--title", default="Response to the tender")
    print(json.dumps(run(vars(parser.parse_args())), indent=1, ensure_ascii=False))
