"""Figures and charts in, report.pdf and summary.json out."""
import json
import os
from datetime import date
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
from reportlab.platypus import Image, KeepTogether, Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

INK, MUTED, GRID, ACCENT = (colors.HexColor(code) for code in ("#1f2933", "#6b7683", "#e4e8ec", "#0b6e99"))
WIDTH = 170 * mm
FEW = 10  # below that a share says little


def styles():
    """matplotlib brings a font with more letters than PDF's own, so that names print as they are written."""
    fonts = os.path.join(matplotlib.get_data_path(), "fonts", "ttf")
    pdfmetrics.registerFont(TTFont("Sans", os.path.join(fonts, "DejaVuSans.ttf")))
    pdfmetrics.registerFont(TTFont("Sans-Bold", os.path.join(fonts, "DejaVuSans-Bold.ttf")))
    pdfmetrics.registerFontFamily("Sans", normal="Sans", bold="Sans-Bold")

    def style(name, size, lead, **more):
        return ParagraphStyle(name, fontName="Sans", fontSize=size, leading=lead, textColor=INK, **more)

    return {
        "title": ParagraphStyle("title", fontName="Sans-Bold", fontSize=19, leading=25, textColor=INK),
        "lead": style("lead", 10.5, 16, spaceAfter=5 * mm),
        "head": ParagraphStyle("head", fontName="Sans-Bold", fontSize=12, leading=17, textColor=INK,
                               spaceBefore=6 * mm, spaceAfter=2.5 * mm),
        "text": style("text", 9, 13.5),
        "cell": style("cell", 8.5, 11),
        "count": style("count", 8.5, 11, alignment=TA_RIGHT),
        "figure": ParagraphStyle("figure", fontName="Sans-Bold", fontSize=17, leading=21, textColor=ACCENT),
        "label": ParagraphStyle("label", fontName="Sans", fontSize=8, leading=11, textColor=MUTED),
    }


def figures(style, entries):
    """A row of large numbers with what they count."""
    table = Table([[Paragraph(number, style["figure"]) for number, _ in entries],
                   [Paragraph(escape(label), style["label"]) for _, label in entries]],
                  colWidths=[WIDTH / len(entries)] * len(entries))
    table.setStyle(TableStyle([
        ("LEFTPADDING", (0, 0), (-1, -1), 0), ("BOTTOMPADDING", (0, 0), (-1, 0), 0), ("TOPPADDING", (0, 1), (-1, 1), 1),
        ("LINEABOVE", (0, 0), (-1, 0), 0.8, GRID), ("LINEBELOW", (0, 1), (-1, 1), 0.8, GRID),
        ("TOPPADDING", (0, 0), (-1, 0), 7), ("BOTTOMPADDING", (0, 1), (-1, 1), 8),
    ]))
    return table


def group_table(style, stats, words):
    head = ["Group", words["cases"].capitalize(), words["outcome"].capitalize(), "Share", "95% interval"]
    widths = [56, 26, 26, 24, 38]
    with_median = any("median" in group for group in stats)
    if with_median:
        unit = f", {words['unit']}" if words.get("unit") else ""
        head.append(f"Median {words['number']}{unit}")
        widths = [46, 24, 22, 19, 30, 29]
    rows = [[Paragraph(f"<b>{escape(text)}</b>", style["count" if place else "cell"]) for place, text in enumerate(head)]]
    for group in sorted(stats, key=lambda group: -group["share"]):
        mark = " *" if group["rows"] < FEW else ""
        row = [Paragraph(escape(group["label"] + mark), style["cell"]), group["rows"], group["positive"],
               f"{group['share']:.1f}%", f"{group['low']:.1f}–{group['high']:.1f}%"]
        rows.append(row + ([f"{group['median']:g}" if "median" in group else "–"] if with_median else []))
    table = Table(rows, colWidths=[width * mm for width in widths], repeatRows=1)
    table.setStyle(TableStyle([
        ("FONT", (0, 0), (-1, -1), "Sans", 8.5), ("TEXTCOLOR", (0, 0), (-1, -1), INK),
        ("ALIGN", (1, 1), (-1, -1), "RIGHT"), ("VALIGN", (0, 0), (-1, -1), "MIDDLE"),
        ("LINEBELOW", (0, 0), (-1, 0), 0.9, INK), ("LINEBELOW", (0, 1), (-1, -1), 0.4, GRID),
        ("LEFTPADDING", (0, 0), (0, -1), 0), ("RIGHTPADDING", (-1, 0), (-1, -1), 0), ("TOPPADDING", (0, 0), (-1, -1), 3.5), ("BOTTOMPADDING", (0, 0), (-1, -1), 3.5),
    ]))
    return table


