#!/usr/bin/env python3
"""A fact table in; chart.png, deck.pptx and article.md out, and checked: build_pack.py FACTS.json FOLDER"""
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt  # noqa: E402
from pptx import Presentation  # noqa: E402
from pptx.chart.data import CategoryChartData  # noqa: E402
from pptx.dml.color import RGBColor  # noqa: E402
from pptx.enum.chart import XL_CHART_TYPE, XL_LABEL_POSITION  # noqa: E402
from pptx.enum.text import MSO_ANCHOR, PP_ALIGN  # noqa: E402
from pptx.util import Emu, Inches, Pt  # noqa: E402

import check_pack  # noqa: E402
import facts as table  # noqa: E402

INK, MUTED, GRID, ACCENT = "1f2933", "6b7683", "e4e8ec", "0b6e99"
WIDE, HIGH, SIDE = 13.333, 7.5, 0.8  # inches
ROWS = 10  # of a table on one slide

plt.rcParams.update({"font.size": 10, "text.color": f"#{INK}", "axes.edgecolor": f"#{GRID}", "ytick.major.size": 0})


def draw_chart(facts, path):
    chart = facts.table["chart"]
    names = chart["facts"][::-1]
    labels = [facts.label[name] for name in names]
    height = 1.1 + 0.5 * len(names)
    left = min(0.05 + 0.0115 * max(map(len, labels)), 0.42)
    figure = plt.figure(figsize=(8, height))
    axes = figure.add_axes((left, 0.35 / height, 0.97 - left, 1 - 0.95 / height))
    figure.text(0.012, 1 - 0.15 / height, chart["title"], fontsize=13, fontweight="bold", va="top")
    figure.text(0.012, 0.08 / height, f"Source: {facts.table['source']}, {facts.table['as_of']}", fontsize=7.5, color=f"#{MUTED}")
    values = [facts.values[name] for name in names]
    most = max(map(abs, values)) or 1
    axes.barh(range(len(names)), values, height=0.6, color=f"#{ACCENT}")
    for place, name in enumerate(names):
        axes.text(max(values[place], 0) + most * 0.015, place, facts.text[name], va="center", fontweight="bold")
    axes.set_yticks(range(len(names)), labels)
    axes.set_xlim(min(0, *values) * 1.05, most * 1.25)
    axes.set_xticks([])
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    shown = json.dumps({name: facts.text[name] for name in chart["facts"]})
    figure.savefig(path, dpi=160, metadata={"Facts": shown, "Title": chart["title"]})
    plt.close(figure)


class Deck:
    """Slides with a title at the top and everything else below it, 16:9."""

    def __init__(self):
        self.file = Presentation()
        self.file.slide_width, self.file.slide_height = Inches(WIDE), Inches(HIGH)

    def slide(self, title):
        slide = self.file.slides.add_slide(self.file.slide_layouts[5])
        place(slide.shapes.title, SIDE, 0.5, WIDE - 2 * SIDE, 1.0)
        write(slide.shapes.title.text_frame, [title], 32, bold=True)
        return slide

    def text(self, slide, lines, top, height, size, colour=INK, gap=0):
        box = slide.shapes.add_textbox(0, 0, 0, 0)
        place(box, SIDE, top, WIDE - 2 * SIDE, height)
        write(box.text_frame, lines, size, colour=colour, gap=gap)


def place(shape, left, top, width, height):
    shape.left, shape.top, shape.width, shape.height = (Inches(value) for value in (left, top, width, height))


def write(frame, lines, size, bold=False, colour=INK, gap=0):
    frame.word_wrap, frame.vertical_anchor = True, MSO_ANCHOR.TOP
    for number, line in enumerate(lines):
        paragraph = frame.paragraphs[0] if number == 0 else frame.add_paragraph()
        paragraph.text, paragraph.alignment, paragraph.space_after = line, PP_ALIGN.LEFT, Pt(gap)
        font = paragraph.font
        font.size, font.bold, font.color.rgb, font.name = Pt(size), bold, RGBColor.from_string(colour.upper()), "Calibri"


