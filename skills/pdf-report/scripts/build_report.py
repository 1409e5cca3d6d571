#!/usr/bin/env python3
"""A description in, a typeset report out: build_report.py DESCRIPTION.md|.json REPORT.pdf"""
import json
import os
import re
import sys
import tempfile
from xml.sax.saxutils import escape

import matplotlib
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (BaseDocTemplate, CondPageBreak, Frame, Image, KeepTogether, ListFlowable, NextPageTemplate,
                                PageBreak, PageTemplate, Paragraph, Preformatted, Spacer, Table, TableStyle)
from reportlab.platypus.tableofcontents import TableOfContents

import description
import drawing

INK, MUTED, GRID, ACCENT, PALE = (colors.HexColor(code) for code in ("#1f2933", "#6b7683", "#d5dbe1", "#0b6e99", "#f4f6f8"))
SIDE, TOP, BOTTOM = 20 * mm, 22 * mm, 20 * mm
WIDTH, HIGHEST = A4[0] - 2 * SIDE, 190 * mm
CHAPTER = 110 * mm  # what must be left of a page for a chapter to begin on it
CODE_COLUMNS = 92  # letters of a line of code
PADDING = 13  # points that a cell needs besides its text
FACES = {"Sans": "DejaVuSans", "Sans-Bold": "DejaVuSans-Bold", "Sans-Italic": "DejaVuSans-Oblique",
         "Sans-BoldItalic": "DejaVuSans-BoldOblique", "Mono": "DejaVuSansMono"}
INLINE = [  # what Markdown marks, once < > & are safe
    (re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*"), r"<b>\1</b>"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*]+?)(?<=\S)\*(?![\w*])"), r"<i>\1</i>"),
    (re.compile(r"\[([^\]]+)\]\((https?://[^\s)\"]+)\)"), r'<link href="\2" color="#0b6e99">\1</link>'),
]


def fonts():
    """matplotlib brings fonts with more letters than PDF's own."""
    folder = os.path.join(matplotlib.get_data_path(), "fonts", "ttf")
    for name, file in FACES.items():
        pdfmetrics.registerFont(TTFont(name, os.path.join(folder, f"{file}.ttf")))
    pdfmetrics.registerFontFamily("Sans", "Sans", "Sans-Bold", "Sans-Italic", "Sans-BoldItalic")


def styles():
    def style(name, size, lead, font="Sans", color=INK, **more):
        return ParagraphStyle(name, fontName=font, fontSize=size, leading=lead, textColor=color, **more)

    return {
        "title": style("title", 26, 33, "Sans-Bold"), "subtitle": style("subtitle", 14, 20, color=MUTED, spaceBefore=4 * mm),
        "cover": style("cover", 10, 15, color=MUTED),
        "plain": style("plain", 17, 23, "Sans-Bold", spaceAfter=5 * mm),
        "chapter": style("chapter", 17, 23, "Sans-Bold", spaceBefore=10 * mm, spaceAfter=5 * mm),
        "section": style("section", 12, 17, "Sans-Bold", spaceBefore=5 * mm, spaceAfter=2 * mm),
        "text": style("text", 9.5, 14.5, spaceAfter=2.5 * mm, allowWidows=0, allowOrphans=0),
        "cell": style("cell", 8.5, 11.5), "number": style("number", 8.5, 11.5, alignment=TA_RIGHT),
        "caption": style("caption", 8.5, 12, color=MUTED),
        "code": style("code", 7.6, 10.5, "Mono", backColor=PALE, borderPadding=5, spaceBefore=2.5 * mm, spaceAfter=4.5 * mm),
        "contents0": style("contents0", 10.5, 15, "Sans-Bold", spaceBefore=2.2 * mm),
        "contents1": style("contents1", 9.5, 14, leftIndent=6 * mm),
    }


def inline(text):
    """Markdown's marks as reportlab's; what stands in `code` keeps its stars."""
    parts = []
    for number, part in enumerate(str(text).split("`")):
        part = escape(part)
        if number % 2:
            parts.append(f'<font name="Mono" size="-1">{part}</font>')
            continue
        for pattern, mark in INLINE:
            part = pattern.sub(mark, part)
        parts.append(part)
    return "".join(parts)


def is_number(cell):
    return re.fullmatch(r"[-+−–]?[\d,. ]*\d[\d,. ]*(?: ?%)?|[–-]|", str(cell).strip()) is not None