def chart(path):
    width, height = ImageReader(path).getSize()
    return Image(path, WIDTH, WIDTH * height / width)


def footer(source):
    def draw(canvas, document):
        canvas.saveState()
        canvas.setFont("Sans", 7)
        canvas.setFillColor(MUTED)
        canvas.drawString(20 * mm, 11 * mm, f"Source: {source}"[:130])
        canvas.drawRightString(190 * mm, 11 * mm, f"Page {document.page}")
        canvas.restoreState()
    return draw


def lead_sentence(summary, stats, words):
    best, worst = max(stats, key=lambda group: group["share"]), min(stats, key=lambda group: group["share"])
    return (f"{summary['positive']:,} of {summary['rows']:,} {words['cases']} {words['outcome']} ({summary['share']:.1f}%). "
            f"The share was highest in the group “{best['label']}” ({best['share']:.1f}%) "
            f"and lowest in “{worst['label']}” ({worst['share']:.1f}%).")


def method(clean, stats, words):
    dropped = f"{clean['dropped']:,} rows were" if clean["dropped"] else "no row was"
    parts = [f"Each row is one of {clean['rows']:,} {words['cases']}; {dropped} dropped as empty or duplicate."]
    missing = ", ".join(f"{name} in {count:,} rows" for name, count in clean["missing"].items() if not name.endswith("_band"))
    if missing:
        parts.append(f"Not known: {missing}; medians leave these out.")
    parts.append("Intervals are Wilson score intervals at 95%. They describe chance in the counts, not what caused the difference.")
    if any(group["rows"] < FEW for group in stats):
        parts.append(f"* fewer than {FEW} {words['cases']}: the share says little.")
    return " ".join(parts)


def write_pdf(path, input, stats, summary, words):
    style = styles()
    side = 20 * mm - 6  # reportlab pads its frame by 6 points
    document = SimpleDocTemplate(path, pagesize=A4, leftMargin=side, rightMargin=side, topMargin=18 * mm,
                                 bottomMargin=20 * mm, title=input["title"], author="csv-report", subject=input["source"])
    best, worst = max(stats, key=lambda group: group["share"]), min(stats, key=lambda group: group["share"])
    shares, *others = [chart(path) for path in input["charts"]]
    story = [
        Paragraph(escape(input["title"]), style["title"]), Spacer(1, 2 * mm),
        Paragraph(escape(lead_sentence(summary, stats, words)), style["lead"]),
        figures(style, [
            (f"{summary['rows']:,}", words["cases"]),
            (f"{summary['share']:.1f}%", words["outcome"]),
            (f"{best['share']:.1f}%", f"{words['outcome']}: {best['label']}"),
            (f"{worst['share']:.1f}%", f"{words['outcome']}: {worst['label']}"),
        ]),
        KeepTogether([Paragraph("The groups compared", style["head"]), shares]),
        KeepTogether([Paragraph("Figures", style["head"]), group_table(style, stats, words)]),
    ]
    if others:
        story.append(KeepTogether([Paragraph(f"By {escape(words['number'])}", style["head"]), *others]))
    story.append(KeepTogether([
        Paragraph("Method and source", style["head"]),
        Paragraph(escape(method(input["clean"], stats, words)), style["text"]), Spacer(1, 2 * mm),
        Paragraph(f"Source: {escape(input['source'])}. Report made on {date.today().isoformat()}.", style["text"]),
    ]))
    document.build(story, onFirstPage=footer(input["source"]), onLaterPages=footer(input["source"]))


def run(input):
    words = {"cases": "cases", **{name: input[name] for name in ("outcome", "cases", "number", "unit") if name in input}}
    stats = [group for group in input["stats"] if group is not None]
    folder = input.get("folder", "/mnt/user-data/outputs")
    pdf, summary_file = os.path.join(folder, "report.pdf"), os.path.join(folder, "summary.json")
    rows, yes = sum(group["rows"] for group in stats), sum(group["positive"] for group in stats)
    share = round(100 * yes / rows, 1)
    summary = {"rows": rows, "positive": yes, "share": int(share) if share == int(share) else share}
    write_pdf(pdf, input, stats, summary, words)
    with open(summary_file, "w", encoding="utf-8") as file:
        json.dump({"title": input["title"], "source": input["source"], **summary, "groups": stats}, file,
                  indent=2, ensure_ascii=False)
        file.write("\n")
    return {**summary, "files": [pdf, summary_file, *input["charts"]]}