def key_figures(deck, facts):
    """Tables of at most ROWS facts; a longer one goes on in the next slide."""
    names = list(facts.text)
    for start in range(0, len(names), ROWS):
        part = names[start:start + ROWS]
        slide = deck.slide("Key figures" if start == 0 else "Key figures, continued")
        grid = slide.shapes.add_table(len(part), 2, Inches(SIDE), Inches(1.7), Inches(WIDE - 2 * SIDE), Inches(0.48 * len(part))).table
        grid.first_row, grid.columns[0].width = False, Inches(8.2)
        grid.columns[1].width = Emu(Inches(WIDE - 2 * SIDE) - grid.columns[0].width)
        for row, name in enumerate(part):
            for column, text in enumerate((facts.label[name], facts.text[name])):
                frame = grid.cell(row, column).text_frame
                write(frame, [text], 17, bold=column == 1)
                frame.paragraphs[0].alignment = PP_ALIGN.RIGHT if column else PP_ALIGN.LEFT


def chart_slide(deck, facts):
    chart = facts.table["chart"]
    slide = deck.slide(chart["title"])
    data = CategoryChartData(number_format="#,##0.######")
    names = chart["facts"][::-1]  # bars are drawn from below
    data.categories = [facts.label[name] for name in names]
    data.add_series(facts.unit[names[0]] or "number", [facts.values[name] for name in names])
    frame = slide.shapes.add_chart(XL_CHART_TYPE.BAR_CLUSTERED, Inches(SIDE), Inches(1.6), Inches(WIDE - 2 * SIDE), Inches(5.2), data)
    drawn = frame.chart
    drawn.has_legend, drawn.has_title = False, False
    drawn.value_axis.visible, drawn.value_axis.has_major_gridlines = False, False
    drawn.category_axis.tick_labels.font.size = Pt(16)
    plot = drawn.plots[0]
    plot.gap_width, plot.has_data_labels = 60, True
    plot.series[0].format.fill.solid()
    plot.series[0].format.fill.fore_color.rgb = RGBColor.from_string(ACCENT.upper())
    decimals = len(facts.shown[names[0]].partition(".")[2])
    labels = plot.data_labels
    suffix = {"": "", "%": '"%"'}.get(facts.unit[names[0]], f'" {facts.unit[names[0]]}"')
    labels.number_format = "#,##0" + ("." + "0" * decimals if decimals else "") + suffix
    labels.number_format_is_linked, labels.position = False, XL_LABEL_POSITION.OUTSIDE_END
    labels.font.size, labels.font.bold = Pt(16), True


def write_deck(facts, path):
    deck, head = Deck(), facts.table
    first = deck.file.slides.add_slide(deck.file.slide_layouts[5])
    place(first.shapes.title, SIDE, 2.0, WIDE - 2 * SIDE, 1.6)
    write(first.shapes.title.text_frame, [head["title"]], 44, bold=True)
    deck.text(first, [head.get("subtitle", "")], 3.7, 1.0, 24, MUTED)
    deck.text(first, [f"Source: {head['source']}. As of {head['as_of']}."], 6.5, 0.5, 14, MUTED)
    key_figures(deck, facts)
    chart_slide(deck, facts)
    for section in head["sections"]:
        deck.text(deck.slide(section["title"]), [f"•  {facts.fill(line)}" for line in section["slide"]], 1.8, 4.8, 24, gap=14)
    deck.file.core_properties.title, deck.file.core_properties.author = head["title"], ""
    deck.file.save(path)


def write_article(facts, path):
    head = facts.table
    lines = [f"# {head['title']}", ""]
    lines += [f"*{head['subtitle']}*", ""] if head.get("subtitle") else []
    for number, section in enumerate(head["sections"]):
        lines += [f"## {section['title']}", "", facts.fill(section["text"]), ""]
        if number == 0:
            lines += [f"![{head['chart']['title']}](chart.png)", ""]
    lines += ["## All figures", "", "| | |", "|---|---:|"]
    lines += [f"| {facts.label[name]} | {facts.text[name]} |" for name in facts.text]
    lines += ["", f"Source: {head['source']}. As of {head['as_of']}.", ""]
    Path(path).write_text("\n".join(lines), encoding="utf-8")


def run(input):
    facts = table.read(input["facts"])
    folder = Path(input.get("folder", "/mnt/user-data/outputs"))
    folder.mkdir(parents=True, exist_ok=True)
    draw_chart(facts, folder / "chart.png")
    write_deck(facts, folder / "deck.pptx")
    write_article(facts, folder / "article.md")
    verdict = check_pack.run({"facts": input["facts"], "folder": str(folder)})
    return {**verdict, "files": [str(folder / name) for name in ("chart.png", "deck.pptx", "article.md")]}


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    made = run({"facts": sys.argv[1], "folder": sys.argv[2]})
    print(json.dumps(made, indent=1, ensure_ascii=False))
    sys.exit(not made["ok"])