def column_widths(columns, rows):
    """Room by the longest cell, but none so narrow that its longest word breaks, as far as the page goes."""
    def size(text):
        return pdfmetrics.stringWidth(str(text), "Sans-Bold", 8.5)

    needs, words = [], []
    for number, name in enumerate(columns):
        texts = [str(name), *(str(row[number]) for row in rows)]
        needs.append(min(max(map(size, texts)), WIDTH * 0.6) + PADDING)
        words.append(min(max(size(word) for text in texts for word in (text.split() or [""])), WIDTH / len(columns)) + PADDING)
    if sum(needs) <= WIDTH:
        return [need * WIDTH / sum(needs) for need in needs]
    spare, wanted = max(0, WIDTH - sum(words)), sum(need - word for need, word in zip(needs, words) if need > word) or 1
    widths = [word + spare * max(0, need - word) / wanted for need, word in zip(needs, words)]
    return [width * WIDTH / sum(widths) for width in widths]


class Document(BaseDocTemplate):
    """Tells contents and outline on which page each heading came to stand."""

    def __init__(self, path, report):
        super().__init__(path, pagesize=A4, leftMargin=SIDE, rightMargin=SIDE, topMargin=TOP, bottomMargin=BOTTOM,
                         title=report["title"], author=report.get("author", ""), subject=report.get("subtitle", ""))
        self.head = report["title"]
        frame = Frame(SIDE, BOTTOM, WIDTH, A4[1] - TOP - BOTTOM, leftPadding=0, rightPadding=0, topPadding=0, bottomPadding=0)
        self.addPageTemplates([PageTemplate("cover", [frame]), PageTemplate("page", [frame], onPage=self.running)])

    def running(self, canvas, _document):
        canvas.saveState()
        canvas.setFont("Sans", 7.5)
        canvas.setFillColor(MUTED)
        head = self.head if len(self.head) <= 90 else self.head[:89] + "…"
        canvas.drawString(SIDE, 11 * mm, head)
        canvas.drawRightString(A4[0] - SIDE, 11 * mm, str(canvas.getPageNumber()))
        canvas.restoreState()

    def afterFlowable(self, flowable):
        if (level := getattr(flowable, "level", None)) is None:
            return
        key = f"heading-{flowable.number}"
        self.canv.bookmarkPage(key)
        self.canv.addOutlineEntry(flowable.plain, key, level, closed=level > 0)
        self.notify("TOCEntry", (level, escape(flowable.plain), self.page, key))


class Story:
    """Turns blocks into what reportlab sets."""

    def __init__(self, folder):
        self.style, self.folder = styles(), folder
        self.flow, self.headings, self.figures, self.tables = [], 0, 0, 0

    def add(self, *parts):
        self.flow.extend(parts)

    def heading(self, number, title, level):
        text = f"{number} {title}".strip()
        paragraph = Paragraph(inline(text), self.style["section" if level else "chapter"])
        paragraph.level, paragraph.plain, paragraph.number = level, text, self.headings
        self.headings += 1
        self.add(*([CondPageBreak(35 * mm)] if level else []), paragraph)

    def caption(self, kind, text):
        count = self.figures if kind == "Figure" else self.tables
        return Paragraph(f"<b>{kind} {count}</b>  {inline(text)}", self.style["caption"])

    def blocks(self, blocks, number):
        sections = 0
        for block in blocks:
            (kind, value), = block.items()
            if kind == "heading":
                sections += 1
                self.heading(f"{number}.{sections}" if number else "", value, 1)
            else:
                getattr(self, kind)(value)

    def text(self, value):
        self.add(Paragraph(inline(value), self.style["text"]))

    def bullets(self, value, kind="bullet", **more):
        items = [Paragraph(inline(item), self.style["text"]) for item in value]
        self.add(ListFlowable(items, bulletType=kind, bulletFontName="Sans", bulletFontSize=9, bulletColor=ACCENT,
                              leftIndent=6 * mm, **more), Spacer(1, 1 * mm))

    def numbered(self, value):
        self.bullets(value, "1", bulletFormat="%s.")

    def code(self, value):
        lines = [line[start:start + CODE_COLUMNS] for line in value.expandtabs(4).split("\n")
                 for start in range(0, max(len(line), 1), CODE_COLUMNS)]
        self.add(Preformatted("\n".join(lines), self.style["code"]))

    def page_break(self, value):
        if value:
            self.add(PageBreak())

    def image(self, value):
        width, height = ImageReader(value["path"]).getSize()
        scale = min(WIDTH / width, HIGHEST / height)
        self.figures += 1
        self.add(KeepTogether([Spacer(1, 2 * mm), Image(value["path"], width * scale, height * scale), Spacer(1, 1 * mm),
                               self.caption("Figure", value.get("caption", "")), Spacer(1, 4 * mm)]))

    def chart(self, value):
        path = os.path.join(self.folder, f"chart-{self.figures}.png")
        drawing.draw(value, path)
        self.image({"path": path, "caption": value.get("title", "")})

    def table(self, value):
        columns, rows = value["columns"], value["rows"]
        right = [all(is_number(row[place]) for row in rows) for place in range(len(columns))]

        def line(cells, mark=("", "")):
            return [Paragraph(mark[0] + inline(cell) + mark[1], self.style["number" if right[place] else "cell"])
                    for place, cell in enumerate(cells)]

        table = Table([line(columns, ("<b>", "</b>")), *map(line, rows)], colWidths=column_widths(columns, rows), repeatRows=1)
        table.setStyle(TableStyle([
            ("VALIGN", (0, 0), (-1, -1), "TOP"), ("LINEBELOW", (0, 0), (-1, 0), 0.9, INK), ("LINEBELOW", (0, 1), (-1, -1), 0.4, GRID),
            ("LEFTPADDING", (0, 0), (-1, -1), 6), ("RIGHTPADDING", (0, 0), (-1, -1), 6), ("TOPPADDING", (0, 0), (-1, -1), 3),
            ("BOTTOMPADDING", (0, 0), (-1, -1), 3),
        ]))
        self.tables += 1
        caption = self.caption("Table", value.get("caption", ""))
        caption.keepWithNext = True
        parts = [CondPageBreak(40 * mm), Spacer(1, 2 * mm), caption, Spacer(1, 1.5 * mm), table, Spacer(1, 5 * mm)]
        self.add(*([KeepTogether(parts[1:])] if len(rows) <= 12 else parts))


