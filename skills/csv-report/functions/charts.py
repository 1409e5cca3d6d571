"""Figures in, charts out: one chart, one statement."""
import csv
import os
from collections import Counter
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

import matplotlib.pyplot as plt  # noqa: E402

INK, MUTED, GRID = "#1f2933", "#6b7683", "#e4e8ec"
YES, NO = "#0b6e99", "#c9d3dc"
WIDTH = 7.4  # inches, the text width of the report
DPI = 200

plt.rcParams.update({
    "font.size": 9, "text.color": INK, "axes.labelcolor": MUTED, "xtick.color": MUTED, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.spines.left": False, "axes.edgecolor": GRID,
    "xtick.major.size": 0, "ytick.major.size": 0, "axes.axisbelow": True,
})


def headline(figure, title, subtitle):
    """Above the axes, at fixed distances whatever the figure's height."""
    height = figure.get_figheight()
    figure.text(0.012, 1 - 0.16 / height, title, fontsize=12, fontweight="bold", va="top")
    figure.text(0.012, 1 - 0.42 / height, subtitle, fontsize=9, color=MUTED, va="top")


def save(figure, folder, name, source):
    if source:
        figure.text(0.012, 0.07 / figure.get_figheight(), f"Source: {source}", fontsize=7, color=MUTED, va="bottom")
    path = os.path.join(folder, name)
    figure.savefig(path, dpi=DPI)
    plt.close(figure)
    return path


def canvas(height, left):
    """Axes below the headline and above the source."""
    figure = plt.figure(figsize=(WIDTH, height))
    axes = figure.add_axes((left, 0.72 / height, 0.97 - left, 1 - 1.45 / height))
    return figure, axes


def shares(stats, overall, words, folder, source):
    ordered = sorted(stats, key=lambda group: group["share"])
    longest = max(len(group["label"]) for group in ordered)
    figure, axes = canvas(1.6 + 0.36 * len(ordered), min(0.04 + 0.013 * longest, 0.4))
    for place, group in enumerate(ordered):
        axes.barh(place, group["share"], height=0.62, color=YES)
        axes.plot([group["low"], group["high"]], [place, place], color=INK, linewidth=1, solid_capstyle="butt")
        axes.text(103, place, f"{group['share']:.1f}%", va="center", fontsize=8.5, fontweight="bold")
        axes.text(116, place, f"{group['positive']:,} of {group['rows']:,}", va="center", fontsize=8.5, color=MUTED)
    axes.axvline(overall, ymax=0.98, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
    axes.text(overall, len(ordered) - 0.42, f"all: {overall:.1f}%", color=MUTED, fontsize=8, ha="center", va="bottom")
    axes.set_yticks(range(len(ordered)), [group["label"] for group in ordered])
    axes.set_xlim(0, 136)
    axes.set_xticks(range(0, 101, 20), [f"{tick}%" for tick in range(0, 101, 20)])
    axes.grid(axis="x", color=GRID)
    axes.spines["bottom"].set_bounds(0, 100)
    axes.set_xlabel(f"share of {words['cases']} that {words['outcome']}; thin black lines: 95% intervals", x=50 / 136)
    first, last = ordered[-1], ordered[0]
    headline(figure, f"From {last['share']:.1f}% to {first['share']:.1f}%: share that {words['outcome']}, by group",
             f"Lowest: {last['label']}. Highest: {first['label']}.")
    return save(figure, folder, "shares.png", source)


def band_order(label):
    """under 16 < 16–59 < 60 and over"""
    digits = "".join(letter if letter.isdigit() or letter == "." else " " for letter in label).split()
    return (not label.startswith("under"), float(digits[0]) if digits else 0)


def bands(rows, words, folder, source):
    band = f"{words['number']}_band"
    counts = Counter((row[band], row[words["outcome"]]) for row in rows if row[band])
    names = sorted({name for name, _ in counts}, key=band_order)
    figure, axes = canvas(1.7 + 0.5 * len(names), 0.14)
    most = max(counts[name, "0"] + counts[name, "1"] for name in names)
    for place, name in enumerate(reversed(names)):
        yes, no = counts[name, "1"], counts[name, "0"]
        axes.barh(place, yes, height=0.6, color=YES)
        axes.barh(place, no, left=yes, height=0.6, color=NO)
        axes.text(yes + no + most * 0.015, place, f"{100 * yes / (yes + no):.1f}%", va="center", fontsize=8.5,
                  fontweight="bold")
        axes.text(yes + no + most * 0.115, place, f"{yes:,} of {yes + no:,}", va="center", fontsize=8.5, color=MUTED)
    axes.set_yticks(range(len(names)), list(reversed(names)))
    axes.set_xlim(0, most * 1.27)
    axes.grid(axis="x", color=GRID)
    axes.set_xlabel(f"number of {words['cases']}")
    unit = f" in {words['unit']}" if words.get("unit") else ""
    unknown = sum(not row[band] for row in rows)
    headline(figure, f"{words['outcome'].capitalize()} or not, by {words['number']}{unit}",
             f"Dark and per cent: {words['outcome']}. Light: not. Left out: {unknown:,} {words['cases']} without {words['number']}.")
    return save(figure, folder, f"{words['number']}.png", source)


def run(input):
    words = {"cases": "cases", **{name: input[name] for name in ("outcome", "cases", "number", "unit") if name in input}}
    stats = [group for group in input["stats"] if group is not None]
    folder, source = input.get("folder", "/mnt/user-data/outputs"), input.get("source")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with open(input["file"], encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    overall = 100 * sum(row[words["outcome"]] == "1" for row in rows) / len(rows)
    charts = [shares(stats, overall, words, folder, source)]
    if "number" in words:
        charts.append(bands(rows, words, folder, source))
    return {"charts": charts}