def letters(number):
    """0 is A, 25 is Z, 26 is AA."""
    return (letters(number // 26 - 1) if number >= 26 else "") + chr(ord("A") + number % 26)


def story(report, folder):
    made = Story(folder)
    style = made.style
    made.add(Spacer(1, 70 * mm), Paragraph(escape(report["title"]), style["title"]))
    if report.get("subtitle"):
        made.add(Paragraph(escape(report["subtitle"]), style["subtitle"]))
    made.add(Spacer(1, 12 * mm))
    made.add(*(Paragraph(escape(str(report[key])), style["cover"]) for key in ("author", "date") if report.get(key)))
    contents = TableOfContents(levelStyles=[style["contents0"], style["contents1"]], dotsMinLevel=0, rightColumnWidth=12 * mm)
    made.add(NextPageTemplate("page"), PageBreak(), Paragraph("Contents", style["plain"]), contents)
    if report["summary"]:
        made.add(PageBreak())
        made.heading("", "Summary", 0)
        made.blocks(report["summary"], "")
    numbered = [(str(number), chapter) for number, chapter in enumerate(report["chapters"], 1)]
    numbered += [(f"Appendix {letters(number)}:", chapter) for number, chapter in enumerate(report["appendix"])]
    for number, chapter in numbered:
        # Body and appendix begin a page, and so does a chapter of which only the beginning would fit.
        made.add(PageBreak() if number in ("1", "Appendix A:") else CondPageBreak(CHAPTER))
        made.heading(number, chapter["title"], 0)
        made.blocks(chapter["blocks"], number.removeprefix("Appendix ").rstrip(":"))
    return made


def missing_letters(report):
    """Letters of the description that the font has no shape for; they would print as boxes."""
    shapes = pdfmetrics.getFont("Sans").face.charToGlyph
    return sorted({letter for letter in json.dumps(report, ensure_ascii=False) if ord(letter) not in shapes and letter.isprintable()})


def run(input):
    report = description.read(input["description"])
    fonts()
    with tempfile.TemporaryDirectory() as folder:
        made = story(report, folder)
        document = Document(input["report"], report)
        document.multiBuild(made.flow)
    return {"file": input["report"], "pages": document.page, "headings": made.headings, "figures": made.figures,
            "tables": made.tables, "missing_letters": missing_letters(report)}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    os.makedirs(os.path.dirname(os.path.abspath(sys.argv[2])), exist_ok=True)
    print(json.dumps(run({"description": sys.argv[1], "report": sys.argv[2]}), indent=1, ensure_ascii=False))
